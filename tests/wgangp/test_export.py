"""The winner in one file: it loads where this repository is not, and draws the same."""

import itertools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import keras
import numpy as np
import pytest
from PIL import Image

from wgangp import export, networks, sample
from wgangp.config import TrainConfig
from wgangp.errors import UserError
from wgangp.layers import NetworkSettings
from wgangp.prepared import Prepared
from wgangp.trainer import Trainer, export_winner, prepare, score_winner

Settings = Callable[..., TrainConfig]

NOISE = np.random.default_rng(0).normal(size=(3, 16)).astype(np.float32)
ELSEWHERE = """
import sys, keras, numpy as np
assert not [path for path in sys.path if "{root}" == path]
for path in sys.argv[2:]:
    drawn = keras.models.load_model(path, compile=False)(np.load(sys.argv[1]))
    np.save(path + ".npy", np.asarray(drawn, np.float32))
"""
ROOT = Path(__file__).resolve().parents[2]


def generators() -> dict[str, keras.Model]:
    """Ours, with each activation, norm and precision, and weights that are not all zero or one."""
    settings = [
        NetworkSettings((8, 8, 1), 2, 16, activation, norm, "none", precision)
        for activation, norm, precision in (
            *itertools.product((None, "leaky_relu", "elu", "silu", "tanh"), ("none", "batch"), ("float32",)),
            (None, "batch", "bfloat16"),
            (None, "batch", "float64"),
        )
    ]
    found = {f"dcgan-{n}": networks.build_generator("dcgan", each) for n, each in enumerate(settings)}
    found |= {
        f"resnet-{norm}": networks.build_generator(
            "resnet", NetworkSettings((32, 32, 3), 2, 16, generator_norm=norm)
        )
        for norm in ("none", "batch")
    }
    random = np.random.default_rng(1)
    for generator in found.values():
        for weight in generator.weights:  # variances among them
            drawn = random.normal(0, 0.1, size=weight.shape)
            weight.assign(drawn if "kernel" in weight.name else abs(drawn) + 0.1)
    return found


def test_every_generator_of_ours_loads_and_draws_the_same_without_this_repository(tmp_path: Path) -> None:
    ours = generators()
    for name, generator in ours.items():
        assert export.save(generator, tmp_path / f"{name}.keras") == ""
    np.save(tmp_path / "noise.npy", NOISE)
    paths = [str(tmp_path / f"{name}.keras") for name in ours]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    subprocess.run(
        [sys.executable, "-c", ELSEWHERE.format(root=ROOT), str(tmp_path / "noise.npy"), *paths],
        cwd=tmp_path,
        env=environment,
        check=True,
    )

    for name, generator in ours.items():
        drawn = np.load(tmp_path / f"{name}.keras.npy")
        bound = 2e-2 if name == "dcgan-10" else 1e-5  # layers that compute in bfloat16
        np.testing.assert_allclose(drawn, np.asarray(generator(NOISE), np.float32), atol=bound)
        assert drawn.std() > 0


def test_the_winner_is_written_beside_its_scores_and_draws_its_samples(
    trainer: Trainer, settings: Settings, prepared: Prepared, tmp_path: Path
) -> None:
    config = settings()
    trainer.start(config)
    trainer.advance()
    trainer.save(tmp_path / "checkpoint")
    best = tmp_path / "best"
    score_winner(prepared, config, tmp_path / "checkpoint", folder=best)

    assert export_winner(prepared, config, tmp_path / "checkpoint", folder=best) == ""
    assert trainer.export(tmp_path / "run") == ""
    assert {path.name for path in best.iterdir()} == {"samples.png", "generator.keras"}
    weights = [
        np.concatenate([w.ravel() for w in export.load(at).get_weights()]) for at in (best, tmp_path / "run")
    ]
    np.testing.assert_array_equal(*weights)


def test_before_the_first_score_there_is_nothing_to_export(
    trainer: Trainer, settings: Settings, tmp_path: Path
) -> None:
    trainer.start(settings())

    assert trainer.export(tmp_path) == "no tick has been scored"
    assert not list(tmp_path.iterdir())


def test_a_layer_of_the_users_own_is_said_and_nothing_is_left(
    settings: Settings, cache: Path, tmp_path: Path
) -> None:
    own = f"{Path(__file__).with_name('own_networks.py')}:build"
    config = settings(architecture=own)
    prepared = prepare(config, cache=cache, say=lambda line: None)
    trainer = Trainer(prepared)
    trainer.start(config)
    trainer.advance()
    trainer.save(tmp_path / "checkpoint")

    why = export_winner(prepared, config, tmp_path / "checkpoint", folder=tmp_path / "best")
    assert "Scale" in why and "\n" not in why
    assert not list((tmp_path / "best").iterdir())
    assert score_winner(prepared, config, tmp_path / "checkpoint", folder=tmp_path / "best")["fid_fresh"] > 0


def draw(*arguments: str) -> int:
    return sample.main(list(arguments))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Holds a generator of 8x8 images."""
    path = tmp_path_factory.mktemp("best")
    assert export.save(generators()["dcgan-0"], path / "generator.keras") == ""
    return path


def test_samples_are_a_grid_that_follows_from_the_seed(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pictures = [tmp_path / "pictures" / name for name in ("a.png", "b.png", "c.png", "d.png")]
    for path, seed, where in zip(
        pictures, (0, 0, 1, 0), (folder, folder, folder, folder / "generator.keras"), strict=True
    ):
        assert draw(str(where), "--count", "20", "--seed", str(seed), "--out", str(path)) == 0

    a, b, c, d = (path.read_bytes() for path in pictures)
    assert a == b == d != c
    assert Image.open(pictures[0]).size == (5 * 8, 4 * 8)
    assert f"20 samples: {pictures[0]}" in capsys.readouterr().out


def test_vectors_are_drawn_as_points(tmp_path: Path) -> None:
    z = keras.Input((4,))
    export.save(keras.Model(z, keras.layers.Dense(2, activation="tanh")(z)), tmp_path / "generator.keras")

    assert draw(str(tmp_path), "--out", str(tmp_path / "points.png")) == 0
    assert Image.open(tmp_path / "points.png").size == (256, 256)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["{tmp}/none"], "{tmp}/none: must be a folder or a file that is there; see --help."),
        (["{tmp}"], "{tmp}: must be, or hold, a generator.keras, such as runs/gp-0001/best of a sweep"),
        (["{tmp}/damaged"], "{tmp}/damaged/generator.keras: is no generator that can be loaded: "),
        (["{folder}", "--count", "0"], "--count: must be 1 to 10000, got 0."),
        (["{folder}", "--count", "10001"], "--count: must be 1 to 10000, got 10001."),
        (
            ["{folder}", "--out", "/proc/none/a.png"],
            "--out /proc/none/a.png: cannot be written: No such file",
        ),
    ],
)
def test_a_mistake_is_one_line_and_exit_status_2(
    arguments: list[str], said: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "generator.keras").write_bytes(b"PK")
    places = {"tmp": tmp_path, "folder": folder}

    assert draw(*(argument.format(**places) for argument in arguments)) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(said.format(**places))


def test_what_cannot_be_loaded_is_a_user_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"must be, or hold, a generator\.keras"):
        export.load(tmp_path)
