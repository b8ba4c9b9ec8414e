"""The outbox sent to a real MLflow database, once, twice, late."""

import io
import json
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from mlflow import MlflowClient
from mlflow.entities import Run, ViewType
from mlflow.store.db import utils
from PIL import Image
from sqlalchemy import event
from sqlalchemy.engine import Engine

from sweeps import sending, store, tracking
from sweeps.folder import SweepFolder
from sweeps.outbox import Outbox

NOWHERE = "http://127.0.0.1:9"
Send = Callable[..., tuple[int, str | None]]


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with MLflow's tables: making them takes seconds, copying them none."""
    path = tmp_path_factory.mktemp("mlflow") / "mlflow.db"
    MlflowClient(f"sqlite:///{path}").search_experiments()
    return path


@pytest.fixture
def uri(folder: SweepFolder, empty_database: Path) -> str:
    shutil.copy(empty_database, folder.out / "mlflow.db")
    return store.tracking_uri(folder.out)


@pytest.fixture
def outbox(folder: SweepFolder) -> Outbox:
    return Outbox(folder.outbox)


@pytest.fixture
def send(folder: SweepFolder, outbox: Outbox, uri: str) -> Send:
    """Sends what waits, as one start of a sweep does; how many lines are left, and the trouble."""

    def send(
        uri: str = uri, *, patience: float = 30, sweep_id: str = "gp-0001-abcd"
    ) -> tuple[int, str | None]:
        tracker = tracking.Tracker(folder, outbox, sweep_id=sweep_id, experiment="gp", uri=uri)
        tracker.start()
        return tracker.finish(patience=patience), tracker.trouble

    return send


def picture(shade: int) -> bytes:
    file = io.BytesIO()
    Image.new("L", (8, 8), shade).save(file, "PNG")
    return file.getvalue()


def fill(outbox: Outbox, folder: SweepFolder) -> None:
    """A sweep of four trials, one for each status."""
    (folder.path / "space.yaml").write_text("name: gp\n")
    outbox.append(tags={"git_commit": "abc"}, files=["space.yaml"], status="RUNNING", time=1000)
    for number, outcome in enumerate(["complete", "failed", "interrupted", "running"], start=1):
        label = f"t{number:03d}"
        tags = {"attempt": 1, "baseline": number == 1}
        outbox.append(
            trial=label, params={"width": 4, "init_seed": None}, tags=tags, status="RUNNING", time=2000
        )
        for tick in (1, 2):
            outbox.append(
                trial=label,
                tick=tick,
                time=3000 + tick,
                step=640 * tick,
                metrics={"fid": 100.0 / tick, "wasserstein": 1.0},
                samples=picture(tick) if number == 1 else b"",
            )
        if outcome != "running":
            status = {"complete": "FINISHED", "failed": "FAILED", "interrupted": "KILLED"}[outcome]
            tags = {"outcome": outcome, "reason": "why"}
            outbox.append(trial=label, tags=tags, status=status, time=4000 + number)
    outbox.append(tick=1, step=1, metrics={"best_fid": 50.0}, time=5000)
    outbox.append(tags={"best_trial": "t001"}, time=5000)


def runs_of(uri: str) -> dict[str, Run]:
    client = MlflowClient(uri)
    experiment = client.get_experiment_by_name("gp")
    runs = client.search_runs([experiment.experiment_id])
    assert len({run.info.run_name for run in runs}) == len(runs)
    return {run.info.run_name: run for run in runs}


def everything(uri: str) -> dict[str, Any]:
    """All that a person can see of the runs, by name."""
    client = MlflowClient(uri)
    return {
        name: {
            "run": (run.info.run_id, run.info.status, run.data.params, run.data.tags),
            "metrics": {
                key: [
                    (row.timestamp, row.step, row.value)
                    for row in client.get_metric_history(run.info.run_id, key)
                ]
                for key in run.data.metrics
            },
            "files": sorted(
                file.path for at in ("", "images") for file in client.list_artifacts(run.info.run_id, at)
            ),
        }
        for name, run in runs_of(uri).items()
    }


def test_a_sweep_is_a_parent_run_and_its_trials_are_nested_in_it(
    send: Send, outbox: Outbox, folder: SweepFolder, uri: str
) -> None:
    fill(outbox, folder)
    assert send() == (0, None)

    runs = runs_of(uri)
    parent, trial = runs["gp-0001"], runs["gp-0001-t001"]
    assert set(runs) == {"gp-0001", *(f"gp-0001-t00{number}" for number in range(1, 5))}
    assert [runs[name].info.status for name in sorted(runs)] == [
        *("RUNNING", "FINISHED", "FAILED", "KILLED", "RUNNING")
    ]
    assert parent.data.tags.items() >= {"sweep": "gp-0001", "git_commit": "abc", "best_trial": "t001"}.items()
    assert parent.data.metrics == {"best_fid": 50}
    assert trial.data.params == {"width": "4", "init_seed": "None"}
    expected = {"sweep": "gp-0001", "trial": "t001", "attempt": "1", "baseline": "True"}
    expected |= {"outcome": "complete", "reason": "why", "mlflow.parentRunId": parent.info.run_id}
    assert trial.data.tags.items() >= expected.items()
    assert (trial.info.start_time, trial.info.end_time) == (2000, 4001)


