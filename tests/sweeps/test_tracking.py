"""When the outbox is sent: behind the sweep, later if MLflow is away, and what the user is told of it."""

import re
import shutil
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

from sweeps import sending, store, tracking
from sweeps.folder import SweepFolder
from sweeps.outbox import Outbox
from tests.sweeps.recorded import everything, fill, runs_of

NOWHERE = "http://127.0.0.1:9"
Send = Callable[..., tuple[int, str | None]]


def test_what_cannot_be_sent_waits_says_so_and_goes_with_the_next_start(
    send: Send, outbox: Outbox, folder: SweepFolder, uri: str
) -> None:
    fill(outbox, folder)
    waiting = outbox.unsent
    left, trouble = send(NOWHERE, patience=1)

    assert left == waiting
    assert trouble == "Connection refused"
    assert send() == (0, None)
    assert len(runs_of(uri)) == 5


def test_recording_does_not_wait_for_mlflow(
    outbox: Outbox, folder: SweepFolder, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, answers = threading.Event(), threading.Event()

    def send(sender: object, line: dict, *, pictures: bool) -> list[str]:
        asked.set()
        assert answers.wait(30)
        return []

    monkeypatch.setattr(sending.Sender, "send", send)
    tracker = tracking.Tracker(folder, outbox, sweep_id="gp-0001-x", experiment="gp", uri=uri)
    outbox.append(trial="t001", tick=1)
    tracker.start()
    assert asked.wait(30)
    for tick in range(2, 12):
        outbox.append(trial="t001", tick=tick)
    assert (outbox.sent, outbox.unsent) == (0, 11)
    assert tracker.finish(patience=0) == 11
    answers.set()
    tracker._thread.join()


def test_the_end_of_a_sweep_stops_sending_between_two_lines(
    outbox: Outbox, folder: SweepFolder, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, answers = threading.Event(), threading.Event()
    sent = []

    def send(sender: object, line: dict, *, pictures: bool) -> list[str]:
        sent.append(line["tick"])
        asked.set()
        assert answers.wait(30)
        return []

    monkeypatch.setattr(sending.Sender, "send", send)
    for tick in range(1, 6):
        outbox.append(trial="t001", tick=tick)
    tracker = tracking.Tracker(folder, outbox, sweep_id="gp-0001-x", experiment="gp", uri=uri)
    tracker.start()
    assert asked.wait(30)
    assert tracker.finish(patience=0) == 5
    answers.set()
    tracker._thread.join(30)

    assert not tracker._thread.is_alive()
    assert (sent, outbox.unsent) == ([1], 4)


def test_a_line_that_fails_for_a_while_is_sent_in_its_place(
    send: Send, outbox: Outbox, folder: SweepFolder, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent, real = [], sending.Sender.send

    def fails_once(sender: Any, line: dict, **options: bool) -> list[str]:
        sent.append(line["tick"])
        if len(sent) == 2:
            raise ConnectionError("gone\nfor a while")
        return real(sender, line, **options)

    monkeypatch.setattr(sending.Sender, "send", fails_once)
    for tick in (1, 2, 3):
        outbox.append(trial="t001", tick=tick, step=tick, metrics={"fid": tick})
    assert send() == (0, None)
    assert sent == [1, 2, 2, 3]
    assert [row[1] for row in everything(uri)["gp-0001-t001"]["metrics"]["fid"]] == [1, 2, 3]


class Answers500(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_error(500)

    do_POST = do_GET

    def log_message(self, *args: Any) -> None: ...


@pytest.fixture
def broken_server() -> Iterator[str]:
    """The address of a server that answers everything with status 500."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers500) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_the_user_is_told_once_when_it_begins_and_once_when_it_ends(
    outbox: Outbox,
    folder: SweepFolder,
    uri: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    tries, real = [], sending.Sender.send

    def fails_thrice(sender: Any, line: dict, **options: bool) -> list[str]:
        tries.append(line)
        if len(tries) <= 3:
            raise ConnectionError("gone\nfor a while")
        return real(sender, line, **options)

    monkeypatch.setattr(sending.Sender, "send", fails_thrice)
    outbox.append(trial="t001", tick=1, step=1, metrics={"fid": 1})
    tracker = tracking.Tracker(folder, outbox, sweep_id="gp-0001-x", experiment="gp", uri=uri)
    said: list[str] = []
    tracker.start()
    assert tracker.finish(patience=30, say=said.append) == 0
    assert [record.getMessage() for record in caplog.records if record.name == "sweeps.tracking"] == [
        "MLflow cannot be reached (gone for a while): training goes on; what is to be recorded waits in"
        f" {folder.outbox}"
    ]
    assert {record.threadName for record in caplog.records if record.name == "sweeps.tracking"} == {
        "MainThread"
    }
    assert [line for line in said if "sending" not in line] == [
        "MLflow answers again: what waited is being sent"
    ]
    assert tracker.last_words() == []


@pytest.mark.parametrize(
    ("uri", "why"),
    [
        (NOWHERE, "Connection refused"),
        (
            "http://no-such-host.invalid:5000",
            "Name or service not known|Temporary failure in name resolution",
        ),
        ("sqlite:////proc/none/mlflow.db", "No such file or directory"),
    ],
)
def test_why_mlflow_cannot_be_reached_is_said_in_a_few_words(
    send: Send, outbox: Outbox, uri: str, why: str
) -> None:
    outbox.append(trial="t001", tick=1)
    left, trouble = send(uri, patience=1)
    assert left == 1 and trouble is not None and re.fullmatch(why, trouble)


def test_a_server_that_answers_500_is_waited_for(
    send: Send, outbox: Outbox, folder: SweepFolder, uri: str, broken_server: str
) -> None:
    fill(outbox, folder)
    waiting = outbox.unsent
    assert send(broken_server, patience=3) == (waiting, "too many 500 error responses")
    assert send() == (0, None)
    assert len(runs_of(uri)) == 5


def test_a_database_that_cannot_be_written_is_waited_for(
    send: Send, outbox: Outbox, folder: SweepFolder, uri: str
) -> None:
    def read_only(connection: Any, _: Any) -> None:
        connection.execute("PRAGMA query_only = ON")

    fill(outbox, folder)
    waiting = outbox.unsent
    event.listen(Engine, "connect", read_only)
    try:
        left, trouble = send(
            f"{uri}?timeout=5", patience=2
        )  # an address for which MLflow has no connection yet
    finally:
        event.remove(Engine, "connect", read_only)
    assert (left, trouble) == (waiting, "attempt to write a readonly database")
    assert send() == (0, None)
    assert len(runs_of(uri)) == 5


def test_pictures_that_cannot_be_stored_hold_nothing_up_for_long_and_go_with_the_next_start(
    send: Send, outbox: Outbox, folder: SweepFolder, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracking, "PICTURES_PATIENCE", 0)
    (folder.out / "mlartifacts").write_text("in the way")
    fill(outbox, folder)
    assert send() == (0, None)
    assert runs_of(uri)["gp-0001-t001"].data.metrics["fid"] == 50
    assert len(list(folder.outbox.glob("*.png"))) == 2

    (folder.out / "mlartifacts").unlink()
    assert send() == (0, None)
    files = everything(uri)["gp-0001-t001"]["files"]
    assert sorted(path.split("+")[2] for path in files if path.endswith(".png")) == ["1280", "640"]
    assert not list(folder.outbox.glob("*.png")) and not outbox.refused.exists()


def test_a_store_that_does_not_know_the_sweep_is_sent_everything(
    send: Send,
    outbox: Outbox,
    folder: SweepFolder,
    uri: str,
    empty_database: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    fill(outbox, folder)
    send(sweep_id=folder.identify())
    before = everything(uri)
    outbox.append(trial="t004", tick=3, step=1920, metrics={"fid": 1.0})
    shutil.copy(empty_database, tmp_path / "fresh.db")
    fresh = f"sqlite:///{tmp_path}/fresh.db"

    assert send(fresh, sweep_id=folder.sweep_id) == (0, None)
    now = everything(fresh)
    assert now.keys() == before.keys()
    assert len(now.pop("gp-0001-t004")["metrics"]["fid"]) == 3
    for name, run in now.items():
        assert run["metrics"] == before[name]["metrics"]
        assert run["run"][1:3] == before[name]["run"][1:3]
    assert store.store_of(folder) == fresh


def test_a_mistyped_store_is_not_remembered(
    send: Send, outbox: Outbox, folder: SweepFolder, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    folder.identify()
    outbox.append(trial="t001", tick=1)
    send(sweep_id=folder.sweep_id)
    outbox.append(trial="t001", tick=2)
    assert send(NOWHERE, patience=0.5, sweep_id=folder.sweep_id)[0] == 1
    assert store.store_of(folder) == uri


def test_what_the_last_wait_is_for_is_said_and_an_interruption_ends_it(
    outbox: Outbox, folder: SweepFolder
) -> None:
    outbox.append(trial="t001", tick=1)
    tracker = tracking.Tracker(folder, outbox, sweep_id="gp-0001-x", experiment="gp", uri=NOWHERE)
    tracker.start()
    said: list[str] = []

    def check() -> None:
        if said:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tracker.finish(patience=60, say=said.append, check=check)
    assert said == [
        "  sending 1 record to MLflow, which cannot be reached (Connection refused) for up to 60 s;"
        " Ctrl-C leaves them to --resume ..."
    ]
    assert tracker.last_words() == [
        "1 record not yet in MLflow (Connection refused); --resume sends what is left."
    ]
