"""What `--resume` would do, told from the study without a change to it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from sweeps import history, outlook
from sweeps.folder import SweepFolder
from sweeps.outbox import Outbox
from sweeps.records import Ending
from sweeps.study import SweepStudy
from wgangp import settings_file
from wgangp.errors import UserError

OpenStudy = Callable[..., SweepStudy]
Play = Callable[..., Ending | None]


def plan(folder: SweepFolder, study: SweepStudy) -> list[str]:
    known = history.read(folder, study.space)
    return outlook.resume_lines(folder, known.records, known.wanted, study.space.finalists)


def started(open_study: OpenStudy, folder: SweepFolder, *overrides: str) -> SweepStudy:
    """A sweep of four that has its name, its copy of the space, and a study."""
    study = open_study("sweep.trials=4", "sweep.retries=0", "pruner.name=none", *overrides)
    (folder.path / "id").write_text("gp-0001-abcd\n")
    settings_file.dump(study.space.values(), folder.space)
    return study


def test_each_trial_that_is_not_done_is_told_with_where_it_goes_on(
    open_study: OpenStudy, play: Play, save: Callable[..., Path], folder: SweepFolder
) -> None:
    study = started(open_study, folder)
    assert plan(folder, study) == ["  gp-0001: 0 of 4 trials ended", "  4 trials still to be proposed"]
    assert outlook.state_line(folder) == "gp-0001  interrupted: 0 of 4 trials ended"

    done, failed, open_ = study.ask(), study.ask(), study.ask()
    play(study, "t001", *[50] * 8, 40)
    study.end("t001")
    play(study, "t002", 60)
    save(study, "t002", 1)
    study.fail("t002", reason="killed")
    assert done and failed and open_
    Outbox(folder.outbox).append(tags={"outcome": "none"})
    written = folder.journal.read_bytes()
    assert plan(folder, study) == [
        "  gp-0001: 1 of 4 trials ended",
        "  t002 failed (killed): goes on after 1 kimg, if that checkpoint holds"
        f"  {study.record('t002').settings}",
        f"  t003 interrupted: begins anew  {study.record('t003').settings}",
        "  1 trial still to be proposed",
        "  1 record to be sent to MLflow",
    ]
    assert outlook.state_line(folder) == (
        "gp-0001  interrupted: 1 of 4 trials ended, 1 failed, 1 interrupted, best FID 40.0 (t001)"
    )
    assert folder.journal.read_bytes() == written


def test_a_sweep_says_whether_it_is_complete_has_failed_or_is_running(
    open_study: OpenStudy, play: Play, folder: SweepFolder
) -> None:
    study = started(open_study, folder)
    for number in range(4):
        study.ask()
        play(study, f"t00{number + 1}", *[50] * 8, 40 - number)
        study.end(f"t00{number + 1}")
    assert outlook.state_line(folder) == "gp-0001  complete: 4 of 4 trials ended, best FID 37.0 (t004)"
    assert plan(folder, study)[1:] == ["  nothing is left to do; --trials N extends it"]
    with folder.locked():
        assert outlook.state_line(folder).startswith("gp-0001  running (process ")
    folder.space.write_text("nonsense")
    assert outlook.state_line(folder).startswith("gp-0001  cannot be read: space.yaml")


def test_runs_of_finalists_are_told_apart_from_trials(
    open_study: OpenStudy, play: Play, folder: SweepFolder
) -> None:
    study = started(open_study, folder, "finalists.count=2", "finalists.seeds=2")
    for number in range(4):
        study.ask()
        play(study, f"t00{number + 1}", *[50] * 8, 40 - number)
        study.end(f"t00{number + 1}")
    best = "best FID 37.0 (t004)"
    assert (
        outlook.state_line(folder)
        == f"gp-0001  interrupted: 4 of 4 trials ended, 4 finalist runs missing, {best}"
    )
    assert plan(folder, study)[1:] == ["  4 runs of finalists still to be started"]

    study.ask()
    assert plan(folder, study) == [
        "  gp-0001: 4 of 4 trials ended",
        f"  t004-s1 interrupted: begins anew  {study.record('t004').settings}",
        "  3 runs of finalists still to be started",
    ]
    assert outlook.state_line(folder) == f"gp-0001  interrupted: 4 of 4 trials ended, 1 interrupted, {best}"


def test_a_torn_journal_is_read_and_left_as_it_is(open_study: OpenStudy, folder: SweepFolder) -> None:
    study = started(open_study, folder)
    study.ask()
    with folder.journal.open("a") as file:
        file.write('{"op_code"')
    torn = folder.journal.read_bytes()
    assert len(history.read(folder, study.space).records) == 1
    assert folder.journal.read_bytes() == torn


def test_a_sweep_stopped_before_its_study_was_made_has_no_history(
    open_study: OpenStudy, folder: SweepFolder
) -> None:
    study = started(open_study, folder)
    for remove in (folder.path / "id", folder.journal):
        remove.unlink()
        known = history.read(folder, study.space)
        assert (known.records, known.wanted, known.space) == ([], 4, None)


def test_a_line_of_the_journal_that_is_damaged_is_named(open_study: OpenStudy, folder: SweepFolder) -> None:
    study = started(open_study, folder)
    lines = folder.journal.read_text().splitlines()
    for damaged in ("no record", "[]", '{"op_code": 99, "worker_id": ""}'):
        folder.journal.write_text("\n".join([*lines[:1], damaged, *lines[2:]]) + "\n")
        with pytest.raises(UserError) as caught:
            history.read(folder, study.space)
        (said,) = caught.value.problems
        place = "" if damaged.startswith("{") else ":2"
        assert said.startswith(f"{folder.journal}{place}: must be a record of the study, and cannot be read.")
    assert outlook.state_line(folder).startswith(f"gp-0001  cannot be read: {folder.journal}")