def test_metrics_keep_the_time_and_step_they_were_measured_at(
    send: Send, outbox: Outbox, folder: SweepFolder, uri: str
) -> None:
    fill(outbox, folder)
    send()

    assert everything(uri)["gp-0001-t002"]["metrics"] == {
        "fid": [(3001, 640, 100), (3002, 1280, 50)],
        "wasserstein": [(3001, 640, 1), (3002, 1280, 1)],
    }


def test_pictures_and_files_arrive_and_are_not_kept_twice(
    send: Send, outbox: Outbox, folder: SweepFolder, uri: str, tmp_path: Path
) -> None:
    fill(outbox, folder)
    send()

    seen = everything(uri)
    assert seen["gp-0001"]["files"] == ["space.yaml"]
    shown = {path.split("+")[2]: path for path in seen["gp-0001-t001"]["files"] if path.endswith(".png")}
    assert set(shown) == {"640", "1280"}
    run = runs_of(uri)["gp-0001-t001"]
    local = MlflowClient(uri).download_artifacts(run.info.run_id, shown["1280"], str(tmp_path))
    assert Image.open(local).getpixel((0, 0)) == 2
    assert not list(folder.outbox.glob("*.png"))
    assert run.info.artifact_uri.startswith((folder.out / "mlartifacts" / "gp").as_uri())


def test_everything_sent_twice_is_there_once(
    send: Send, outbox: Outbox, folder: SweepFolder, uri: str
) -> None:
    fill(outbox, folder)
    pictures = {path: path.read_bytes() for path in folder.outbox.glob("*.png")}
    send()
    once = everything(uri)

    (folder.outbox / "sent").unlink()
    for path, content in pictures.items():
        path.write_bytes(content)
    assert outbox.unsent > 12
    assert send() == (0, None)
    assert everything(uri) == once


def test_a_line_that_was_sent_but_not_marked_is_there_once_when_its_picture_is_gone(
    send: Send, outbox: Outbox, folder: SweepFolder, uri: str
) -> None:
    fill(outbox, folder)
    send()
    once = everything(uri)

    outbox.mark_sent(0)
    _, mark = list(outbox.waiting())[4]
    outbox.mark_sent(mark)
    assert send() == (0, None)
    assert everything(uri) == once


def test_a_resumed_trial_goes_on_in_its_run(
    send: Send, outbox: Outbox, folder: SweepFolder, uri: str
) -> None:
    fill(outbox, folder)
    send()
    before = runs_of(uri)["gp-0001-t003"]
    outbox.append(trial="t003", params={"width": 4}, tags={"attempt": 2}, status="RUNNING")
    outbox.append(trial="t003", tick=3, step=1920, metrics={"fid": 9.0})
    send()

    after = runs_of(uri)["gp-0001-t003"]
    assert (after.info.run_id, after.info.status) == (before.info.run_id, "RUNNING")
    assert (after.data.tags["attempt"], after.data.metrics["fid"]) == ("2", 9)
    assert everything(uri)["gp-0001-t003"]["metrics"]["fid"][-1][1] == 1920


def test_sweeps_of_one_name_in_one_database_have_runs_of_their_own(
    send: Send, outbox: Outbox, folder: SweepFolder, uri: str
) -> None:
    outbox.append(trial="t001", status="RUNNING")
    send()
    outbox.append(trial="t001", status="RUNNING")
    send(sweep_id="gp-0001-other")

    client = MlflowClient(uri)
    runs = client.search_runs([client.get_experiment_by_name("gp").experiment_id])
    assert sorted(run.info.run_name for run in runs) == ["gp-0001", "gp-0001", "gp-0001-t001", "gp-0001-t001"]


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


