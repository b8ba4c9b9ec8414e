"""Whole runs on data and networks of a user's own: colour pictures of an odd shape, and vectors."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from wgangp import frechet, winner
from wgangp.config import TrainConfig
from wgangp.prepared import Prepared, prepare
from wgangp.trainer import Trainer

OWN = f"{Path(__file__).with_name('own_networks.py')}:build"
Settings = Callable[..., TrainConfig]
EMBED = (
    "def embed(x):\n    import numpy as np\n    return np.concatenate([x, x * x, x[:, :1] * x[:, 1:]], 1)\n"
)


def ring(count: int, *, seed: int) -> np.ndarray:
    """Vectors on a circle of radius 2, nearly."""
    random = np.random.default_rng(seed)
    angles = random.uniform(0, 2 * np.pi, count)
    return 2 * np.stack([np.cos(angles), np.sin(angles)], 1) + random.normal(0, 0.05, (count, 2))


@pytest.fixture
def vectors(settings: Settings, tmp_path: Path) -> tuple[TrainConfig, Prepared]:
    np.savez(tmp_path / "ring.npz", images=ring(2000, seed=0))
    (tmp_path / "my_features.py").write_text(EMBED)
    config = settings(
        dataset=str(tmp_path / "ring.npz"),
        data_range=[-3, 3],
        architecture=OWN,
        features=f"{tmp_path / 'my_features.py'}:embed",
        gp_weight=1,
        n_critic=5,
        critic_lr=3e-3,
        generator_lr=3e-3,
        tick_kimg=6.4,
        budget_kimg=32,
    )
    return config, prepare(config, cache=tmp_path / "cache", say=lambda line: None)


def test_vectors_are_trained_scored_drawn_and_resumed(
    vectors: tuple[TrainConfig, Prepared], tmp_path: Path
) -> None:
    config, prepared = vectors
    trainer = Trainer(prepared)
    trainer.start(config)
    ticks = [trainer.advance() for _ in range(2)]
    trainer.save(tmp_path / "checkpoint")
    ticks += [trainer.advance() for _ in range(3)]

    fids = [tick.metrics["fid"] for tick in ticks]
    features = prepared.features.network((2,))
    in_the_middle = np.random.default_rng(1).normal(0, 0.1, (500, 2)).astype(np.float32)
    untrained = frechet.fid(features.describe(in_the_middle).features, against=prepared.reference.gaussian)
    assert fids[-1] < 0.2 * untrained
    picture = Image.open(io.BytesIO(ticks[-1].samples))
    assert picture.mode == "RGB" and picture.size[0] == picture.size[1]

    again = Trainer(prepared)
    again.start(config)
    again.load(tmp_path / "checkpoint")
    assert [again.advance().metrics["fid"] for _ in range(3)] == fids[2:]

    trainer.save(tmp_path / "last")
    scores = winner.score_winner(prepared, config, tmp_path / "last", folder=tmp_path / "best")
    assert scores["fid_fresh"] < 2 * min(fids)
    assert "sure_samples" not in scores
    assert (tmp_path / "best" / "samples.png").exists()


def test_colour_pictures_of_an_odd_shape_train_with_networks_of_ones_own(
    settings: Settings, tmp_path: Path
) -> None:
    from sklearn.datasets import load_sample_images

    random = np.random.default_rng(0)
    patches = []
    for photograph in load_sample_images().images:
        height, width, _ = photograph.shape
        for _ in range(100):
            y, x = random.integers(0, height - 12), random.integers(0, width - 10)
            patches.append(photograph[y : y + 12, x : x + 10])
    np.savez(tmp_path / "patches.npz", images=np.stack(patches), labels=np.repeat([0, 1], 100))
    config = settings(
        dataset=str(tmp_path / "patches.npz"),
        architecture=OWN,
        features="random",
        flips=True,
        lr_schedule="linear",
        fid_samples=100,
    )
    prepared = prepare(config, cache=tmp_path / "cache", say=lambda line: None)
    trainer = Trainer(prepared)
    trainer.start(config)
    ticks: list[Any] = [trainer.advance() for _ in range(config.ticks)]

    assert prepared.facts["image_size"] == "12x10x3"
    assert ticks[-1].outcome == "complete"
    assert ticks[-1].metrics["fid"] < ticks[0].metrics["fid"]
    assert Image.open(io.BytesIO(ticks[-1].samples)).mode == "RGB"
