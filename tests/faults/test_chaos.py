"""The benchmark of random kills, small; and that it sees what is lost, destroyed here on purpose."""

import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.chaos_losses import check

ROOT = Path(__file__).resolve().parents[2]
TRIALS = 24


def run_chaos(*arguments: str) -> subprocess.CompletedProcess:
    command = [sys.executable, str(ROOT / "benchmarks" / "chaos.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


@pytest.fixture(scope="module")
def survived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep after its kills."""
    out = tmp_path_factory.mktemp("chaos")
    kills = ("--driver-kills", "1", "--worker-kills", "3", "--seed", "3")
    done = run_chaos("--trials", str(TRIALS), *kills, "--out", str(out))
    assert done.returncode == 0, done.stdout + done.stderr
    return out


def test_a_sweep_killed_at_random_loses_nothing(survived: Path) -> None:
    kills = json.loads((survived / "kills.json").read_text())
    assert kills["drivers"] == 1
    assert kills["workers"] >= 3
    assert not [str(row) for row in check(survived, trials=TRIALS) if row.lost]


def sql(out: Path, *statements: str) -> None:
    with sqlite3.connect(out / "mlflow.db") as database:
        for statement in statements:
            assert database.execute(statement).rowcount == 1, statement


def edit(path: Path, change: Callable[[list[str]], list[str]]) -> None:
    lines = path.read_text().splitlines(keepends=True)
    assert change(lines) != lines
    path.write_text("".join(change(lines)))


def forget_last_tick(lines: list[str]) -> list[str]:
    """Of an Optuna journal."""
    last = max(index for index, line in enumerate(lines) if '"user_attr":{"tick_' in line)
    return lines[:last] + lines[last + 1 :]


ROW = "from metrics where key = 'fid' order by run_uuid, step limit 1"
ONE = f"rowid = (select rowid {ROW})"
COLUMNS = "key, value, timestamp, run_uuid, step, is_nan"
RUN = "run_uuid = (select run_uuid from tags where key = 'trial' and value = 't007')"
DESTROYED: dict[str, tuple[Callable[[Path], object], str]] = {
    "a value": (lambda out: sql(out, f"update metrics set value = value + 1 where {ONE}"), "curves"),
    "a row": (lambda out: sql(out, f"delete from metrics where {ONE}"), "curves"),
    "a step measured twice": (
        lambda out: sql(
            out,
            f"insert into metrics ({COLUMNS}) select key, value, timestamp + 1, run_uuid, step, is_nan {ROW}",
        ),
        "curves",
    ),
    "a run": (
        lambda out: sql(out, f"delete from tags where key = 'trial' and {RUN}"),
        "runs of trials",
    ),
    "a status": (
        lambda out: sql(out, f"update runs set status = 'RUNNING' where {RUN}"),
        "FINISHED",
    ),
    "a picture": (lambda out: next(out.glob("mlartifacts/*/*/artifacts/images/*.png")).unlink(), "picture"),
    "a tick of the study": (lambda out: edit(out / "chaos-0001" / "study.log", forget_last_tick), "recorded"),
    "a note of the trainer": (
        lambda out: edit(out / "cache" / "ticks.jsonl", lambda lines: lines + lines[-1:] * 3),
        "more than one per further attempt",
    ),
    "a checkpoint": (
        lambda out: shutil.rmtree(next(out.glob("chaos-0001/trials/*/*/checkpoint_*"))),
        "missing",
    ),
    "a folder too many": (
        lambda out: (next(out.glob("chaos-0001/trials/*/t*/")) / "checkpoint_000009").mkdir(),
        "nobody knows",
    ),
    "the mark of what was sent": (lambda out: (out / "chaos-0001/outbox/sent").write_text("0"), "to be sent"),
}


@pytest.mark.parametrize("what", DESTROYED)
def test_what_is_missing_double_or_wrong_is_seen(survived: Path, tmp_path: Path, what: str) -> None:
    out = tmp_path / "out"
    shutil.copytree(survived, out)
    _move_artifacts(out, before=survived)
    assert not [str(row) for row in check(out, trials=TRIALS) if row.lost]
    destroy, words = DESTROYED[what]
    destroy(out)

    lost = [row.what for row in check(out, trials=TRIALS) if row.lost]
    assert any(words in line for line in lost), lost


def _move_artifacts(out: Path, *, before: Path) -> None:
    """MLflow keeps whole addresses of pictures."""
    with sqlite3.connect(out / "mlflow.db") as database:
        database.execute(
            "update runs set artifact_uri = replace(artifact_uri, ?, ?)", (str(before), str(out))
        )


def test_a_loss_and_a_kill_that_missed_are_exit_status_1(survived: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(survived, out)
    assert run_chaos("--check", str(out)).returncode == 0

    kills = json.loads((out / "kills.json").read_text())
    (out / "kills.json").write_text(json.dumps(kills | {"workers_wanted": kills["workers"] + 1}))
    done = run_chaos("--check", str(out))
    assert (done.returncode, done.stdout.splitlines()[-1]) == (
        1,
        "lost: kills of workers that cost an attempt",
    )

    (out / "kills.json").write_text(json.dumps(kills))
    sql(out, f"delete from metrics where {ONE}")
    done = run_chaos("--check", str(out))
    assert (done.returncode, "curves" in done.stdout.splitlines()[-1]) == (1, True), done.stdout


def test_one_trial_too_few_is_seen(survived: Path) -> None:
    lost = [row.what.strip() for row in check(survived, trials=TRIALS + 1) if row.lost]
    assert lost == ["trials in the study", "labels missing, twice or unknown", "runs of trials in MLflow"]
