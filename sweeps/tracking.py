"""Outbox -> MLflow: the sweep as a parent run, its trials as child runs, metrics, pictures, outcomes.

One thread sends; when MLflow cannot be reached it waits and tries again, and training goes on. Runs are
found by their tags before they are made, and a value's timestamp is the one it was measured at, so that
sending a line twice changes nothing.
"""

import fcntl
import io
import logging
import os
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sweeps.folder import SweepFolder
from sweeps.outbox import Outbox
from wgangp.errors import UserError

log = logging.getLogger(__name__)

DATABASES = ("sqlite", "postgresql", "mysql", "mssql")


def tracking_uri(out: Path) -> str:
    """Where runs are recorded: MLFLOW_TRACKING_URI, else a database under `out`.

    Raises:
        UserError: the variable names a kind of store that MLflow no longer writes.
    """
    given = os.environ.get("MLFLOW_TRACKING_URI")
    if not given:
        return f"sqlite:///{out.resolve() / 'mlflow.db'}"
    scheme = urlsplit(given).scheme.partition("+")[0]
    if scheme not in (*DATABASES, "http", "https", "databricks"):
        raise UserError(
            "MLFLOW_TRACKING_URI: must be a database (sqlite:///...) or a server (http://...), "
            f"got '{given}'. Unset it to use {out / 'mlflow.db'}."
        )
    driver, slashes, database = given.partition(":///")
    if scheme == "sqlite" and database and not database.startswith(("/", ":memory:")):
        given = (
            driver + slashes + str(Path(database).resolve())
        )  # from another folder it would be another file
    return given


def ui_command(python: str, uri: str) -> list[str]:
    """The command that shows the runs; for a server, its address is where they are shown."""
    if uri.startswith("http"):
        return [uri]
    return [python, "-m", "mlflow", "ui", "--backend-store-uri", uri]


class Tracker:
    """Sends the outbox from its own thread between `start` and `finish`."""

    def __init__(
        self, folder: SweepFolder, outbox: Outbox, *, sweep_id: str, experiment: str, uri: str
    ) -> None:
        self._folder, self._outbox = folder, outbox
        self._sweep_id, self._experiment, self._uri = sweep_id, experiment, uri
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tracking", daemon=True)
        self._sender: _Sender | None = None
        self.trouble: str | None = None
        """Why the last try failed, while it does."""

    def start(self) -> None:
        self._thread.start()

    def finish(self, *, patience: float) -> int:
        """Send what waits, for at most `patience` seconds; the number of lines left unsent."""
        deadline = time.monotonic() + patience
        while self._outbox.unsent and self._thread.is_alive() and time.monotonic() < deadline:
            time.sleep(0.05)
        self._stop.set()
        self._thread.join(timeout=max(0.1, deadline - time.monotonic()))
        return self._outbox.unsent

    def _run(self) -> None:
        pause = 0.2
        while not self._stop.is_set():
            try:
                if self._sender is None:
                    self._sender = _Sender(
                        self._folder, sweep_id=self._sweep_id, experiment=self._experiment, uri=self._uri
                    )
                for line, mark in self._outbox.waiting():
                    if self._stop.is_set():
                        return
                    self._sender.send(line)
                    self._outbox.mark_sent(mark)
                    if "samples" in line:
                        (self._outbox.folder / line["samples"]).unlink(missing_ok=True)
                if self.trouble:
                    log.warning("MLflow answers again")
                self.trouble, pause = None, 0.2
            except (
                Exception
            ) as error:  # whatever MLflow, its database or the network raises: training goes on
                self.trouble = " ".join(str(error).split())[:200]
                log.warning("MLflow cannot be reached, trying again: %s", self.trouble)
                self._sender = None  # the next one looks up what had arrived
                pause = min(pause * 2, 10.0)
            self._stop.wait(pause)


class _Sender:
    """One connection to MLflow and the ids of this sweep's runs."""

    def __init__(self, folder: SweepFolder, *, sweep_id: str, experiment: str, uri: str) -> None:
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")  # the outbox retries, and says so
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "10")
        from mlflow import MlflowClient

        self._folder, self._sweep_id = folder, sweep_id
        # Two first starts on one fresh database would collide in its schema migration.
        with (folder.out / ".mlflow.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._client = MlflowClient(tracking_uri=uri)
            found = self._client.get_experiment_by_name(experiment)
            local = (folder.out / "mlartifacts" / experiment).resolve().as_uri()
            artifacts = local if uri.startswith("sqlite") else None
            self._experiment_id = (
                found.experiment_id
                if found
                else self._client.create_experiment(experiment, artifact_location=artifacts)
            )
        self._runs: dict[str, str] = {}
        self._since = int(time.time() * 1000)

    def send(self, line: dict[str, Any]) -> None:
        """Record one line: metrics, params, tags, a picture, files, and the run's new status."""
        run = self._run_id(line.get("trial"), made=line["time"])
        if line.get("status") == "RUNNING":
            self._client.update_run(run, status="RUNNING")
        self._log(run, line)
        if "samples" in line:
            self._log_picture(run, line)
        for file in line.get("files", []):
            self._client.log_artifact(run, str(self._folder.path / file))
        if line.get("status", "RUNNING") != "RUNNING":
            self._client.set_terminated(run, status=line["status"], end_time=line["time"])

    def _run_id(self, trial: str | None, *, made: int) -> str:
        """The run of a trial, or of the sweep (None), made if it is not there."""
        name = f"{self._folder.name}-{trial}" if trial else self._folder.name
        if name not in self._runs:
            tags = {"sweep": self._folder.name, "sweep_id": self._sweep_id}
            if trial:
                tags |= {"trial": trial, "mlflow.parentRunId": self._run_id(None, made=made)}
            where = f"tags.sweep_id = '{self._sweep_id}' and attributes.run_name = '{name}'"
            found = self._client.search_runs([self._experiment_id], where, max_results=1)
            run = (
                found[0]
                if found
                else self._client.create_run(self._experiment_id, start_time=made, run_name=name, tags=tags)
            )
            self._runs[name] = run.info.run_id
        return self._runs[name]

    def _log(self, run: str, line: dict[str, Any]) -> None:
        from mlflow.entities import Metric, Param, RunTag

        step = line.get("step", 0)
        metrics = [Metric(key, value, line["time"], step) for key, value in line.get("metrics", {}).items()]
        params = [Param(key, str(value)) for key, value in line.get("params", {}).items()]
        tags = [RunTag(key, str(value)) for key, value in line.get("tags", {}).items()]
        if metrics or params or tags:
            self._client.log_batch(run, metrics=metrics, params=params, tags=tags)

    def _log_picture(self, run: str, line: dict[str, Any]) -> None:
        from PIL import Image

        path = self._folder.outbox / line["samples"]
        if not path.exists():
            return  # it went before the mark was moved
        # Unlike a metric, a picture sent twice would be there twice.
        key = f"samples+step+{line['step']}+"
        from_before = line["time"] < self._since
        if not (from_before and any(key in file.path for file in self._client.list_artifacts(run, "images"))):
            image = Image.open(io.BytesIO(path.read_bytes()))
            self._client.log_image(
                run, image, key="samples", step=line["step"], timestamp=line["time"], synchronous=True
            )
