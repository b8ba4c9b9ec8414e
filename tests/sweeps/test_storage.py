import json
import logging
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from optuna.trial import TrialState

from sweeps.folder import SweepFolder
from sweeps.records import Ending
from sweeps.study import SweepStudy

OpenStudy = Callable[..., SweepStudy]
Play = Callable[..., Ending | None]


def assert_whole(folder: SweepFolder, *, begins_with: str) -> None:
    """Every line of the journal can be read, and nothing that stood there is gone."""
    text = folder.journal.read_text()
    assert text.startswith(begins_with) and text.endswith("\n")
    assert all(json.loads(line) for line in text.splitlines())


@pytest.mark.parametrize("torn", ['{"op_code":8,"worker', "\0\0", "x"])
def test_a_torn_last_line_is_cut_and_kept(
    open_study: OpenStudy, play: Play, folder: SweepFolder, caplog: pytest.LogCaptureFixture, torn: str
) -> None:
    study = open_study()
    study.ask()
    play(study, "t001", 50)
    whole = folder.journal.read_text()
    folder.journal.write_text(whole + torn)

    with caplog.at_level(logging.WARNING, logger="sweeps"):
        again = open_study()
    assert_whole(folder, begins_with=whole)
    assert (folder.path / "study.log.torn").read_text() == torn
    assert caplog.messages == ["cut a half-written last line from study.log (kept in study.log.torn)"]
    again.ask()
    assert play(again, "t001", 40, first=2) is None
    assert open_study().record("t001").best_fid == 40


def test_a_journal_that_is_whole_is_left_alone(
    open_study: OpenStudy, folder: SweepFolder, caplog: pytest.LogCaptureFixture
) -> None:
    open_study().ask()
    before = folder.journal.read_text()
    open_study()

    assert_whole(folder, begins_with=before)
    assert not caplog.messages
    assert {path.name for path in folder.path.iterdir()} == {"study.log"}


@pytest.mark.parametrize("target", ["study.log", "moved away"])
def test_a_lock_left_behind_is_removed(
    open_study: OpenStudy, folder: SweepFolder, caplog: pytest.LogCaptureFixture, target: str
) -> None:
    open_study()
    os.symlink(folder.path / target, folder.path / "study.log.lock")

    assert open_study().ask().label == "t001"
    assert not os.path.lexists(folder.path / "study.log.lock")
    assert caplog.messages == ["removed study.log.lock, left behind by a driver that was killed"]


def test_a_failed_trial_is_seen_until_a_retry_has_taken_its_place(open_study: OpenStudy) -> None:
    def seen(study: SweepStudy, *states: TrialState) -> list[tuple[str, TrialState]]:
        trials = study._study.get_trials(states=states or None)
        return [(trial.user_attrs["label"], trial.state) for trial in trials]

    study = open_study("sweep.trials=2", "sweep.retries=0")
    study.ask(), study.ask()
    study.fail("t001", reason="killed")
    assert seen(study) == [("t001", TrialState.FAIL), ("t002", TrialState.RUNNING)]

    again = open_study("sweep.trials=2", "sweep.retries=0")
    assert seen(again, TrialState.FAIL) == [("t001", TrialState.FAIL)]
    again.ask()
    assert seen(again, TrialState.FAIL) == []
    assert seen(again, TrialState.RUNNING) == seen(again)
    assert seen(again) == [("t002", TrialState.RUNNING), ("t001", TrialState.RUNNING)]


def test_a_database_serves_as_well_as_a_journal(open_study: OpenStudy, play: Play, tmp_path: Path) -> None:
    overrides = (f"study.storage=sqlite:///{tmp_path}/study.db", "sweep.retries=0", "sweep.trials=2")
    study = open_study(*overrides)
    study.ask()
    play(study, "t001", 50, 40)
    study.fail("t001", reason="killed")

    again = open_study(*overrides)
    assert (again.ask().attempt, again.record("t001").best_fid) == (2, 40)
    assert [record.label for record in again.records()] == ["t001"]
    assert [again.ask().label, again.ask()] == ["t002", None]
    assert not (tmp_path / "runs" / "gp-0001" / "study.log").exists()
