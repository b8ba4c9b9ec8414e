"""Gangs of a scripted trainer, whose members wait for each other as TensorFlow's do: for ever."""

import os
import re
import signal
import time
from collections import Counter
from typing import Any

import pytest

from tests.processes import alive, controllers, member, members, of_sweep, titled, until
from tests.real_cluster import RunningCluster
from tests.real_sweep import PATIENCE

TWO = ("--set", "resources.workers=2")
DIED = "worker 2 of 2: the process died (killed, or it crashed)"
SECONDS = 10
"""Within which a failure is noticed and a gang is gone, on a machine that is busy with other tests."""


def ticks_of(sweep: Any) -> Counter:
    return Counter((tick["member"], tick["gp_weight"], tick["tick"]) for tick in sweep.ticks())


def each_once(*weights: int) -> Counter:
    return Counter(
        (f"worker {index}", weight, tick) for index in (0, 1) for weight in weights for tick in range(1, 5)
    )


def test_a_gang_trains_one_trial_after_another_and_stays_warm(sweep: Any, space: str) -> None:
    assert sweep.run("--space", space, *TWO) == 0, sweep.output

    assert "each trial: multi_worker, 2 workers of 1 CPUs, 0 GPUs, 2 replica(s)" in sweep.output
    assert ticks_of(sweep) == each_once(1, 2, 3)
    assert len({tick["pid"] for tick in sweep.ticks()}) == 2
    sweep.assert_everything_agrees()
    sweep.assert_nothing_is_open(trials=3)


def test_a_member_killed_in_a_tick_ends_its_gang_at_once_and_the_trial_goes_on_whole(
    sweep: Any, space: str
) -> None:
    sweep.script(faults={2: [{"tick": 3, "do": "hang", "seconds": 30, "member": "worker 1", "times": 1}]})
    process = sweep.start("--space", space, *TWO)
    until(lambda: sweep.fired() == ["2-3-hang-1"])
    time.sleep(0.5)
    gang = [member(sweep, 2, f"worker {index}") for index in (0, 1)]
    assert len(alive(gang)) == 2
    gang[1].kill()
    seconds = until(lambda: not alive(gang), seconds=SECONDS)
    print(f"{seconds:.1f} s from the death of one to the end of the other")
    again = until(lambda: members(sweep))
    print(f"and {again:.1f} s more to the first process of the next")
    sweep.output, _ = process.communicate(timeout=PATIENCE)

    assert process.returncode == 0, sweep.output
    assert f"t002: attempt 1 ended: {DIED}; it will be tried again" in sweep.output
    assert ticks_of(sweep) == each_once(1, 2, 3)  # none is lost, none is trained twice
    attempts = {label: len(trial.user_attrs["attempts"]) for label, trial in sweep.trials().items()}
    assert attempts == {"t001": 1, "t002": 2, "t003": 1}
    sweep.assert_everything_agrees()
    sweep.assert_nothing_is_open(trials=3)


@pytest.mark.parametrize("strategy", ["auto", "parameter_server"])
def test_a_member_that_does_not_answer_is_ended_with_its_gang(sweep: Any, space: str, strategy: str) -> None:
    """Stopped, as one that is swapped out: it neither dies nor goes on."""
    leads = {"auto": "worker 0", "parameter_server": "chief 0"}[strategy]
    sweep.script(faults={1: [{"tick": 2, "do": "hang", "seconds": 300, "member": leads, "times": 1}]})
    process = sweep.start("--space", space, *TWO, "--set", f"resources.strategy={strategy}")
    until(lambda: sweep.fired() == ["1-2-hang-1"])
    gang = members(sweep)
    leader = member(sweep, 1, leads)
    next(one for one in gang if one.pid != leader.pid).suspend()
    seconds = until(lambda: not alive(gang), seconds=120)  # of the 300 that it would hang
    print(f"{seconds:.1f} s until the gang was gone")
    sweep.output, _ = process.communicate(timeout=PATIENCE)

    assert process.returncode == 0, sweep.output
    said = (
        r"t001: attempt 1 ended: (worker . of 2|parameter server): the process has not answered for 20 s; it"
    )
    assert re.search(said, sweep.output), sweep.output
    sweep.assert_everything_agrees()


@pytest.mark.parametrize("which", ["worker 0", "worker 1"])
def test_a_member_that_raises_ends_its_gang_with_its_words(sweep: Any, space: str, which: str) -> None:
    sweep.script(faults={1: [{"tick": 2, "do": "raise", "member": which, "times": 1}]})
    assert sweep.run("--space", space, *TWO) == 0, sweep.output

    name = {"worker 0": "worker 1 of 2", "worker 1": "worker 2 of 2"}[which]
    assert f"t001: attempt 1 ended: {name}: RuntimeError: the script says so at length;" in sweep.output
    assert ticks_of(sweep)["worker 0", 1, 2] == 1 and ticks_of(sweep)["worker 0", 1, 1] == 1
    sweep.assert_everything_agrees()


def test_a_member_that_eats_the_memory_costs_its_trial_an_attempt(sweep: Any, space: str) -> None:
    order = {"tick": 2, "do": "allocate", "megabytes": sweep.run_short_of_memory(), "times": 1}
    sweep.script(faults={1: [{**order, "member": "worker 1"}]})
    assert sweep.run("--space", space, *TWO) == 0, sweep.output

    assert sweep.fired() == ["1-2-allocate-1"]
    assert "t001: attempt 1 ended: " in sweep.output and "ended because memory ran out;" in sweep.output
    sweep.assert_everything_agrees()


