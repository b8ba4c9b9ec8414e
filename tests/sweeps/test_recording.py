"""What the callback writes down, with a real study and outbox and little trials in place of Ray's."""

import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ray import cloudpickle

from sweeps.folder import SweepFolder
from sweeps.outbox import Outbox
from sweeps.recording import Recorder
from sweeps.records import Assignment, Ending, Metrics
from sweeps.study import SweepStudy

OpenStudy = Callable[..., SweepStudy]
SPACE = ("sweep.trials=2", "sweep.retries=0", "pruner.name=none")
UNDER = "ray 2.60.0, commit 1a2b3c"


class Driver:
    """The order of calls in which Tune drives a trial."""

    def __init__(self, study: SweepStudy, outbox: Outbox) -> None:
        self.study, self.outbox = study, outbox
        self.recorder = Recorder(study, outbox, under=UNDER, tags={"trained_on": "mirrored"})

    def start(self) -> Assignment:
        assignment = self.study.ask()
        assert assignment
        self.recorder.on_trial_start(1, [], _trial(assignment))
        return assignment

    def tick(self, assignment: Assignment, tick: int, metrics: Metrics, ending: Ending | None = None) -> None:
        self.study.report(assignment.label, tick=tick, metrics=metrics, ending=ending)
        result = {"label": assignment.label, "tick": tick, "measured_ms": 1000 + tick, "metrics": metrics}
        result |= {"samples": f"picture {tick}".encode()}
        self.recorder.on_trial_result(1, [], _trial(assignment), result)
        assert "samples" not in result
        if ending:
            self.study.end(assignment.label)
            self.recorder.on_trial_complete(1, [], _trial(assignment))

    def fail(self, assignment: Assignment, reason: str) -> None:
        self.study.fail(assignment.label, reason=reason)
        self.recorder.on_trial_error(1, [], _trial(assignment))

    def written(self, trial: str | None) -> list[dict[str, Any]]:
        return [line for line, _ in self.outbox.waiting(most=1000) if line["trial"] == trial]


def _trial(assignment: Assignment) -> SimpleNamespace:
    return SimpleNamespace(config={"assignment": assignment})


@pytest.fixture
def drive(open_study: OpenStudy, folder: SweepFolder) -> Callable[..., Driver]:
    """Opens study and outbox, as each start does."""
    return lambda *overrides: Driver(open_study(*SPACE, *overrides), Outbox(folder.outbox))


def test_a_start_records_all_settings_and_what_the_trial_is(drive: Callable[..., Driver]) -> None:
    driver = drive("enqueue=[{gp_weight: 10}]")
    assignment = driver.start()
    driver.start()

    (line,) = driver.written("t001")
    assert line["params"] == assignment.config.model_dump()
    assert line["params"]["gp_weight"] == 10
    tags = {"attempt": 1, "attempt_1": UNDER, "trained_on": "mirrored"}
    assert (line["tags"], line["status"]) == ({**tags, "baseline": True}, "RUNNING")
    assert driver.written("t002")[0]["tags"] == {**tags, "baseline": False}


def test_a_tick_keeps_the_time_it_was_measured_at_its_step_and_its_finite_numbers(
    drive: Callable[..., Driver], measured: Callable[..., Metrics]
) -> None:
    driver = drive()
    assignment = driver.start()
    metrics = measured(50, 1, critic_loss=math.inf, wasserstein=-2)
    driver.tick(assignment, 1, metrics)
    driver.tick(assignment, 1, metrics)

    _, line = driver.written("t001")
    assert (line["time"], line["step"], line["tick"]) == (1001, 1000, 1)
    assert line["mark"] == 1000 * assignment.config.tick_kimg  # the same for all trials
    assert line["metrics"] == {"fid": 50, "core_seconds": 10, "images_seen": 1000, "wasserstein": -2}
    assert (driver.outbox.folder / line["samples"]).read_bytes() == b"picture 1"


