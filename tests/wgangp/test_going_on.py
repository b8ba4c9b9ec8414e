"""A checkpoint is exact: four ticks are two ticks, a fresh process, and two more; under another strategy too.

On one thread the two are equal bit by bit. A tick here is two generator steps of two critic steps each.
"""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.wgangp.under import Runner, Trained, assert_same
from wgangp.config import TrainConfig
from wgangp.losses import PENALTIES

FOUR_TICKS = {
    **{"tick_kimg": 0.128, "budget_kimg": 0.512, "adam_beta1": 0.5, "drift": 1e-3, "weight_clip": 0.1},
    **{"critic_lr": 2e-3, "generator_lr": 2e-3, "init_seed": 0, "evaluation_seed": 0},
}
EVERY = list(itertools.product(PENALTIES, ("adam", "rmsprop", "sgd")))

Settings = Callable[..., TrainConfig]


def chosen(settings: Settings, **changes: Any) -> dict[str, Any]:
    return settings(**{**FOUR_TICKS, **changes}).model_dump(mode="json")


def assert_goes_on(unbroken: Trained, resumed: Trained, *, within: float) -> None:
    """`resumed` has the metrics of the last two ticks only."""
    last = {name: values[-2:] for name, values in unbroken.progress.items()}
    assert_same(Trained(end=unbroken.end, progress=last, counts=unbroken.counts), resumed, within=within)
    assert unbroken.counts == {"critic_steps": 16, "generator_steps": 8}
    assert any(not np.array_equal(array, unbroken.begin[key]) for key, array in unbroken.end.items())


@pytest.mark.slow
def test_every_penalty_and_optimizer_goes_on_bitwise_in_a_fresh_process(
    under: Runner, settings: Settings, tmp_path: Path
) -> None:
    runs = [
        {
            "name": f"{penalty}-{optimizer}",
            "strategy": "one_device",
            "settings": chosen(settings, penalty=penalty, optimizer=optimizer),
        }
        for penalty, optimizer in EVERY
    ]
    unbroken = under.alone(*({**run, "save": str(tmp_path / run["name"]), "save_at": 2} for run in runs))
    resumed = under.alone(*({**run, "load": str(tmp_path / run["name"]), "ticks": 2} for run in runs))
    assert len(unbroken) == len(EVERY)
    for name, run in unbroken.items():
        assert_goes_on(run, resumed[name], within=0)


OWN = f"{Path(__file__).with_name('own_networks.py')}:build"
WAYS: dict[str, dict[str, Any]] = {
    "rates that fall": {"lr_schedule": "linear"},
    "mirror images": {"flips": True},
    "norms": {"generator_norm": "batch", "critic_norm": "layer", "activation": "silu"},
    "no average": {"ema_decay": 0.0},
    "residual blocks": {"architecture": "resnet", "image_size": 32, "generator_norm": "batch", "width": 2},
    "networks of one's own": {"architecture": OWN, "options": {"layers": 3}},
}


@pytest.mark.slow
def test_every_network_and_schedule_goes_on_bitwise_in_a_fresh_process(
    under: Runner, settings: Settings, tmp_path: Path
) -> None:
    runs = [
        {"name": way, "strategy": "one_device", "settings": chosen(settings, **changes)}
        for way, changes in WAYS.items()
    ]
    unbroken = under.alone(*({**run, "save": str(tmp_path / run["name"]), "save_at": 2} for run in runs))
    resumed = under.alone(*({**run, "load": str(tmp_path / run["name"]), "ticks": 2} for run in runs))
    plain = under.alone({"name": "plain", "strategy": "one_device", "settings": chosen(settings)})["plain"]
    for way, run in unbroken.items():
        assert_goes_on(run, resumed[way], within=0)
        assert not np.array_equal(run.progress["fid"], plain.progress["fid"]), way


@pytest.mark.multi_process
def test_a_checkpoint_of_one_strategy_goes_on_under_another(
    under: Runner, settings: Settings, tmp_path: Path
) -> None:
    """Made on one device, two mirrored replicas and two processes, each goes on under all the others."""
    base = chosen(settings, precision="float64")

    trained_under: dict[str, Callable[..., dict[str, Trained]]] = {
        "one_device": under.alone,
        "mirrored": lambda *runs: under.alone(*runs, devices=2),
        "multi_worker": under.in_step,
    }

    def run(strategy: str, name: str, **more: Any) -> dict[str, Any]:
        cpus = 2 if strategy == "mirrored" else 1
        return {"name": name, "strategy": strategy, "cpus": cpus, "settings": base, **more}

    for strategy, train in trained_under.items():
        made = train(run(strategy, "made", save=str(tmp_path / strategy), save_at=2))
        if strategy == "one_device":
            unbroken = made["made"]
    for strategy, train in trained_under.items():
        resumed = train(*(run(strategy, of, load=str(tmp_path / of), ticks=2) for of in trained_under))
        for trained in resumed.values():
            assert_goes_on(unbroken, trained, within=1e-8)


@pytest.mark.multi_process
def test_parameter_servers_take_up_a_checkpoint_and_leave_one(
    under: Runner, settings: Settings, tmp_path: Path
) -> None:
    """Steps are counted on; the numbers are those of no other run."""
    base = {"settings": chosen(settings), "strategy": "one_device", "ticks": 2}
    first = under.alone({**base, "name": "a", "save": str(tmp_path / "a"), "save_at": 2})["a"]
    asynchronous = {
        **base,
        "name": "b",
        "strategy": "parameter_server",
        "ticks": 1,
        "load": str(tmp_path / "a"),
    }
    second = under.asynchronously({**asynchronous, "save": str(tmp_path / "b"), "save_at": 3})["b"]
    third = under.alone({**base, "name": "c", "load": str(tmp_path / "b"), "ticks": 1})["c"]

    assert [run.counts["generator_steps"] for run in (first, second, third)] == [4, 6, 8]
    assert int(third.end["critic_optimizer/0"]) == 16
    for run in (second, third):
        assert np.isfinite(run.progress["fid"]).all()