def test_a_picture_that_arrived_though_its_answer_was_lost_is_there_once(
    outbox: Outbox, folder: SweepFolder, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    connected, lost, real = threading.Event(), [], sending.Sender._log_picture

    def log_picture(sender: Any, run: str, line: dict) -> None:
        real(sender, run, line)
        if not lost:
            lost.append(line["tick"])
            raise ConnectionError("the answer was lost")

    class Sender(sending.Sender):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            connected.set()

    monkeypatch.setattr(sending.Sender, "_log_picture", log_picture)
    monkeypatch.setattr(tracking, "Sender", Sender)
    tracker = tracking.Tracker(folder, outbox, sweep_id="gp-0001-x", experiment="gp", uri=uri)
    tracker.start()
    assert connected.wait(30)
    for tick in (1, 2):  # measured after this start connected to MLflow
        outbox.append(trial="t001", tick=tick, step=640 * tick, metrics={"fid": 9.0}, samples=picture(tick))
    assert (tracker.finish(patience=30), lost) == (0, [1])

    files = [path for path in everything(uri)["gp-0001-t001"]["files"] if path.endswith(".png")]
    assert sorted(path.split("+")[2] for path in files) == ["1280", "640"]


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


def test_what_mlflow_never_takes_is_passed_over_named_and_tried_again_by_the_next_start(
    outbox: Outbox, folder: SweepFolder, uri: str, caplog: pytest.LogCaptureFixture
) -> None:
    outbox.append(trial="t001", params={"width": 4}, status="RUNNING")
    outbox.append(
        trial="t001", params={"width": 8, "depth": 2}, tags={"attempt": 2}, metrics={"fid": 3}, step=9
    )
    outbox.append(trial="t001", metrics={"fid": 2.0, "not a name!": 1.0}, step=18, samples=picture(1))
    outbox.append(trial="t001", tags={"outcome": "complete"}, status="FINISHED")

    for _ in range(2):
        caplog.clear()
        tracker = tracking.Tracker(folder, outbox, sweep_id="gp-0001-x", experiment="gp", uri=uri)
        tracker.start()
        assert tracker.finish(patience=30) == 0
        run = runs_of(uri)["gp-0001-t001"]
        assert run.data.params == {"width": "4", "depth": "2"}
        assert run.data.tags.items() >= {"attempt": "2", "outcome": "complete"}.items()
        assert (run.data.metrics, run.info.status) == ({"fid": 2}, "FINISHED")
        (told,) = [record.getMessage() for record in caplog.records if record.name == "sweeps.tracking"]
        assert told.startswith(
            "MLflow does not take line 2 (t001: params width: Changing param values is not"
        )
        assert told.endswith("; the rest is sent without it")
        (words,) = tracker.last_words()
        assert words.startswith(
            "2 records were not taken whole by MLflow, the first is line 2 (t001: params w"
        )
        assert words.endswith(f"). --resume tries again; all are in {folder.outbox}/refused.jsonl")
        files = everything(uri)["gp-0001-t001"]["files"]
        assert len([path for path in files if path.endswith(".png")]) == 1


def test_a_run_deleted_in_mlflow_holds_nothing_up_and_is_not_made_again(
    send: Send, outbox: Outbox, folder: SweepFolder, uri: str
) -> None:
    fill(outbox, folder)
    send()
    client = MlflowClient(uri)
    client.delete_run(runs_of(uri)["gp-0001-t004"].info.run_id)
    outbox.append(trial="t004", tick=3, step=1920, metrics={"fid": 1.0})
    outbox.append(trial="t005", tick=1, step=640, metrics={"fid": 1.0})

    assert send() == (0, None)
    assert sorted(runs_of(uri)) == ["gp-0001", *(f"gp-0001-t00{number}" for number in (1, 2, 3, 5))]
    client.restore_run(client.search_runs(["1"], "", ViewType.DELETED_ONLY)[0].info.run_id)
    assert send() == (0, None)
    assert everything(uri)["gp-0001-t004"]["metrics"]["fid"][-1][1] == 1920


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


def test_a_damaged_picture_and_a_file_that_is_gone_are_passed_over(
    send: Send, outbox: Outbox, folder: SweepFolder, uri: str
) -> None:
    outbox.append(trial="t001", tick=1, step=640, metrics={"fid": 1.0}, samples=picture(1)[:50])
    outbox.append(files=["gone.yaml"], tags={"a": 1})
    assert send() == (0, None)
    assert runs_of(uri)["gp-0001"].data.tags["a"] == "1"
    first, second = [json.loads(line)["refused"][0] for line in outbox.refused.read_text().splitlines()]
    assert first.startswith("picture: t001-00001.png is damaged") and second == "file gone.yaml: is gone"


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
        "  sending 1 records to MLflow, which cannot be reached (Connection refused) for up to 60 s;"
        " Ctrl-C leaves them to --resume ..."
    ]
    assert tracker.last_words() == [
        "1 records have not reached MLflow (Connection refused); --resume sends them."
    ]


def test_a_new_database_appears_when_it_is_whole(
    send: Send, outbox: Outbox, folder: SweepFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outbox.append(trial="t001", tick=1, step=1, metrics={"fid": 1.0})
    new, stopped, real = tmp_path / "new.db", [], utils._upgrade_db

    def stops_half_way(engine: Any) -> None:
        real(engine)
        if not stopped:
            stopped.append(engine)
            raise ConnectionError("killed")

    monkeypatch.setattr(utils, "_upgrade_db", stops_half_way)
    assert send(f"sqlite:///{new}") == (0, None)
    assert stopped and f"{tmp_path}/.new.db." in str(stopped[0].url)
    assert sorted(runs_of(f"sqlite:///{new}")) == ["gp-0001", "gp-0001-t001"]
    assert not list(tmp_path.glob(".new.db*"))