def test_an_end_records_outcome_reason_status_and_the_best_so_far(
    drive: Callable[..., Driver], measured: Callable[..., Metrics]
) -> None:
    driver = drive()
    first = driver.start()
    driver.tick(first, 1, measured(50, 1), Ending("diverged", "dead critic"))
    assert driver.written(None) == []  # no trial is complete
    second = driver.start()
    driver.tick(second, 1, measured(40, 1), Ending("complete"))

    said = {"verdict": "dead critic", "evidence": "dead critic"}
    assert driver.written("t001")[-1]["tags"] == {"outcome": "diverged", "reason": "dead critic"} | said
    assert [driver.written(label)[-1]["status"] for label in ("t001", "t002")] == ["FINISHED", "FINISHED"]
    (best,) = driver.written(None)
    assert (best["step"], best["metrics"]) == (2, {"best_fid": 40})
    settings = {f"best_{name}": value for name, value in second.params.items()}
    assert best["tags"] == {"best_trial": "t002"} | settings


def test_a_fault_is_a_reason_while_it_is_retried_and_an_outcome_at_last(drive: Callable[..., Driver]) -> None:
    driver = drive("sweep.retries=1")
    driver.fail(driver.start(), "killed")
    retried = driver.written("t001")[-1]
    assert "status" not in retried
    assert retried["tags"] == {"reason": "attempt 1 failed, to be tried again: killed"}

    driver.fail(driver.start(), "killed again")
    last = driver.written("t001")[-1]
    assert (last["status"], last["tags"]) == ("FAILED", {"outcome": "failed", "reason": "killed again"})
    assert driver.written("t001")[-2]["tags"]["attempt"] == 2


def test_an_interrupted_sweep_interrupts_its_live_trials_only(
    drive: Callable[..., Driver], measured: Callable[..., Metrics]
) -> None:
    driver = drive()
    driver.recorder.begin_sweep(tags={"git": "abc"}, files=["space.yaml"])
    driver.tick(driver.start(), 1, measured(50, 1), Ending("complete"))
    driver.start()
    driver.recorder.end_sweep("interrupted", tags={"outcome": "interrupted"}, best=None, files=["report.md"])

    begin, _, end = driver.written(None)
    assert (begin["status"], begin["tags"], begin["files"]) == ("RUNNING", {"git": "abc"}, ["space.yaml"])
    assert (end["status"], end["files"]) == ("KILLED", ["report.md"])
    killed = driver.written("t002")[-1]
    assert (killed["status"], killed["tags"]["outcome"]) == ("KILLED", "interrupted")
    assert driver.written("t001")[-1]["status"] == "FINISHED"


@pytest.mark.parametrize(
    ("outcome", "status"), [("complete", "FINISHED"), ("failed", "FAILED"), ("interrupted", "KILLED")]
)
def test_the_status_of_a_sweep_follows_from_its_outcome(
    drive: Callable[..., Driver], outcome: str, status: str
) -> None:
    driver = drive()
    driver.recorder.end_sweep(outcome, tags={"outcome": outcome}, best=None, files=[])

    assert driver.written(None)[-1]["status"] == status


def test_endings_nobody_could_write_down_are_caught_up_with_once(
    drive: Callable[..., Driver], measured: Callable[..., Metrics]
) -> None:
    driver = drive()
    driver.start()
    driver.study.report("t001", tick=1, metrics=measured(50, 1), ending=Ending("complete"))
    driver.study.end("t001")  # and the driver died

    for _ in range(2):
        again = drive()
        again.recorder.begin_sweep(tags={}, files=[])
        endings = [line["tags"] for line in again.written("t001") if line.get("status") == "FINISHED"]
        assert endings == [{"outcome": "complete", "reason": ""}]
        assert [line["metrics"]["best_fid"] for line in again.written(None) if "metrics" in line] == [50]


