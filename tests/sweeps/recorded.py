"""Lines for an outbox, and what MLflow has of them: for the tests of sending and tracking."""

import io
from typing import Any

from mlflow import MlflowClient
from mlflow.entities import Run
from PIL import Image

from sweeps.folder import SweepFolder
from sweeps.outbox import Outbox


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
