"""What a sweep finds changed or damaged when it is resumed."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.faults.conftest import ScriptedSweep

pytestmark = pytest.mark.usefixtures("warm")


@pytest.fixture
def stopped(sweep: ScriptedSweep, space: str) -> ScriptedSweep:
    """A sweep of one trial at a time that was interrupted in its second, with two checkpoints of it."""
    sweep.script(seconds=0.3)
    status = sweep.run_until(
        lambda line: line.startswith("t002  27"),
        lambda driver: driver.terminate(),
        *("--space", space, "--set", "sweep.max_concurrent=1"),
    )
    assert status == 130, sweep.output
    return sweep


def warnings(sweep: ScriptedSweep) -> list[str]:
    """But for the one that a scripted trainer always gets, which has no generator to keep."""
    found = [line for line in sweep.output.splitlines() if line.startswith("Warning: ")]
    return [line for line in found if "is not kept as a model" not in line]


def checkpoints(sweep: ScriptedSweep) -> list[tuple[Path, int]]:
    """Of the second trial, newest first."""
    return [(sweep.folder / path, tick) for path, tick in sweep.trials()["t002"].user_attrs["checkpoints"]]


def trained(sweep: ScriptedSweep, since: int) -> list[tuple[float, int]]:
    return [(tick["gp_weight"], tick["tick"]) for tick in sweep.ticks()[since:]]


def test_a_torn_last_line_and_a_stale_lock_of_the_journal_cost_a_warning(stopped: ScriptedSweep) -> None:
    journal = stopped.folder / "study.log"
    with journal.open("a") as file:
        file.write('{"op_code":8,"worker_id":"')
    os.symlink("gone", stopped.folder / "study.log.lock")

    assert stopped.run("--resume", "scripted-0001") == 0, stopped.output
    lock, torn = warnings(stopped)
    assert "removed study.log.lock, left behind by a driver that was killed" in lock
    assert "cut a half-written last line from study.log (kept in study.log.torn)" in torn
    assert (stopped.folder / "study.log.torn").read_text() == '{"op_code":8,"worker_id":"'
    stopped.assert_everything_agrees()
    stopped.assert_nothing_is_open(trials=3)


def test_a_damaged_newest_checkpoint_costs_a_tick_and_a_warning(stopped: ScriptedSweep) -> None:
    (newest, tick), (_, before) = checkpoints(stopped)
    (newest / "tick.npy").write_bytes((newest / "tick.npy").read_bytes()[:60])
    done = len(stopped.ticks())

    assert stopped.run("--resume", "scripted-0001") == 0, stopped.output
    assert trained(stopped, done)[0] == (2, before + 1) == (2, tick)
    (said,) = warnings(stopped)
    assert said == f"Warning: t002: {newest} is damaged; it goes on after {9 * before} kimg"
    stopped.assert_everything_agrees()
    stopped.assert_nothing_is_open(trials=3)


def test_without_a_checkpoint_that_holds_a_trial_begins_anew_and_keeps_what_it_scored(
    stopped: ScriptedSweep,
) -> None:
    for path, _ in checkpoints(stopped):
        (path / "tick.npy").unlink()
    done, before = len(stopped.ticks()), stopped.trials()["t002"].user_attrs

    assert stopped.run("--resume", "scripted-0001") == 0, stopped.output
    assert trained(stopped, done)[:4] == [(2, 1), (2, 2), (2, 3), (2, 4)]
    (said,) = warnings(stopped)
    assert said.endswith("it begins anew")
    after = stopped.trials()["t002"].user_attrs
    assert {key: after[key] for key in before if key.startswith("tick_")} == {
        key: value for key, value in before.items() if key.startswith("tick_")
    }
    stopped.assert_everything_agrees()
    stopped.assert_nothing_is_open(trials=3)


def test_other_versions_and_another_commit_are_a_warning_and_are_recorded_with_each_attempt(
    stopped: ScriptedSweep, tmp_path: Path
) -> None:
    # Found first on the path: a git that names another commit, and what says that optuna is another version.
    other = tmp_path / "other"
    (other / "optuna-5.9.9.dist-info").mkdir(parents=True)
    (other / "optuna-5.9.9.dist-info" / "METADATA").write_text("Name: optuna\nVersion: 5.9.9\n")
    (other / "git").write_text("#!/bin/sh\necho 1234abcd\n")
    (other / "git").chmod(0o755)
    stopped.starter = None  # for a path of its own
    stopped.environment |= {"PYTHONPATH": str(other), "PATH": f"{other}:{os.environ['PATH']}"}

    assert stopped.run("--resume", "scripted-0001") == 0, stopped.output
    said = warnings(stopped)
    assert [line.split()[1] for line in said] == ["optuna", "commit"]
    assert "is 5.9.9" in said[0] and "is 1234abcd" in said[1]
    _, runs = stopped.runs()
    tags: dict[str, Any] = runs["t002"].data.tags
    assert "optuna 5.0" in tags["attempt_1"] and "1234abcd" not in tags["attempt_1"]
    assert "optuna 5.9.9" in tags["attempt_2"] and "commit 1234abcd" in tags["attempt_2"]
    assert "attempt_2" not in runs["t001"].data.tags and "1234abcd" in runs["t003"].data.tags["attempt_1"]
    starts = [stopped.trials()[label].user_attrs["attempts"] for label in ("t001", "t002", "t003")]
    assert starts == [[0], [0, 1], [1]]
    assert stopped.run("--resume", "scripted-0001") == 0
    assert not warnings(stopped)


def test_other_features_are_refused(stopped: ScriptedSweep) -> None:
    stopped.script(facts={"features_sha256": "f" * 64})
    before = (stopped.folder / "study.log").read_bytes()

    for more in ([], ["--trials", "9"]):
        assert stopped.run("--resume", "scripted-0001", *more) == 2
        assert stopped.output.splitlines()[-1] == (
            f"scripted-0001: features_sha256: must be {'0' * 64} as its trials were scored with,"
            f" got {'f' * 64}. Put back what was there, or start a new sweep."
        )
        assert (stopped.folder / "study.log").read_bytes() == before
    stopped.script()
    assert stopped.run("--resume", "scripted-0001") == 0, stopped.output
    stopped.assert_nothing_is_open(trials=3)


def test_without_its_study_or_its_id_a_sweep_is_not_begun_anew_over_its_trials(
    stopped: ScriptedSweep,
) -> None:
    for name in ("study.log", "id"):
        path = stopped.folder / name
        kept = path.read_bytes()
        for damage in (path.unlink, path.touch):
            damage()
            for more in ([], ["--check", "--offline"]):
                assert stopped.run("--resume", "scripted-0001", *more) == 2
                assert stopped.output == (
                    "scripted-0001: has trials, but no study of them: study.log or id is gone or empty."
                    " Put back a copy of it, or start a new sweep.\n"
                )
        path.write_bytes(kept)
    assert stopped.run("--resume", "scripted-0001") == 0, stopped.output
    stopped.assert_nothing_is_open(trials=3)
