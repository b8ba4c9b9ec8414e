"""The study opened again: running trials are taken up, failed ones cloned, endings told once."""

from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest
from optuna.trial import TrialState

from sweeps.records import Ending, Metrics
from sweeps.study import SweepStudy

OpenStudy = Callable[..., SweepStudy]
Play = Callable[..., Ending | None]
ONCE = ("sweep.retries=0", "sweep.trials=2")


def test_a_running_trial_is_taken_up_with_its_history(
    open_study: OpenStudy, play: Play, save: Callable[..., Path]
) -> None:
    study = open_study("enqueue=[{gp_weight: 10}]")
    first = study.ask()
    play(study, "t001", 50, 40, 30)
    before, newest = save(study, "t001", 2), save(study, "t001", 3)

    again = open_study("enqueue=[{gp_weight: 10}]")
    assignment = again.ask()
    assert (assignment.label, assignment.attempt, assignment.baseline) == ("t001", 2, True)
    assert (assignment.params, assignment.config) == (first.params, first.config)
    assert assignment.checkpoints == [newest, before]
    assert assignment.core_seconds == {1: 10, 2: 20, 3: 30}
    assert play(again, "t001", 20, *[25] * 5, first=4) == Ending("complete")
    again.end("t001")
    (trial,) = again._study.get_trials()
    assert (trial.number, trial.value) == (0, 20)
    assert list(trial.intermediate_values.values()) == [50, 40, 30, *[20] * 6]


def test_interrupted_trials_come_before_new_ones_and_in_order(open_study: OpenStudy) -> None:
    study = open_study("sweep.trials=4")
    [study.ask() for _ in range(3)]

    again = open_study("sweep.trials=4")
    assert [again.ask().label for _ in range(4)] == ["t001", "t002", "t003", "t004"]
    assert [record.ending for record in again.final_records()] == [Ending("interrupted")] * 4


def test_a_failed_trial_is_cloned_with_all_that_was_recorded(
    open_study: OpenStudy, play: Play, save: Callable[..., Path]
) -> None:
    study = open_study(*ONCE)
    params = study.ask().params
    play(study, "t001", 50, 40, 30, 30)
    path = save(study, "t001", 4)
    study.fail("t001", reason="killed")
    failed = study.record("t001")

    again = open_study(*ONCE)
    assert again.records()[0].ending == Ending("failed", "killed")
    assignment = again.ask()
    (clone,) = again._study.get_trials()
    old = again._study._storage.get_trial(again._study._storage.get_trial_id_from_study_id_trial_number(0, 0))
    assert (old.state, clone.number, clone.state) == (TrialState.FAIL, 1, TrialState.RUNNING)
    assert (assignment.label, assignment.attempt, assignment.params) == ("t001", 2, params)
    assert assignment.checkpoints == [path]
    assert clone.intermediate_values == {1: 50, 2: 40, 3: 30, 4: 30}
    assert clone.system_attrs == {"completed_rung_0": 50, "completed_rung_1": 30}
    assert again.record("t001").ticks == failed.ticks
    assert (again.record("t001").ending, again.record("t001").last_error) == (None, "killed")
    assert [again.ask().label, again.ask()] == ["t002", None]


def test_a_clone_does_not_compete_with_itself(open_study: OpenStudy, play: Play) -> None:
    overrides = ("sweep.retries=0", "sweep.trials=7")
    study = open_study(*overrides)
    for fid in (40, 50, 60, 70, 80):
        label = study.ask().label
        if play(study, label, fid):
            study.end(label)
    study.fail("t001", reason="killed")

    again = open_study(*overrides)
    assert again.ask().label == "t001"
    # 45 is second of six; were 40 there twice, it would be third of seven
    assert play(again, again.ask().label, 45) is None


def test_a_trial_may_fail_and_be_cloned_again_and_again(open_study: OpenStudy, play: Play) -> None:
    for tick, fid in enumerate((50, 40, 30), start=1):
        study = open_study("sweep.retries=0", "sweep.trials=1")
        assert (study.trials_wanted, study.ask().attempt) == (1, tick)
        assert study.record("t001").tick == tick - 1
        play(study, "t001", fid, first=tick)
        study.fail("t001", reason=f"fault {tick}")

    (record,) = open_study("sweep.retries=0", "sweep.trials=1").records()
    assert (record.attempt, record.last_error, record.best_fid) == (3, "fault 3", 30)


