"""The outbox sent to a real MLflow database, once, twice, late."""

import io
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mlflow import MlflowClient
from mlflow.entities import Run
from PIL import Image

from sweeps import tracking
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
    return tracking.tracking_uri(folder.out)


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
    assert trouble is not None and "\n" not in trouble and "127.0.0.1" in trouble
    assert send() == (0, None)
    assert len(runs_of(uri)) == 5


def test_recording_does_not_wait_for_mlflow(
    outbox: Outbox, folder: SweepFolder, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, answers = threading.Event(), threading.Event()

    def send(sender: object, line: dict) -> None:
        asked.set()
        assert answers.wait(30)

    monkeypatch.setattr(tracking._Sender, "send", send)
    tracker = tracking.Tracker(folder, outbox, sweep_id="x", experiment="gp", uri=uri)
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

    def send(sender: object, line: dict) -> None:
        sent.append(line["tick"])
        asked.set()
        assert answers.wait(30)

    monkeypatch.setattr(tracking._Sender, "send", send)
    for tick in range(1, 6):
        outbox.append(trial="t001", tick=tick)
    tracker = tracking.Tracker(folder, outbox, sweep_id="x", experiment="gp", uri=uri)
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
    connected, lost, real = threading.Event(), [], tracking._Sender._log_picture

    def log_picture(sender: Any, run: str, line: dict) -> None:
        real(sender, run, line)
        if not lost:
            lost.append(line["tick"])
            raise ConnectionError("the answer was lost")

    class Sender(tracking._Sender):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            connected.set()

    monkeypatch.setattr(tracking._Sender, "_log_picture", log_picture)
    monkeypatch.setattr(tracking, "_Sender", Sender)
    tracker = tracking.Tracker(folder, outbox, sweep_id="x", experiment="gp", uri=uri)
    tracker.start()
    assert connected.wait(30)
    for tick in (1, 2):  # measured after this start connected to MLflow
        outbox.append(trial="t001", tick=tick, step=640 * tick, metrics={"fid": 9.0}, samples=picture(tick))
    assert (tracker.finish(patience=30), lost) == (0, [1])

    files = [path for path in everything(uri)["gp-0001-t001"]["files"] if path.endswith(".png")]
    assert sorted(path.split("+")[2] for path in files) == ["1280", "640"]


def test_a_line_mlflow_refuses_for_a_while_is_sent_in_its_place(
    send: Send, outbox: Outbox, folder: SweepFolder, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent, real = [], tracking._Sender.send

    def refuses_once(sender: Any, line: dict) -> None:
        sent.append(line["tick"])
        if len(sent) == 2:
            raise ConnectionError("gone\nfor a while")
        real(sender, line)

    monkeypatch.setattr(tracking._Sender, "send", refuses_once)
    for tick in (1, 2, 3):
        outbox.append(trial="t001", tick=tick, step=tick, metrics={"fid": tick})
    assert send() == (0, None)
    assert sent == [1, 2, 2, 3]
    assert [row[1] for row in everything(uri)["gp-0001-t001"]["metrics"]["fid"]] == [1, 2, 3]
