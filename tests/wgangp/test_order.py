"""No weight is read while it changes, whichever thread runs what.

In a run it would show only now and then, as a step that differs from the same step of another run.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import tensorflow as tf

from tests.wgangp.graph_order import disordered, update_of
from wgangp import strategies
from wgangp.config import TrainConfig
from wgangp.prepared import Prepared

ROOT = Path(__file__).parent.parent.parent

Settings = Callable[..., TrainConfig]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"penalty": "one_sided", "flips": True, "lr_schedule": "linear"},
        {"penalty": "zero_centered", "critic_norm": "layer"},
        {"penalty": "r1", "accumulation_steps": 2, "optimizer": "sgd"},
        {"penalty": "clip", "optimizer": "rmsprop", "generator_norm": "batch"},
        {"precision": "float64", "drift": 0.001},
    ],
    ids=lambda changes: ",".join(changes) or "defaults",
)
def test_every_read_comes_before_or_after_every_assignment(
    settings: Settings, prepared: Prepared, changes: dict
) -> None:
    assert disordered(update_of(prepared, settings(**changes))) == []


@pytest.mark.parametrize("strategy", ["mirrored", "split"])
def test_so_it_does_on_two_devices(
    settings: Settings, cache: Path, prepared: Prepared, strategy: str
) -> None:
    order = [str(cache), strategy, settings().model_dump_json()]
    run = subprocess.run(
        [sys.executable, "-m", "tests.wgangp.graph_order", *order], capture_output=True, text=True, cwd=ROOT
    )
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout.splitlines()[-1]) == []


@pytest.fixture
def unmended(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """TensorFlow as it comes."""
    monkeypatch.setattr(strategies, "configure", lambda **threads: None)
    tf.config.optimizer.set_experimental_options({"dependency_optimization": True})
    yield
    tf.config.optimizer.set_experimental_options({"dependency_optimization": False})


@pytest.mark.usefixtures("unmended")
def test_without_our_setting_a_bias_may_change_as_it_is_read(settings: Settings, prepared: Prepared) -> None:
    """If this fails, TensorFlow was mended, and the setting in `strategies.configure` can go."""
    assert [fault for fault in disordered(update_of(prepared, settings())) if "conv" in fault]
