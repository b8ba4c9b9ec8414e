"""A gang, used as a trainer is used, with a trainer that follows a script."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import ray

from sweeps.cluster import MUTE, OURS, ROOT
from sweeps.disk import DiskFull
from sweeps.gang import GangTrainer
from sweeps.records import TrialFailed
from sweeps.resources import Resources
from tests import scripted_trainer
from tests.processes import titled, until
from wgangp.checkpoints import CheckpointError
from wgangp.config import TrainConfig

CONFIG = TrainConfig(budget_kimg=36, tick_kimg=9, gp_weight=7)


@pytest.fixture(scope="module")
def four_cpus() -> Iterator[None]:
    environment = {"env_vars": {"PYTHONPATH": str(ROOT)}}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in OURS.items():
            patch.setenv(name, value)
        ray.init(address="local", num_cpus=4, include_dashboard=False, runtime_env=environment, **MUTE)
        yield
        ray.shutdown()


@pytest.fixture
def gangs(tmp_path: Path, four_cpus: None) -> Iterator[Any]:
    prepared = scripted_trainer.prepare(CONFIG, cache=tmp_path, say=lambda line: None)
    made = []

    def gang(**resources: Any) -> GangTrainer:
        two = Resources(**({"workers": 2} | resources))
        arguments = {"trainer": "tests.scripted_trainer", "roles": two.roles, "resources": two.of_each}
        made.append(GangTrainer(ray.put(prepared), **arguments))
        return made[-1]

    yield gang
    for each in made:
        each.end()


def ticks(folder: Path) -> list[tuple[str, int]]:
    lines = (folder / "ticks.jsonl").read_text().splitlines()
    return [(tick["member"], tick["tick"]) for tick in map(json.loads, lines)]


def pids(folder: Path) -> dict[str, int]:
    """The process that did the last tick, by member."""
    lines = (folder / "ticks.jsonl").read_text().splitlines()
    return {tick["member"]: tick["pid"] for tick in map(json.loads, lines)}


def order(folder: Path, **fault: Any) -> None:
    (folder / "script.json").write_text(json.dumps({"faults": {"7": [{"times": 1} | fault]}}))


def test_all_train_and_the_first_tells_of_it_and_saves(gangs: Any, tmp_path: Path) -> None:
    gang = gangs()
    gang.start(CONFIG)
    assert [gang.advance().tick for _ in range(2)] == [1, 2]
    assert sorted(ticks(tmp_path)) == [(f"worker {n}", tick) for n in (0, 1) for tick in (1, 2)]
    assert gang.tick == 2

    gang.save(tmp_path)
    gang.start(CONFIG)
    assert gang.tick == 0
    gang.load(tmp_path)
    assert gang.tick == 2 and gang.advance().tick == 3
    gang.forget()
    assert 10e6 < gang.resident_bytes() < 2e9
    assert sorted(ticks(tmp_path))[-1] == ("worker 1", 3)


def test_a_damaged_checkpoint_leaves_the_gang_as_it_is(gangs: Any, tmp_path: Path) -> None:
    gang = gangs()
    gang.start(CONFIG)
    (tmp_path / "tick.npy").write_bytes(b"half")
    with pytest.raises(CheckpointError, match=f"^{tmp_path} is damaged$"):
        gang.load(tmp_path)
    np.save(tmp_path / "tick.npy", 3)
    gang.load(tmp_path)
    assert gang.advance().tick == 4


def test_a_member_that_dies_idle_is_no_fault_of_the_next_trial(gangs: Any, tmp_path: Path) -> None:
    gang = gangs()
    gang.start(CONFIG)
    gang.advance()
    first = pids(tmp_path)
    psutil.Process(first["worker 1"]).kill()
    until(lambda: not psutil.pid_exists(first["worker 1"]), seconds=10)
    until(lambda: ray.wait(gang._watches, timeout=0)[0], seconds=10)
    gang.start(CONFIG)
    gang.advance()

    assert not first.keys() ^ pids(tmp_path).keys()
    assert not set(first.values()) & set(pids(tmp_path).values())
    assert not psutil.pid_exists(first["worker 0"])


@pytest.mark.parametrize(
    ("fault", "kind", "said"),
    [
        ({"do": "kill"}, TrialFailed, "worker 2 of 2: the process died (killed, or it crashed)"),
        ({"do": "raise"}, TrialFailed, "worker 2 of 2: RuntimeError: the script says so at length"),
        ({"do": "full"}, DiskFull, "OSError: [Errno 28] No space left on device"),
    ],
)
def test_what_befalls_one_ends_all_in_one_line(
    gangs: Any, tmp_path: Path, fault: dict, kind: type[Exception], said: str
) -> None:
    gang = gangs()
    gang.start(CONFIG)
    gang.advance()
    there = pids(tmp_path)
    order(tmp_path, tick=2, member="worker 1", **fault)
    with pytest.raises(kind) as caught:
        gang.advance()

    assert str(caught.value) == said and caught.value.__cause__ is None
    until(lambda: not [pid for pid in there.values() if psutil.pid_exists(pid)], seconds=2)


def test_a_gang_that_cannot_be_set_up_leaves_no_process(gangs: Any, tmp_path: Path) -> None:
    (tmp_path / "script.json").write_text(json.dumps({"broken_builds": 1}))
    with pytest.raises(TrialFailed, match=r"^worker 1 of 2: RuntimeError: the script wants no trainer$"):
        gangs()
    until(lambda: not titled("ray::Member", psutil.Process().children(recursive=True)), seconds=5)


def test_two_gangs_at_once_meet_at_different_places(gangs: Any, tmp_path: Path) -> None:
    one, other = gangs(), gangs()
    for gang in (one, other):
        gang.start(CONFIG)
        gang.advance()
    assert sorted(ticks(tmp_path)) == [("worker 0", 1)] * 2 + [("worker 1", 1)] * 2


def test_a_parameter_server_is_served_at_the_addresses_of_its_gang(gangs: Any, tmp_path: Path) -> None:
    gang = gangs(strategy="parameter_server")
    gang.start(CONFIG)
    assert gang.advance().tick == 1
    assert ticks(tmp_path) == [("chief 0", 1)]
    assert gang._names == ["chief", "parameter server", "worker 1 of 2", "worker 2 of 2"]
