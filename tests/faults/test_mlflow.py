"""MLflow away for a while: training goes on, all arrives later, in order, once, and the user is told."""

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from mlflow import MlflowClient

pytestmark = pytest.mark.usefixtures("warm")

LONG = ["--set", "train.budget_kimg=540"]
"""60 ticks of each trial."""
AWAY, BACK = "Warning: MLflow cannot be reached ", "MLflow answers again"


def first_tick(line: str) -> bool:
    return line.startswith("t00") and " kimg  fid " in line


def lock(sweep: Any) -> sqlite3.Connection:
    """Hold MLflow's database as a program does that hangs while it writes; `rollback` lets go."""
    assert (sweep.out / "mlflow.db").exists()
    held = sqlite3.connect(sweep.out / "mlflow.db", isolation_level=None, check_same_thread=False)
    held.execute("BEGIN EXCLUSIVE")
    return held


class Server:
    """`mlflow server`, as an administrator starts it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.uri = f"http://127.0.0.1:{free.getsockname()[1]}"
        self._process: subprocess.Popen | None = None

    def start(self) -> None:
        self.folder.mkdir(exist_ok=True)
        command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--workers", "1"]
        command += [
            "--port",
            self.uri.rpartition(":")[2],
            "--artifacts-destination",
            str(self.folder / "files"),
        ]
        command += ["--backend-store-uri", f"sqlite:///{self.folder}/server.db"]
        with (self.folder / "log.txt").open("a") as log:
            self._process = subprocess.Popen(
                command, cwd=self.folder, stdout=log, stderr=log, start_new_session=True
            )

    def wait(self) -> None:
        for _ in range(1800):
            try:
                if requests.get(f"{self.uri}/health", timeout=5).ok:
                    return
            except requests.ConnectionError:
                time.sleep(0.1)
        raise AssertionError((self.folder / "log.txt").read_text())

    def kill(self) -> None:
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path / "server")
    yield server
    server.kill()


def about_mlflow(sweep: Any) -> list[str]:
    """What the user was told of it, but for how the last wait goes."""
    lines = sweep.output.splitlines()
    return [line for line in lines if "MLflow" in line and not line.startswith("  sending ")]


def send_the_rest(sweep: Any, told: list[str]) -> None:
    """On a busy machine the last minute may not be enough."""
    if told:
        assert "Send what is left: " in sweep.output
        assert len(told) == 1 and told[0].endswith("--resume sends what is left."), told
        assert sweep.run("--resume", "scripted-0001") == 0, sweep.output


def assert_all_arrived_in_order(sweep: Any, *, ticks: int) -> None:
    sweep.assert_everything_agrees()
    assert not list((sweep.folder / "outbox").glob("*.png"))
    assert not (sweep.folder / "outbox" / "refused.jsonl").exists()
    parent, runs = sweep.runs()
    assert {run.info.status for run in (parent, *runs.values())} == {"FINISHED"}
    assert len(sweep.ticks()) == len(runs) * ticks, "something was trained twice"
    for run in runs.values():
        rows = sweep.client().get_metric_history(run.info.run_id, "fid")
        assert [row.step for row in rows] == [9000 * tick for tick in range(1, ticks + 1)]
        assert [row.timestamp for row in rows] == sorted(row.timestamp for row in rows)


def test_a_database_locked_for_a_minute_gets_everything_later(sweep: Any, space: str) -> None:
    sweep.client().search_experiments()
    sweep.script(seconds=0.8)
    released = threading.Event()

    def a_minute(driver: Any) -> None:
        held = lock(sweep)

        def release() -> None:
            assert driver.is_running()
            held.rollback()
            held.close()
            released.set()

        threading.Timer(60, release).start()

    assert sweep.run_until(first_tick, a_minute, "--space", space, *LONG) == 0, sweep.output
    assert released.is_set(), "the sweep ended before the lock did"
    lines, told = sweep.output.splitlines(), about_mlflow(sweep)
    waits = f"training goes on; what is to be recorded waits in {sweep.folder / 'outbox'}"
    assert told[:2] == [f"{AWAY}(database is locked): {waits}", f"{BACK}: what waited is being sent"]
    send_the_rest(sweep, told[2:])
    between = lines[lines.index(told[0]) : lines.index(told[1])]
    assert sum(map(first_tick, between)) > 20, "training waited"
    assert_all_arrived_in_order(sweep, ticks=60)


def test_a_lock_held_over_the_end_leaves_everything_to_resume_and_a_signal_ends_the_wait(
    sweep: Any, space: str
) -> None:
    sweep.client().search_experiments()
    sweep.script(seconds=0.3)
    held, asked = [], []

    def end_the_wait(line: str) -> bool:
        if not held and first_tick(line):
            held.append(lock(sweep))
        return line.startswith("  sending ")

    def interrupt(driver: Any) -> None:
        asked.append(time.monotonic())
        driver.send_signal(signal.SIGINT)

    assert sweep.run_until(end_the_wait, interrupt, "--space", space) == 130, sweep.output
    assert time.monotonic() - asked[0] < 45, sweep.output  # it would have waited for 60
    assert "not yet in MLflow" in sweep.output and "--resume sends what is left." in sweep.output
    assert set(sweep.outcomes().values()) == {"complete"}

    held[0].rollback()
    held[0].close()
    assert sweep.run("--resume", "scripted-0001") == 0, sweep.output
    assert about_mlflow(sweep) == []
    assert_all_arrived_in_order(sweep, ticks=4)


def test_a_server_down_from_the_start_gets_everything_by_resume(
    sweep: Any, space: str, server: Server
) -> None:
    sweep.script(seconds=0.3)
    sweep.environment["MLFLOW_TRACKING_URI"] = server.uri
    assert sweep.run("--space", space) == 0, sweep.output
    assert f"{AWAY}(Connection refused): training goes on" in sweep.output
    assert "to MLflow, which cannot be reached (Connection refused) for up to 60 s" in sweep.output
    (left,) = [line for line in sweep.output.splitlines() if "not yet in MLflow" in line]
    assert f" --resume {sweep.folder}" in sweep.output
    lines = (sweep.folder / "outbox" / "lines.jsonl").read_text().count("\n")
    assert left == f"{lines} records not yet in MLflow (Connection refused); --resume sends what is left."

    server.start()
    server.wait()
    sweep.environment["MLFLOW_TRACKING_URI"] = None  # the sweep remembers
    assert sweep.run("--resume", "scripted-0001") == 0, sweep.output
    assert "cannot be reached" not in sweep.output
    send_the_rest(sweep, about_mlflow(sweep))
    assert not (sweep.out / "mlflow.db").exists()
    sweep.client = lambda: MlflowClient(server.uri)
    assert_all_arrived_in_order(sweep, ticks=4)


def test_a_server_killed_half_way_and_started_again_misses_nothing(
    sweep: Any, space: str, server: Server
) -> None:
    sweep.script(seconds=3)
    sweep.environment["MLFLOW_TRACKING_URI"] = server.uri
    server.start()
    server.wait()

    def sweep_has_arrived() -> bool:
        return (sweep.folder / "outbox" / "sent").exists()

    def half_way(line: str) -> bool:
        return first_tick(line) and sweep_has_arrived()

    def begin_anew(driver: Any) -> None:
        server.kill()
        threading.Thread(target=back_again).start()

    def back_again() -> None:
        time.sleep(5)
        server.start()
        server.wait()
        sweep.script(seconds=0.3)

    assert sweep.run_until(half_way, begin_anew, "--space", space, *LONG) == 0, sweep.output
    told = about_mlflow(sweep)
    assert [line.split(" (")[0] for line in told[:2]] == [AWAY.rstrip(), f"{BACK}: what waited is being sent"]
    send_the_rest(sweep, told[2:])
    sweep.client = lambda: MlflowClient(server.uri)
    assert_all_arrived_in_order(sweep, ticks=60)
