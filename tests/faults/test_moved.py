"""A sweep that is moved and goes on where it is now: nothing is made at the old place."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest
from mlflow import MlflowClient

from tests.faults.conftest import SPACE, ScriptedSweep
from tests.real_sweep import Sweep

DRIVER = Path(__file__).resolve().parents[1] / "driver.py"
MANY, TICKS = ["--set", "train.budget_kimg=180"], 20
"""Ticks of each trial, so that there is time to stop it."""


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder `old/runs` with a sweep that was stopped half-way, and a copy of it as it then was."""
    top = tmp_path_factory.mktemp("moved")
    sweep = ScriptedSweep(top / "old" / "runs")
    sweep.environment["WGANGP_CACHE"] = None
    sweep.client().search_experiments()  # so that MLflow has its tables when the first tick ends
    sweep.script(seconds=0.4)

    def pictures_have_arrived(line: str) -> bool:
        return " kimg " in line and any((sweep.out / "mlartifacts").rglob("*.webp"))

    status = sweep.run_until(
        pictures_have_arrived,
        lambda driver: driver.send_signal(signal.SIGINT),
        *("--space", str(SPACE), *MANY),
    )
    assert status == 130, sweep.output
    shutil.copytree(sweep.out, top / "kept", symlinks=True)
    return top


@pytest.fixture
def interrupted(stopped: Path) -> Any:
    """The sweep at its old place."""
    shutil.rmtree(stopped / "old", ignore_errors=True)
    shutil.copytree(stopped / "kept", stopped / "old" / "runs", symlinks=True)
    sweep = Sweep(stopped / "old" / "runs", name="scripted", trainer="tests.scripted_trainer")
    return sweep


def type_from(folder: Path, sweep: Any, *arguments: str | Path, **environment: str) -> tuple[int, str]:
    """Type a command line in another working directory, as it stands; exit status and what it printed."""
    folder.mkdir(exist_ok=True)
    kept = {key: value for key, value in os.environ.items() if key != "MLFLOW_TRACKING_URI"}
    command = [sys.executable, DRIVER, folder / "facts.json", sweep.trainer, *arguments]
    done = subprocess.run(
        command, cwd=folder, env=kept | environment, text=True, capture_output=True, timeout=240
    )
    assert {path.name for path in folder.iterdir()} <= {"facts.json"}, "made something where it was typed"
    (folder / "facts.json").unlink(missing_ok=True)
    return done.returncode, done.stdout + done.stderr


def at(sweep: Any, out: Path) -> None:
    sweep.out, sweep.folder = out, out / sweep.folder.name


def pictures(sweep: Any, database: Path) -> set[Path]:
    """Where MLflow says that the pictures of all trials lie."""
    # Another address than in `stopped`: MLflow keeps its connections, also to a file that is gone.
    client = MlflowClient(f"sqlite:///{database}?timeout=7")
    sweep.client = lambda: client
    return {
        Path(url2pathname(urlsplit(run.info.artifact_uri).path)) / file.path
        for run in sweep.runs()[1].values()
        for file in client.list_artifacts(run.info.run_id, "images")
    }


def test_a_moved_folder_of_sweeps_goes_on_with_its_database_and_its_pictures(
    interrupted: Any, tmp_path: Path
) -> None:
    before = {label: run.info.run_id for label, run in interrupted.runs()[1].items()}
    old, new = interrupted.out, tmp_path / "new" / "place with spaces"
    new.parent.mkdir()
    shutil.move(old, new)
    at(interrupted, new)

    status, said = type_from(
        tmp_path / "elsewhere", interrupted, "--resume", "scripted-0001", "--out", "../new/place with spaces"
    )
    assert status == 0, said
    assert not old.exists()
    assert str(old) not in said
    assert str(interrupted.folder) in said and f"sqlite:///{new}/mlflow.db" in said
    shown = pictures(interrupted, new / "mlflow.db")
    assert len(shown) == 3 * TICKS * 2 and all(path.exists() for path in shown)
    assert all(path.is_relative_to(new / "mlartifacts" / "scripted") for path in shown)
    interrupted.assert_everything_agrees()
    _, runs = interrupted.runs()
    assert len(runs) == 3 and {label: runs[label].info.run_id for label in before} == before
    experiment = interrupted.client().get_experiment_by_name("scripted")
    assert experiment.artifact_location == (new / "mlartifacts" / "scripted").as_uri()
    assert (new / "cache" / "ticks.jsonl").exists()


def test_a_sweep_moved_away_from_its_database_goes_on_in_it(interrupted: Any, tmp_path: Path) -> None:
    old, new = interrupted.out, tmp_path / "new"
    new.mkdir()
    shutil.move(interrupted.folder, new)
    shutil.copytree((interrupted.out / "cache"), new / "cache")
    at(interrupted, new)

    status, said = type_from(tmp_path / "elsewhere", interrupted, "--resume", new / "scripted-0001")
    assert status == 0, said
    assert f"sqlite:///{old}/mlflow.db" in said
    assert not (new / "mlflow.db").exists() and not (old / "scripted-0001").exists()
    shown = pictures(interrupted, old / "mlflow.db")
    assert all(path.is_relative_to(old / "mlartifacts" / "scripted") for path in shown)
    interrupted.assert_everything_agrees()


def test_a_sweep_whose_store_is_gone_says_how_to_name_one_and_sends_all_again(
    interrupted: Any, tmp_path: Path
) -> None:
    old, new = interrupted.out, tmp_path / "new"
    new.mkdir()
    shutil.copytree(interrupted.folder, new / "scripted-0001")
    shutil.copytree((interrupted.out / "cache"), new / "cache")
    shutil.move(old, tmp_path / "another machine")
    MlflowClient(f"sqlite:///{new / 'mlflow.db'}").create_experiment("of others")
    at(interrupted, new)

    for more in ([], ["--check"], ["--check", "--offline"]):
        status, said = type_from(tmp_path / "elsewhere", interrupted, "--resume", interrupted.folder, *more)
        (line,) = said.splitlines()
        assert (status, line) == (
            2,
            f"scripted-0001: was recorded in sqlite:///{old}/mlflow.db, which is gone. Bring it back, or name"
            f" a store to which all is sent again but the pictures sent before: MLFLOW_TRACKING_URI=sqlite:///{new}/mlflow.db",
        )
    named = line.rpartition("=")[2]
    status, said = type_from(
        tmp_path / "elsewhere", interrupted, "--resume", interrupted.folder, MLFLOW_TRACKING_URI=named
    )
    assert status == 0, said
    assert f"Warning: {named} has no records of scripted-0001: all are sent again" in said
    assert not old.exists()
    client = MlflowClient(named)
    experiment = client.get_experiment_by_name("scripted")
    runs = {run.data.tags.get("trial"): run for run in client.search_runs([experiment.experiment_id])}
    assert sorted(filter(None, runs)) == ["t001", "t002", "t003"]
    for label, trial in interrupted.trials().items():
        rows = client.get_metric_history(runs[label].info.run_id, "fid")
        assert [row.step for row in rows] == [9000 * tick for tick in range(1, TICKS + 1)]
        assert [row.timestamp for row in rows] == sorted(row.timestamp for row in rows)
        assert runs[label].data.tags["outcome"] == "complete" and trial.user_attrs["label"] == label
    remembered = json.loads((interrupted.folder / "tracking").read_text())
    assert remembered == {"store": named, "beside": True}

    status, said = type_from(
        tmp_path / "elsewhere", interrupted, "--resume", interrupted.folder, "--check", "--offline"
    )
    assert status == 0 and "nothing is left to do" in said