def test_a_damaged_checkpoint_is_no_failure_of_the_gang(sweep: Any, space: str) -> None:
    sweep.script(faults={1: [{"tick": 3, "do": "wait"}]})
    process = sweep.start("--space", space, *TWO, "--trials", "3")
    until(lambda: sweep.fired() == ["1-3-wait-1"])
    until(lambda: _saved(sweep) == 2)
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=PATIENCE)
    (newest, _), _ = sweep.trials()["t001"].user_attrs["checkpoints"]
    (sweep.folder / newest / "tick.npy").write_bytes(b"half")
    sweep.script()
    assert sweep.run("--resume", "scripted-0001") == 0, sweep.output

    assert "is damaged; it goes on after 9 kimg" in sweep.output
    assert ticks_of(sweep)["worker 1", 1, 2] == 2 and ticks_of(sweep)["worker 1", 1, 1] == 1
    assert [len(trial.user_attrs["attempts"]) for trial in sweep.trials().values()] == [2, 1, 1]
    sweep.assert_everything_agrees()


def _saved(sweep: Any) -> int:
    trial = sweep.trials().get("t001")
    return trial.user_attrs.get("checkpoints", [[None, 0]])[0][1] if trial else 0


@pytest.mark.parametrize("end", ["the driver is killed", "Ctrl-C", "the controller is killed"])
def test_no_member_outlives_what_it_works_for(sweep: Any, space: str, end: str) -> None:
    sweep.script(faults={1: [{"tick": 2, "do": "hang", "seconds": 600, "member": "worker 1", "times": 1}]})
    process = sweep.start("--space", space, *TWO)
    until(lambda: sweep.fired() == ["1-2-hang-1"])
    gang = members(sweep)
    (controller,) = controllers(sweep)
    assert len(gang) == 2
    match end:
        case "the driver is killed":
            process.kill()
        case "Ctrl-C":
            os.killpg(process.pid, signal.SIGINT)
        case _:
            controller.kill()
    seconds = until(lambda: not alive(gang), seconds=SECONDS)
    print(f"{seconds:.1f} s until no member was left")
    sweep.output, _ = process.communicate(timeout=PATIENCE)

    if end == "the controller is killed":  # the same as the death of a worker that trains by itself
        assert process.returncode == 0, sweep.output
        assert "t001: attempt 1 ended: the worker process died (killed, or it crashed);" in sweep.output
        assert ticks_of(sweep) == each_once(1, 2, 3)
    else:
        until(lambda: not of_sweep(sweep, ""), seconds=SECONDS)
        sweep.script()
        assert sweep.run("--resume", "scripted-0001") == 0, sweep.output
    sweep.assert_everything_agrees()
    sweep.assert_nothing_is_open(trials=3)


def test_more_than_the_machine_has_is_refused_before_anything_is_made(sweep: Any, space: str) -> None:
    there = os.cpu_count()
    more = (f"resources.workers={there + 1}", f"train.batch_size={8 * (there + 1)}")
    assert sweep.run("--space", space, "--set", more[0], "--set", more[1]) == 2

    (*_, line) = sweep.output.splitlines()
    assert f"resources.cpus: must be at most the {there} CPUs of this cluster" in line
    assert line.endswith(f"got cpus x workers = 1 x {there + 1} = {there + 1}")
    assert "Traceback" not in sweep.output and not sweep.folder.exists()


@pytest.fixture
def two_gangs(sweep: Any, space: str, four_cpus: RunningCluster) -> Any:
    """A sweep with two gangs at work, on a cluster that outlives it: trial 1 hangs in its second tick."""
    hang = {"tick": 2, "do": "hang", "seconds": 600, "member": "worker 1", "times": 1}
    sweep.script(faults={1: [hang]}, seconds=0.3)
    sweep.environment |= four_cpus.join
    process = sweep.start("--space", space, *TWO, "--trials", "6")
    until(lambda: sweep.fired() == ["1-2-hang-1"])
    yield process
    assert four_cpus.head.is_running()


def test_one_gang_fails_while_another_trains_on(
    sweep: Any, two_gangs: Any, four_cpus: RunningCluster
) -> None:
    until(lambda: {tick["gp_weight"] for tick in sweep.ticks()} >= {1, 2, 3})  # trial 1 hangs all along
    assert len(titled("ray::Member", four_cpus.head.children(recursive=True))) == 4
    others = {tick["pid"] for tick in sweep.ticks() if tick["gp_weight"] > 1}
    assert len(others) == 2
    member(sweep, 1, "worker 1").kill()
    sweep.output, _ = two_gangs.communicate(timeout=PATIENCE)

    assert two_gangs.returncode == 0, sweep.output
    assert f"t001: attempt 1 ended: {DIED}; it will be tried again" in sweep.output
    assert sorted(len(trial.user_attrs["attempts"]) for trial in sweep.trials().values()) == [1] * 5 + [2]
    assert others <= {tick["pid"] for tick in sweep.ticks() if tick["gp_weight"] > 3}  # warm as before
    sweep.assert_everything_agrees()
    sweep.assert_nothing_is_open(trials=6)
    until(lambda: not titled("ray::Member", four_cpus.head.children(recursive=True)), seconds=SECONDS)


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGKILL])
def test_no_member_stays_on_a_cluster_that_goes_on(
    sweep: Any, two_gangs: Any, four_cpus: RunningCluster, stop: signal.Signals
) -> None:
    until(lambda: {tick["gp_weight"] for tick in sweep.ticks()} >= {1, 2})
    gangs = titled("ray::Member", four_cpus.head.children(recursive=True))
    assert len(gangs) == 4
    two_gangs.send_signal(stop)
    seconds = until(lambda: not alive(gangs), seconds=SECONDS)
    print(f"{seconds:.1f} s until no member was left")
    two_gangs.communicate(timeout=PATIENCE)
    until(lambda: not titled("ray::Member", four_cpus.head.children(recursive=True)), seconds=SECONDS)
