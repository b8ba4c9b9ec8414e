"""Sweeps on what users bring: a folder of colour pictures, vectors, networks and features of their own."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_sample_images

NETWORKS = Path(__file__).parents[1] / "wgangp" / "own_networks.py"
PICTURES = """\
name: own
search:
  gp_weight: {type: float, low: 0.1, high: 10, log: true}
  options:   {type: categorical, choices: [{layers: 1}, {layers: 2}]}
  critic_lr: {type: float, low: 1.0e-3, high: 1.0e-2, log: true, when: {options: {layers: 2}}}
enqueue:
  - {gp_weight: 1, options: {layers: 2}, critic_lr: 2.0e-3}
train:
  {dataset: pictures, image_size: 12, skip_unreadable: true, flips: true, features: random,
   lr_schedule: linear, architecture: 'my_networks.py:build', width: 2, batch_size: 32, n_critic: 2,
   generator_lr: 2.0e-3, budget_kimg: 6, tick_kimg: 2, fid_samples: 100}
sampler: {name: qmc}
pruner:  {name: median, n_startup_trials: 1}
sweep:   {trials: 4, retries: 0}
compare: [core_seconds]
"""
VECTORS = """\
name: own
search:
  gp_weight: {type: float, low: 0.1, high: 10, log: true}
  width:     {type: categorical, choices: [2, 4]}
train:
  {dataset: 'my_data.py:load', data_range: [-3, 3], architecture: 'my_networks.py:build',
   features: 'my_features.py:embed', batch_size: 32, n_critic: 2, critic_lr: 3.0e-3, generator_lr: 3.0e-3,
   budget_kimg: 6, tick_kimg: 2, fid_samples: 200}
pruner:  {name: none}
sweep:   {trials: 3, retries: 0}
"""
DATA = """\
import numpy as np

def load():
    angles = np.random.default_rng(0).uniform(0, 2 * np.pi, 1000)
    return 2 * np.stack([np.cos(angles), np.sin(angles)], 1)
"""
EMBED = """\
import numpy as np

def embed(x):
    return np.concatenate([x, x * x], 1)
"""
BROKEN = """
import os
whole = build

def build(settings):
    if settings.width == 4 and os.path.exists({flag!r}):
        raise OSError("the network is broken\\nfor a while")
    return whole(settings)
