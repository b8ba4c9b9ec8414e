import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from wgangp import checkpoints
from wgangp.checkpoints import CheckpointError
from wgangp.config import TrainConfig
from wgangp.prepared import Prepared
from wgangp.trainer import Trainer, score_winner
from wgangp.winner import recognised


def test_the_best_generator_is_scored_on_noise_of_its_own(
    trainer: Trainer, settings: Callable[..., TrainConfig], prepared: Prepared, tmp_path: Path
) -> None:
    config = settings(fid_samples=600)
    trainer.start(config)
    progress = trainer.advance()
    trainer.save(tmp_path / "checkpoint")

    found = score_winner(prepared, config, tmp_path / "checkpoint", folder=tmp_path / "best")
    again = score_winner(prepared, config, tmp_path / "checkpoint", folder=tmp_path / "again")

    assert found == again
    assert found["fid_fresh"] != progress.metrics["best_fid"]
    assert found["fid_fresh"] == pytest.approx(progress.metrics["best_fid"], rel=0.1)
    assert found["fid_at_infinity"] == pytest.approx(found["fid_fresh"], abs=8 * found["fid_standard_error"])
    assert found["fid_at_infinity"] != found["fid_fresh"]
    assert {"precision", "recall", "diversity"} <= found.keys() and "fid" not in found
    assert 0 <= found["classes_seen"] <= min(10, found["sure_samples"])
    assert found["sure_samples"] <= 64
    picture = Image.open(io.BytesIO((tmp_path / "best" / "samples.png").read_bytes()))
    assert picture.size == (8 * 8, 8 * 8)


def test_only_samples_the_classifier_is_sure_of_are_recognised(prepared: Prepared) -> None:
    probabilities = np.array(
        [[0.95, 0.05, 0], [0.05, 0.95, 0], [0.99, 0, 0.01], [0, 0.1, 0.9], [0.5, 0, 0.5]]
    )
    assert recognised(probabilities) == {"sure_samples": 3, "classes_seen": 2}

    real = prepared.features.network((8, 8, 1)).describe(prepared.images[:64]).probabilities
    assert recognised(real)["sure_samples"] > 45
    assert recognised(real)["classes_seen"] == 10


@pytest.mark.parametrize(
    ("contents", "problem"),
    [
        ({"critic/0": np.zeros(1)}, "holds no best generator"),
        ({"best_generator/0": np.zeros(1)}, "does not fit"),
    ],
)
def test_a_checkpoint_without_a_fitting_generator_is_refused(
    settings: Callable[..., TrainConfig], prepared: Prepared, tmp_path: Path, contents: dict, problem: str
) -> None:
    checkpoints.write(tmp_path, contents, {})

    with pytest.raises(CheckpointError, match=problem):
        score_winner(prepared, settings(), tmp_path, folder=tmp_path)
