"""The outbox sent to a real MLflow database: what arrives, once, also if it is sent twice or refused."""

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mlflow import MlflowClient
from mlflow.entities import ViewType
from mlflow.store.db import utils
from PIL import Image

from sweeps import sending, tracking
from sweeps.folder import SweepFolder
from sweeps.outbox import Outbox
from tests.sweeps.recorded import everything, fill, picture, runs_of

NOWHERE = "http://127.0.0.1:9"
Send = Callable[..., tuple[int, str | None]]


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
        line = {"step": 640 * tick, "mark": 600 * tick}
        outbox.append(trial="t001", tick=tick, **line, metrics={"fid": 9.0}, samples=picture(tick))
    assert (tracker.finish(patience=30), lost) == (0, [1])

    files = [path for path in everything(uri)["gp-0001-t001"]["files"] if path.endswith(".png")]
    assert sorted(path.split("+")[2] for path in files) == ["1200", "600"]


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


def test_a_damaged_picture_and_a_file_that_is_gone_are_passed_over(
    send: Send, outbox: Outbox, folder: SweepFolder, uri: str
) -> None:
    outbox.append(trial="t001", tick=1, step=640, metrics={"fid": 1.0}, samples=picture(1)[:50])
    outbox.append(files=["gone.yaml"], tags={"a": 1})
    assert send() == (0, None)
    assert runs_of(uri)["gp-0001"].data.tags["a"] == "1"
    first, second = [json.loads(line)["refused"][0] for line in outbox.refused.read_text().splitlines()]
    assert first.startswith("picture: t001-00001.png is damaged") and second == "file gone.yaml: is gone"


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
