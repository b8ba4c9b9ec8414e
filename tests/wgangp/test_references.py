"""Our scores against other implementations of them, on the same features, where those are sound."""

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wgangp import frechet, scores
from wgangp.neighbours import Neighbourhood

PYTHON = Path(__file__).parents[2] / ".venv-references" / "bin" / "python"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON.exists(), reason="`make references` installs them"),
]
SCRIPT = Path(__file__).with_name("other_scores.py")

# More samples than dimensions: with fewer the others are not sound.
SHAPES = {
    "one dimension": (300, 1, 1.0),
    "two": (300, 2, 1.0),
    "64": (1000, 64, 1.0),
    "64, small": (1000, 64, 1e-3),
    "64, features times 5,000": (1000, 64, 5000.0),
    "128": (2000, 128, 1.0),
    "2048": (2500, 2048, 1.0),
}
Sets = dict[str, tuple[np.ndarray, np.ndarray]]


@pytest.fixture(scope="module")
def sets() -> Sets:
    """Generated and real features, float64, as skewed and as far from each other as features are."""
    found = {}
    for name, (count, dimensions, scale) in SHAPES.items():
        random = np.random.default_rng(dimensions)
        mix = random.normal(size=(dimensions, dimensions)) / np.sqrt(dimensions)
        mix *= np.exp(random.normal(size=dimensions))
        real = np.maximum(random.normal(size=(count, dimensions)) @ mix, -0.3)
        fake = np.maximum(0.9 * random.normal(size=(count, dimensions)) @ mix + 0.2, -0.3)
        found[name] = scale * fake, scale * real
    return found


@pytest.fixture(scope="module")
def others(sets: Sets, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("others")
    fakes = {f"{name}/fake": fake for name, (fake, _) in sets.items()}
    reals = {f"{name}/real": real for name, (_, real) in sets.items()}
    np.savez(folder / "sets.npz", **fakes, **reals)  # type: ignore[arg-type]
    command = [str(PYTHON), str(SCRIPT), str(folder / "sets.npz"), str(folder / "found.json")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads((folder / "found.json").read_text())


@pytest.mark.parametrize("name", SHAPES)
def test_fid_is_that_of_both(name: str, sets: Sets, others: dict[str, Any]) -> None:
    fake, real = sets[name]
    against = frechet.gaussian(real)

    found = frechet.fid(fake, against=against)
    assert found == pytest.approx(others[name]["pytorch_fid"], rel=1e-9)
    if name != "one dimension":
        assert found == pytest.approx(others[name]["frechet_inception_distance"], rel=1e-9)
    assert frechet.fid_with_error(fake, against=against)[0] == pytest.approx(found, rel=1e-9)


@pytest.mark.parametrize("name", SHAPES)
def test_kid_is_that_of_one_subset_of_all(name: str, sets: Sets, others: dict[str, Any]) -> None:
    expected = others[name]["kernel_inception_distance_mean"]

    assert scores.kid(*sets[name])[0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", SHAPES)
def test_precision_and_recall_are_the_same_counts(name: str, sets: Sets, others: dict[str, Any]) -> None:
    fake, real = sets[name]
    found = Neighbourhood(real).scores(fake)

    one_image = 1 / len(fake)  # which may stand on the edge of a ball, to rounding
    assert found["precision"] == pytest.approx(others[name]["precision"], abs=1.01 * one_image)
    assert found["recall"] == pytest.approx(others[name]["recall"], abs=1.01 * one_image)


def test_the_inception_score_is_that_without_parts(sets: Sets, others: dict[str, Any]) -> None:
    for name, (logits, _) in sets.items():
        if "small" in name or "5,000" in name:
            continue
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        found = scores.inception_score(odds / odds.sum(axis=1, keepdims=True))
        assert found == pytest.approx(others[name]["inception_score_mean"], rel=1e-9)
