"""One connection to MLflow: a line of the outbox becomes runs, metrics, params, tags, pictures, files.

Runs are found by their tags before they are made, and a value's timestamp is the one it was measured at, so
that sending a line twice changes nothing. `tracking` decides when.
"""

import contextlib
import fcntl
import io
import logging
import os
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from sweeps import registering, store
from sweeps.folder import SweepFolder


class NotStored(Exception):
    """MLflow answers, but the place where it keeps pictures and files does not take them."""


class Sender:
    """One connection to MLflow and the ids of this sweep's runs."""

    def __init__(self, folder: SweepFolder, *, sweep_id: str, experiment: str, uri: str) -> None:
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")  # the outbox retries, and says so
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "10")
        from mlflow import MlflowClient

        # It would print a traceback for every try, over the table; the tracker says why in a line.
        for name in ("mlflow", "urllib3"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self._folder, self._sweep_id = folder, sweep_id
        database = store.database_file(uri)
        place = database.parent if database else folder.out
        place.mkdir(parents=True, exist_ok=True)
        # Two first starts on one fresh database would collide as they make its tables.
        with (place / ".mlflow.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if database and not database.exists():
                _make(database)
            self._client = MlflowClient(tracking_uri=uri)
            found = self._client.get_experiment_by_name(experiment)
            if database == folder.out / "mlflow.db":
                store.mend_addresses(database)
            artifacts = store.artifacts_beside(database, experiment) if database else None
            self.experiment_id = (
                found.experiment_id
                if found
                else self._client.create_experiment(experiment, artifact_location=artifacts)
            )
        self._runs = self._known_runs()
        self._refused: list[str] = []
        self._since = int(time.time() * 1000)

    def knows_the_sweep(self) -> bool:
        """Whether anything of this sweep has arrived here, by this start or an earlier one."""
        return bool(self._runs)

    def send(self, line: dict[str, Any], *, pictures: bool) -> list[str]:
        """Record one line: metrics, params, tags, a picture, files, and the run's new status.

        `pictures`: whether to try pictures and files. Returns what will never be taken, each as `what: why`.
        """
        self._refused = []
        run = self._run_id(line.get("trial"), made=line["time"])
        if line.get("status") == "RUNNING":
            with self._noting("status"):
                self._client.update_run(run, status="RUNNING")
        for key, value in line.get("experiment_tags", {}).items():
            with self._noting(f"experiment tag {key}"):
                self._client.set_experiment_tag(self.experiment_id, key, value)
        for kind, entries in _entries(line).items():
            if entries:
                self._log(run, kind, entries)
        for name, store_it in self._pictures_and_files(run, line).items():
            if pictures:
                with self._noting(name), _storing():
                    store_it()
            else:
                self._refused.append(f"{name}: left out")
        if line.get("status", "RUNNING") != "RUNNING":
            with self._noting("status"):
                self._client.set_terminated(run, status=line["status"], end_time=line["time"])
        return self._refused

    def _run_id(self, trial: str | None, *, made: int) -> str:
        """The run of a trial, or of the sweep (None), made if it is not there."""
        if trial not in self._runs:
            sweep = self._sweep_id.rpartition("-")[0]  # its first name, should the folder have another by now
            tags = {"sweep": sweep, "sweep_id": self._sweep_id}
            if trial:
                tags |= {"trial": trial, "mlflow.parentRunId": self._run_id(None, made=made)}
            name = f"{sweep}-{trial}" if trial else sweep
            run = self._client.create_run(self.experiment_id, start_time=made, run_name=name, tags=tags)
            self._runs[trial] = run.info.run_id
        return self._runs[trial]

    def _known_runs(self) -> dict[str | None, str]:
        """The runs of this sweep by trial, also those in MLflow's trash: who deleted one wants no other."""
        from mlflow.entities import ViewType

        runs: dict[str | None, str] = {}
        token: str | None = None
        while True:
            where = f"tags.sweep_id = '{self._sweep_id}'"
            page = self._client.search_runs(
                [self.experiment_id], where, ViewType.ALL, max_results=1000, page_token=token
            )
            runs |= {run.data.tags.get("trial"): run.info.run_id for run in page}
            token = page.token
            if not token:
                return runs

    def _log(self, run: str, kind: str, entries: list[Any]) -> None:
        """Log metrics, params or tags; MLflow takes a batch whole or not at all."""
        try:
            self._client.log_batch(run, **{kind: entries})  # type: ignore[arg-type]
        except Exception as error:
            if not _is_final(error):
                raise
            if len(entries) == 1:
                self._refused.append(f"{kind} {entries[0].key}: {reason(error)}")
            else:
                for entry in entries:
                    self._log(run, kind, [entry])

    def _pictures_and_files(self, run: str, line: dict[str, Any]) -> dict[str, Callable[[], None]]:
        """What stores each picture and file of a line, by a name for people."""
        steps: dict[str, Callable[[], None]] = {}
        if "samples" in line:
            steps["picture"] = partial(self._log_picture, run, line)
        for name in line.get("files", []):
            steps[f"file {name}"] = partial(self._log_file, run, name)
        if "model" in line:
            steps["model"] = partial(self._register, run, line["model"])
        return steps

    def _log_picture(self, run: str, line: dict[str, Any]) -> None:
        from PIL import Image

        path = self._folder.outbox / line["samples"]
        if not path.exists():
            return  # it went before the mark was moved
        # Unlike a metric, a picture sent twice would be there twice.
        step = line.get("mark", line["step"])
        key = f"samples+step+{step}+"
        from_before = line["time"] < self._since
        arrived = []
        if from_before:
            arrived = [file.path for file in self._client.list_artifacts(run, "images") if key in file.path]
        try:
            image = Image.open(io.BytesIO(path.read_bytes()))
            image.load()
        except (OSError, SyntaxError) as error:
            self._refused.append(f"picture: {path.name} is damaged: {reason(error)}")
            return
        if arrived:
            self._complete_picture(run, image, arrived)
        else:
            self._client.log_image(
                run, image, key="samples", step=step, timestamp=line["time"], synchronous=True
            )

    def _complete_picture(self, run: str, image: Any, arrived: list[str]) -> None:
        """Send what `log_image` sends after the picture, if a driver died in between: thumbnail and tag."""
        from mlflow.tracking.multimedia import compress_image_size

        if not any(path.endswith(".webp") for path in arrived):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / f"{Path(arrived[0]).stem}+compressed.webp"
                compress_image_size(image).save(path)
                self._client.log_artifact(run, str(path), "images")
        self._client.set_tag(run, "mlflow.loggedImages", True)

    def _log_file(self, run: str, name: str) -> None:
        path = self._folder.path / name
        if path.exists():
            self._client.log_artifact(run, str(path))
        else:
            self._refused.append(f"file {name}: is gone")

    def _register(self, run: str, model: dict[str, Any]) -> None:
        folder = self._folder.path / model["folder"]
        if not folder.exists():
            self._refused.append(f"model {model['folder']}: is gone")
            return
        registering.register(
            self._client,
            experiment_id=self.experiment_id,
            run_id=run,
            name=model["name"],
            folder=folder,
            sweep=self._sweep_id.rpartition("-")[0],
            tags=model["tags"] | {"sweep_id": self._sweep_id},
        )

    @contextlib.contextmanager
    def _noting(self, what: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            if not _is_final(error):
                raise
            self._refused.append(f"{what}: {reason(error)}")


def _make(database: Path) -> None:
    """MLflow makes its tables one by one; a database in which that was stopped half-way never opens again."""
    from mlflow import MlflowClient

    for left in database.parent.glob(f".{database.name}.*.new*"):
        left.unlink()
    # Never the same name twice: MLflow keeps a connection to the file that had it.
    aside = database.with_name(f".{database.name}.{secrets.token_hex(4)}.new")
    MlflowClient(f"sqlite:///{aside}").search_experiments(max_results=1)
    aside.replace(database)


def _entries(line: dict[str, Any]) -> dict[str, list[Any]]:
    """Metrics, params and tags of a line as MLflow wants them."""
    from mlflow.entities import Metric, Param, RunTag

    step = line.get("step", 0)
    return {
        "metrics": [Metric(key, value, line["time"], step) for key, value in line.get("metrics", {}).items()],
        "params": [Param(key, str(value)) for key, value in line.get("params", {}).items()],
        "tags": [RunTag(key, str(value)) for key, value in line.get("tags", {}).items()],
    }


@contextlib.contextmanager
def _storing() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if _is_final(error):
            raise
        raise NotStored(str(error)) from error


def _is_final(error: Exception) -> bool:
    """Whether MLflow says that what it was given can never be taken. (BAD_REQUEST may be a broken disk.)"""
    return getattr(error, "error_code", None) == "INVALID_PARAMETER_VALUE"


def reason(error: BaseException) -> str:
    """The error at the bottom of all that libraries wrapped around it, in a few words."""
    while below := error.__cause__ or error.__context__:
        if error.__cause__ is None and str(below) not in str(error):
            break  # it was handled, and is not what this one is about
        error = below
    words = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(str(words).split())[:200]
