"""Ctrl-C and SIGTERM from outside, while a sweep works on something that takes long."""

import contextlib
import json
import os
import signal
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from optuna.trial import TrialState

from tests.processes import until

PROMPT = 5
"""Seconds within which a sweep promises to end."""
SLACK = 15
"""Seconds more on a busy machine; with these, less than the 30 of the scores that are not waited for."""

Stop = Callable[[psutil.Process], None]


def terminate(driver: psutil.Process) -> None:
    driver.send_signal(signal.SIGTERM)


def ctrl_c(driver: psutil.Process) -> None:
    """As a terminal does it: to every process of the foreground group."""
    os.killpg(driver.pid, signal.SIGINT)


BOTH = pytest.mark.parametrize("stop", [terminate, ctrl_c])


@pytest.fixture
def scratch(sweep: Any) -> Iterator[Path]:
    """Where the sweep's processes keep what is temporary; short enough for Ray."""
    with tempfile.TemporaryDirectory(prefix="fault-", dir="/tmp") as path:
        sweep.environment["TMPDIR"] = path
        yield Path(path)


def running(sweep: Any) -> list[str]:
    """Processes of any start of the sweep, Ray's and orphans too: they inherit the name of its cache."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            ended = process.status() == psutil.STATUS_ZOMBIE
            if not ended and process.environ().get("WGANGP_CACHE") == str(sweep.cache):
                found.append(" ".join(process.cmdline())[:100])
    return found


def nothing_waits(sweep: Any) -> bool:
    """Whether all that was recorded so far has reached MLflow: two seconds may be too short for much."""
    lines, mark = (sweep.folder / "outbox" / name for name in ("lines.jsonl", "sent"))
    return not lines.exists() or (mark.exists() and int(mark.read_text()) == lines.stat().st_size)


def end_is_written(sweep: Any) -> bool:
    """Whether the last record of a start, that of the sweep's own outcome, waits to be sent."""
    last = json.loads((sweep.folder / "outbox" / "lines.jsonl").read_text().splitlines()[-1])
    return last["trial"] is None and last.get("status", "RUNNING") != "RUNNING"


def stopped(
    sweep: Any,
    seen: Callable[[str], bool],
    stop: Stop,
    *arguments: str,
    once: Callable[[Any], Any] = nothing_waits,
) -> None:
    """Run until a line is seen and `once` is true, stop it there; it must end, with nothing left running."""
    sent = 0.0

    def note_and_stop(driver: psutil.Process) -> None:
        nonlocal sent
        until(lambda: once(sweep))
        stop(driver)
        sent = time.monotonic()

    exited = sweep.run_until(seen, note_and_stop, *arguments)
    seconds = time.monotonic() - sent
    left = running(sweep)
    print(f"{seconds:.1f} s from the signal to the end, then alive: {left}")
    assert exited == 130, sweep.output
    assert "Traceback" not in sweep.output and "Exception" not in sweep.output
    assert seconds < PROMPT + SLACK, sweep.output
    until(lambda: not running(sweep), seconds=3)


def states(sweep: Any) -> tuple[str, dict[str, str]]:
    """MLflow's status of the parent run, and of the run of each label."""
    parent, runs = sweep.runs()
    return parent.info.status, {label: run.info.status for label, run in runs.items()}


@BOTH
@pytest.mark.parametrize(
    ("line", "child"), [("starting Ray", ""), ("starting Ray", "raylet"), ("reading the script", "ray::")]
)
def test_a_sweep_stopped_before_it_has_a_folder_leaves_nothing_behind(
    sweep: Any, space: str, scratch: Path, line: str, child: str, stop: Stop
) -> None:
    def stop_once_there_is_a_child(driver: psutil.Process) -> None:
        until(lambda: not child or any(child in process for process in running(sweep)))
        stop(driver)

    sweep.script(prepare=30)
    stopped(sweep, lambda printed: line in printed, stop_once_there_is_a_child, "--space", space)

    assert "Interrupted" in sweep.output
    assert not sweep.folder.exists() and not (sweep.out / "mlflow.db").exists()
    assert not list(scratch.glob("gp-sweep-*"))


def test_a_sweep_stopped_again_and_again_says_how_to_go_on_and_completes(
    sweep: Any, space: str, scratch: Path
) -> None:
    go_on = f"Interrupted; go on: {sys.executable}"
    arguments = ["--space", space]
    sweep.script(seconds=3, score=30)
    for stop in (terminate, ctrl_c):
        stopped(sweep, lambda line: line.startswith("t00"), stop, *arguments)
        assert go_on in sweep.output and f"--resume {sweep.folder}" in sweep.output
        live = [label for label, trial in sweep.trials().items() if trial.state == TrialState.RUNNING]
        assert live and not list(scratch.glob("gp-sweep-*"))
        parent, runs = sweep.runs()
        assert parent.data.tags["outcome"] == "interrupted"
        assert states(sweep) == ("KILLED", dict.fromkeys(runs, "KILLED"))
        arguments = ["--resume", "scripted-0001"]

    sweep.script(score=30)
    for stop in (terminate, ctrl_c):
        stopped(sweep, lambda line: "on fresh noise" in line, stop, *arguments)
        assert go_on in sweep.output
        sweep.assert_everything_agrees()
        assert states(sweep) == ("KILLED", dict.fromkeys(["t001", "t002", "t003"], "FINISHED"))
        assert sweep.runs()[0].data.tags["outcome"] == "interrupted"

    sweep.script()
    for stop in (terminate, ctrl_c):
        with contextlib.closing(sqlite3.connect(sweep.out / "mlflow.db")) as database:
            database.execute("BEGIN EXCLUSIVE")  # nobody else may read or write
            # The first of the two starts scores the winner, the second finds the scores.
            seen = f"  {sweep.folder}"
            stopped(
                sweep,
                lambda line, seen=seen: line.startswith(seen),
                stop,
                *arguments,
                once=end_is_written,
            )
        assert "not yet in MLflow" in sweep.output and "--resume" in sweep.output

    assert sweep.run(*arguments) == 0, sweep.output
    sweep.assert_everything_agrees()
    assert states(sweep) == ("FINISHED", dict.fromkeys(["t001", "t002", "t003"], "FINISHED"))
    assert sweep.runs()[0].data.tags["outcome"] == "complete"
    assert not running(sweep)


def test_ctrl_c_twice_ends_at_once_and_no_run_stays_running(sweep: Any, space: str, scratch: Path) -> None:
    sweep.script(seconds=3)
    second = 0.0

    def twice(driver: psutil.Process) -> None:
        nonlocal second
        ctrl_c(driver)
        time.sleep(0.3)  # two that wait for the process at once would count as one
        ctrl_c(driver)
        second = time.monotonic()

    status = sweep.run_until(lambda line: line.startswith("t00"), twice, "--space", space)
    seconds = time.monotonic() - second
    print(f"{seconds:.1f} s from the second signal to the end, then alive: {running(sweep)}")
    assert status == 130 and seconds < 1 + SLACK
    until(lambda: not running(sweep), seconds=5)

    sweep.script()
    assert sweep.run("--resume", "scripted-0001") == 0, sweep.output
    sweep.assert_everything_agrees()
    assert states(sweep) == ("FINISHED", dict.fromkeys(["t001", "t002", "t003"], "FINISHED"))
    assert not list(scratch.glob("gp-sweep-*"))  # the start that was cut off left its own