"""


@pytest.fixture
def own(sweep: Any) -> Any:
    """A sweep named own, whose files lie in a folder `mine`."""
    sweep.folder = sweep.out / "own-0001"
    sweep.mine = sweep.out / "mine"
    sweep.mine.mkdir()
    shutil.copy(NETWORKS, sweep.mine / "my_networks.py")
    return sweep


@pytest.fixture
def pictures(own: Any) -> str:
    """Two class folders of patches of photographs, of many sizes, one of them unreadable; the space."""
    random = np.random.default_rng(0)
    for kind, photograph in zip(("flower", "temple"), load_sample_images().images, strict=False):
        (own.mine / "pictures" / kind).mkdir(parents=True)
        for number in range(60):
            size = int(random.integers(12, 40))
            y, x = (int(random.integers(0, side - size)) for side in photograph.shape[:2])
            patch = Image.fromarray(photograph[y : y + size, x : x + size])
            patch.save(own.mine / "pictures" / kind / f"{number:02d}.jpg")
    (own.mine / "pictures" / "flower" / "notes.txt").write_text("not a picture")
    (own.mine / "space.yaml").write_text(PICTURES)
    return str(own.mine / "space.yaml")


def test_a_folder_of_pictures_and_networks_of_ones_own_are_swept_to_the_end(own: Any, pictures: str) -> None:
    assert own.run("--space", pictures) == 0, own.output

    plan = own.output.splitlines()
    assert "  skipped 1 file: flower/notes.txt (no image)" in plan
    assert any(line.startswith(f"  code {own.mine}/my_networks.py:build (sha256 ") for line in plan)
    assert any(": 108 training and 12 held-out images, 12x12x3, sha256 " in line for line in plan)
    own.assert_everything_agrees()
    own.assert_nothing_is_open(trials=4)
    parent, runs = own.runs()
    assert "my_networks.py:build (sha256 " in parent.data.tags["code"]
    assert parent.data.tags["skipped"] == "flower/notes.txt (no image)"
    assert {run.data.params["options"] for run in runs.values()} == {"{'layers': 1}", "{'layers': 2}"}
    for trial in own.trials().values():
        assert ("critic_lr" in trial.params) == (trial.params["options"] == 'json: {"layers": 2}')
    assert "## FID against cost" in (own.folder / "report.md").read_text()
    assert Image.open(own.folder / "best" / "samples.png").mode == "RGB"

    kept = own.folder / "features" / "code" / "my_networks.py"
    assert kept.read_text() == NETWORKS.read_text()
    (own.mine / "my_networks.py").write_text("def build(settings):\n    raise SystemExit('another now')\n")
    shutil.rmtree(own.mine / "pictures")
    (own.mine / "pictures").mkdir()
    assert own.run("--resume", "own-0001", "--trials", "5", "--space", pictures) == 2
    assert "my_networks.py: was changed since the sweep was started: its sha256 must be " in own.output


@pytest.mark.slow
def test_a_resume_uses_the_copy_of_the_code_and_says_that_it_was_changed(own: Any, pictures: str) -> None:
    assert own.run("--space", pictures, "--trials", "2") == 0, own.output
    (own.mine / "my_networks.py").write_text("def build(settings):\n    raise SystemExit('another now')\n")

    assert own.run("--resume", "own-0001", "--trials", "3") == 0, own.output
    assert "  my_networks.py:build changed since; the sweep goes on with its copy" in own.output.splitlines()
    own.assert_everything_agrees()
    own.assert_nothing_is_open(trials=3)
    kept = own.folder / "features" / "code" / "my_networks.py"
    kept.write_text(kept.read_text() + "# touched\n")
    assert own.run("--resume", "own-0001", "--trials", "4") == 2
    (line,) = own.output.splitlines()
    assert line.startswith(f"{kept}: was changed: its sha256 must be ")


@pytest.fixture
def vectors(own: Any) -> str:
    for name, text in (("my_data.py", DATA), ("my_features.py", EMBED), ("space.yaml", VECTORS)):
        (own.mine / name).write_text(text)
    return str(own.mine / "space.yaml")


@pytest.mark.slow
def test_vectors_of_a_function_are_swept_and_a_network_that_breaks_costs_one_trial(
    own: Any, vectors: str
) -> None:
    flag = own.mine / "broken"
    with (own.mine / "my_networks.py").open("a") as file:
        file.write(BROKEN.format(flag=str(flag)))
    enqueue = "enqueue=[{gp_weight: 1, width: 2}, {gp_weight: 2, width: 4}, {gp_weight: 3, width: 2}]"
    one_at_a_time = ["--set", "sweep.max_concurrent=1", "--set", enqueue]

    status = own.run_until(
        lambda line: line.startswith("t001  2"),
        lambda driver: flag.touch(),
        "--space",
        vectors,
        *one_at_a_time,
    )
    assert status == 1, own.output
    assert own.outcomes() == {"t001": "complete", "t002": "failed", "t003": "complete"}
    reason = own.trials()["t002"].user_attrs["last_error"]
    assert reason.endswith("build failed: OSError: the network is broken for a while.")
    assert f"{own.mine}/my_networks.py:" in reason

    flag.unlink()
    assert own.run("--resume", "own-0001") == 0, own.output
    assert set(own.outcomes().values()) == {"complete"}
    own.assert_everything_agrees()
    own.assert_nothing_is_open(trials=3)
    facts = json.loads((own.folder / "features" / "features.json").read_text())
    assert (facts["image_size"], facts["features"]) == ("2", "my_features.py:embed")
    assert sorted(path.name for path in (own.folder / "features" / "code").iterdir()) == [
        *("my_data.py", "my_features.py", "my_networks.py")
    ]


MISTAKES: dict[str, tuple[Callable[[Path], Any], tuple[str, str]]] = {
    "a critic that looks at the batch": (
        lambda mine: (mine / "my_networks.py").write_text(
            NETWORKS.read_text().replace(
                "k)\n    size", "k)\n    k = keras.layers.BatchNormalization()(k)\n    size"
            )
        ),
        ("architecture: ", "the critic of build must value each example by itself"),
    ),
    "a missing file of code": (
        lambda mine: (mine / "my_networks.py").unlink(),
        ("space.yaml:10: train.architecture: ", "my_networks.py cannot be read: No such file"),
    ),
    "a folder that is gone": (
        lambda mine: shutil.rmtree(mine / "pictures"),
        ("space.yaml:9: train.dataset: must be mnist5k, ", "there is no "),
    ),
}


@pytest.mark.parametrize(("break_it", "said"), MISTAKES.values(), ids=MISTAKES)
def test_what_cannot_be_trained_is_refused_before_anything_starts(
    own: Any, pictures: str, break_it: Callable[[Path], Any], said: tuple[str, str]
) -> None:
    break_it(own.mine)

    assert own.run("--space", pictures) == 2
    *doing, line = own.output.splitlines()
    assert all(each.startswith("  ") and each.endswith(" ...") for each in doing)
    assert line.startswith(said[0]) and said[1] in line
    assert not own.folder.exists()