def test_a_resumed_trial_that_ends_as_before_is_recorded_again(drive: Callable[..., Driver]) -> None:
    driver = drive()
    driver.fail(driver.start(), "first")
    again = drive()
    again.recorder.begin_sweep(tags={}, files=[])
    again.fail(again.start(), "second")

    assert [line["status"] for line in again.written("t001") if "status" in line] == [
        *("RUNNING", "FAILED", "RUNNING", "FAILED")
    ]


def test_tune_can_pickle_the_recorder(drive: Callable[..., Driver]) -> None:
    assert cloudpickle.loads(cloudpickle.dumps(drive().recorder)).__dict__ == {}


def steps_of_the_best(driver: Driver) -> list[tuple[int, float]]:
    lines = [line for line in driver.written(None) if "metrics" in line]
    return [(line["step"], line["metrics"]["best_fid"]) for line in lines]


def test_no_step_of_the_best_so_far_appears_twice(
    drive: Callable[..., Driver], measured: Callable[..., Metrics]
) -> None:
    driver = drive()
    driver.tick(driver.start(), 1, measured(50, 1), Ending("complete"))
    driver.fail(driver.start(), "killed")
    again = drive()
    again.recorder.begin_sweep(tags={}, files=[])
    again.tick(again.start(), 1, measured(40, 1), Ending("complete"))

    assert steps_of_the_best(again) == [(1, 50), (2, 40)]


def test_steps_of_the_best_so_far_count_trials_that_ended_with_an_answer(
    drive: Callable[..., Driver], measured: Callable[..., Metrics]
) -> None:
    driver = drive("sweep.trials=6", "pruner.name=successive_halving")
    driver.tick(driver.start(), 1, measured(50, 1), Ending("complete"))
    driver.fail(driver.start(), "killed")
    driver.tick(driver.start(), 1, measured(9, 1), Ending("diverged", "dead critic"))
    pruned = driver.start()
    driver.tick(pruned, 1, measured(60, 1), Ending("pruned", "not among the best"))
    driver.start()
    driver.tick(driver.start(), 1, measured(40, 1), Ending("complete"))
    driver.recorder.end_sweep("interrupted", tags={"outcome": "interrupted"}, best=None, files=[])

    assert steps_of_the_best(driver) == [(1, 50), (2, 50), (3, 50), (4, 40)]
    best = [
        line["tags"]["best_trial"] for line in driver.written(None) if "best_trial" in line.get("tags", {})
    ]
    assert (best[0], best[-1]) == ("t001", "t006")


def test_endings_caught_up_with_together_are_one_step_of_the_best_so_far(
    drive: Callable[..., Driver], measured: Callable[..., Metrics]
) -> None:
    driver = drive("sweep.trials=3")
    for fid in (50, 40):
        label = driver.start().label
        driver.study.report(label, tick=1, metrics=measured(fid, 1), ending=Ending("complete"))
        driver.study.end(label)  # and the driver died

    again = drive("sweep.trials=3")
    again.recorder.begin_sweep(tags={}, files=[])
    again.tick(again.start(), 1, measured(45, 1), Ending("complete"))
    assert steps_of_the_best(again) == [(2, 40), (3, 40)]


def test_a_trial_stopped_before_it_could_end_is_interrupted_and_caught_up_with(
    drive: Callable[..., Driver], measured: Callable[..., Metrics], save: Callable[..., Path]
) -> None:
    driver = drive()
    driver.start()
    driver.study.report("t001", tick=1, metrics=measured(50, 1), ending=Ending("complete"))
    save(driver.study, "t001", 1)
    driver.recorder.end_sweep("interrupted", tags={"outcome": "interrupted"}, best=None, files=[])
    again = drive()
    again.recorder.begin_sweep(tags={}, files=[])

    outcomes = [line["tags"]["outcome"] for line in again.written("t001") if line.get("status") != "RUNNING"]
    assert outcomes == ["interrupted", "complete"]
    assert steps_of_the_best(again) == [(1, 50)]