def test_checkpoints_that_were_never_recorded_are_deleted(
    open_study: OpenStudy, save: Callable[..., Path]
) -> None:
    study = open_study()
    study.ask()
    kept = [save(study, "t001", 1), save(study, "t001", 2, start=2)]
    lost = [path.with_name(f"checkpoint_00000{number}") for number, path in enumerate(kept, start=7)]
    for path in lost:
        path.mkdir()

    again = open_study()
    again.drop_unrecorded_checkpoints()
    assert [path.exists() for path in (*kept, *lost)] == [True, True, False, False]


@pytest.mark.parametrize(
    ("saved", "state", "handed_out"),
    [
        ([1, 2], TrialState.RUNNING, "t001"),
        ([2, 3], TrialState.PRUNED, "t002"),
        ([], TrialState.RUNNING, "t001"),
    ],
)
def test_an_ending_is_told_at_the_next_start_only_if_its_checkpoint_was_recorded(
    open_study: OpenStudy,
    measured: Callable[..., Metrics],
    save: Callable[..., Path],
    saved: list[int],
    state: TrialState,
    handed_out: str,
) -> None:
    study = open_study("pruner.name=none", "sweep.trials=2")
    study.ask()
    said = Ending("diverged", "dead critic")
    for tick in (1, 2, 3):
        study.report("t001", tick=tick, metrics=measured(9, tick), ending=said if tick == 3 else None)
    for tick in saved:
        save(study, "t001", tick)

    again = open_study("pruner.name=none", "sweep.trials=2")
    assert again.record("t001").ending == (None if state == TrialState.RUNNING else said)
    assert again._study.get_trials()[0].state == state
    assert again.ask().label == handed_out
    if state == TrialState.RUNNING:  # the tick done again changes nothing, then the checkpoint is there
        assert again.report("t001", tick=3, metrics=measured(1, 3), ending=None) == said
        assert again.record("t001").best_fid == 9
        assert again.end("t001") == said
    assert again.record("t001").ending == said


@pytest.mark.parametrize("said", [Ending("complete"), Ending("diverged", "dead critic")])
def test_a_trial_that_failed_after_its_last_tick_ends_as_it_was_told(
    open_study: OpenStudy, measured: Callable[..., Metrics], said: Ending
) -> None:
    study = open_study(*ONCE)
    study.ask()
    assert study.report("t001", tick=1, metrics=measured(50, 1), ending=said) == said
    study.fail("t001", reason="the disk was full")  # while the checkpoint of that tick was written

    again = open_study(*ONCE)
    assert again.record("t001").ending == Ending("failed", "the disk was full")
    again.ask()
    assert again.record("t001").ending is None
    assert again.report("t001", tick=1, metrics=measured(50, 1), ending=said) == said
    assert again.end("t001") == said
    assert again.record("t001").ending == said


@pytest.mark.parametrize("said", [Ending("complete"), Ending("diverged", "dead critic")])
def test_a_trial_that_failed_with_all_recorded_is_only_told_at_the_next_start(
    open_study: OpenStudy, measured: Callable[..., Metrics], save: Callable[..., Path], said: Ending
) -> None:
    study = open_study(*ONCE)
    study.ask()
    study.report("t001", tick=1, metrics=measured(50, 1), ending=said)
    path = save(study, "t001", 1)
    study.fail("t001", reason="killed")

    for _ in range(2):
        again = open_study(*ONCE)
        (record,) = again.records()
        assert (record.ending, record.attempt, record.checkpoints) == (said, 1, [path])
        assert again._study.get_trials(states=(TrialState.FAIL,)) == []
        assert again.live == []
    assert again.ask().label == "t002"


@pytest.mark.parametrize("first", [Ending("diverged", "fid is not finite"), Ending("complete")])
def test_an_ending_counts_only_for_the_report_that_gave_it(
    open_study: OpenStudy,
    measured: Callable[..., Metrics],
    monkeypatch: pytest.MonkeyPatch,
    first: Ending,
) -> None:
    study = open_study()
    study.ask()
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(study._live["t001"], "set_user_attr", Mock(side_effect=KeyboardInterrupt))
        study.report("t001", tick=1, metrics=measured(50, 1), ending=first)  # the driver died in it

    again = open_study()
    again.ask()
    assert again.report("t001", tick=1, metrics=measured(50, 1), ending=None) is None
    assert again.record("t001").ending is None
