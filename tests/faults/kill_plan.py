"""Named moments in a driver's life, at a planned one of which it is ended with SIGKILL.

In a folder, `plan.json` says {"moment": ..., "count": 3, "half": false}: at the third time the moment comes
the driver dies, before what is about to be done, or half-way through it. `passed` lists the moments that
came, `died` is there if the plan was carried out. `tests/driver.py` arms the driver; what a worker is about
to do is watched by the trainers of the tests, which end the driver and wait to be ended with it.
"""

import json
import os
import shutil
import signal
import time
from collections.abc import Callable
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Any

FILES = {
    ("open", "*-0001/lock"): "folder claimed",
    ("replace", "*/.space.yaml.*"): "space named",
    ("replace", "*/.id.*"): "id named",
    ("replace", "*/.tracking.*"): "store remembered",
    ("write_bytes", "*/study.log.torn"): "torn line kept",
    ("open", "*/study.log"): "torn line cut",  # with pathlib it is opened for this only
    ("unlink", "*/study.log.lock"): "stale lock removed",
    ("write_bytes", "*/outbox/t*.png"): "picture kept",
    ("unlink", "*/outbox/t*.png"): "picture dropped",
    ("write_text", "*/outbox/sent.new"): "mark written",
    ("replace", "*/outbox/sent.new"): "mark moved",
    ("replace", "*/best/.scores.json.*"): "scores written",
    ("replace", "*/.best.yaml.*"): "winner named",
    ("replace", "*/.wall.png.*"): "wall hung",
    ("replace", "*/.trials.json.*"): "table written",
    ("replace", "*/.report.md.*"): "report written",
    ("replace", "*/.report.html.*"): "page written",
}
"""(method of Path, pattern) -> what is about to happen; those that write can be left half-way."""


class Plan:
    """The plan in a folder, carried out by every process that looks into it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def make(self, moment: str = "", *, count: int = 0, half: bool = False) -> None:
        for name in ("passed", "died", "driver"):
            (self.folder / name).unlink(missing_ok=True)
        (self.folder / "passed").touch()
        plan = {"moment": moment, "count": count, "half": half}
        (self.folder / "plan.json").write_text(json.dumps(plan))

    @property
    def died(self) -> bool:
        return (self.folder / "died").exists()

    @property
    def passed(self) -> list[str]:
        """The moments that came in the last start, in order."""
        return (self.folder / "passed").read_text().splitlines()

    def reach(self, moment: str, *, half: Callable[[], Any] | None = None) -> None:
        """`moment` has come: the driver dies now if that is the plan; `half` does half of what follows."""
        if not (self.folder / "driver").exists():
            return
        with (self.folder / "passed").open("a") as file:
            file.write(f"{moment}\n")
        plan = json.loads((self.folder / "plan.json").read_text())
        if moment != plan["moment"] or self.passed.count(moment) != plan["count"]:
            return
        if plan["half"]:
            assert half, f"{moment} has no half"
            half()
        (self.folder / "died").touch()
        os.kill(int((self.folder / "driver").read_text()), signal.SIGKILL)
        time.sleep(60)  # in a worker, which is ended with its driver


def arm(folder: Path) -> None:
    """Watch this process, the driver, by the plan in `folder`."""
    plan = Plan(folder)
    (folder / "driver").write_text(str(os.getpid()))
    _watch_files(plan)
    _watch_journal(plan)
    _watch_outbox(plan)
    _watch_mlflow(plan)
    _watch_folders(plan)


def watch_copies(folder: Path) -> None:
    """Watch Ray, in this process, a worker, as it copies a checkpoint to where it is kept."""
    from ray.train._internal import storage

    plan, copy = Plan(folder), storage._pyarrow_fs_copy_files

    def watched(source: str, destination: str, *arguments: Any, **named: Any) -> None:
        def half() -> None:
            for path in Path(source).iterdir():
                (Path(destination) / path.name).write_bytes(_half(path.read_bytes()))
                break

        if "checkpoint_" in destination:
            plan.reach("checkpoint copied", half=half)
        copy(source, destination, *arguments, **named)

    storage._pyarrow_fs_copy_files = watched


def _before(owner: Any, name: str, look: Callable[..., None]) -> None:
    """Have `look` called with the arguments of a method before it is."""
    method = getattr(owner, name)

    def watched(*arguments: Any, **named: Any) -> Any:
        look(*arguments, **named)
        return method(*arguments, **named)

    setattr(owner, name, watched)


def _half(whole: Any) -> Any:
    return whole[: len(whole) // 2]


def _watch_files(plan: Plan) -> None:
    writers = {"write_text": Path.write_text, "write_bytes": Path.write_bytes}

    def look_for(method: str) -> Callable[..., None]:
        def look(path: Path, *arguments: Any, **named: Any) -> None:
            if method == "open" and arguments[:1] not in (("a+",), ("rb+",)):
                return
            moments = [m for (known, where), m in FILES.items() if known == method and fnmatch(path, where)]
            for moment in moments:
                write = partial(writers[method], path, _half(arguments[0])) if method in writers else None
                plan.reach(moment, half=write)

        return look

    for method in {method for method, _ in FILES}:
        _before(Path, method, look_for(method))


def _watch_journal(plan: Plan) -> None:
    from optuna.storages.journal import JournalFileBackend

    def look(backend: JournalFileBackend, logs: list[dict[str, Any]]) -> None:
        def half() -> None:
            backend._lock.acquire()
            with Path(backend._file_path).open("a") as file:
                file.write(_half(json.dumps(logs[0])))

        plan.reach(f"journal {_kind(logs[0])}", half=half)

    _before(JournalFileBackend, "append_logs", look)


def _kind(record: dict[str, Any]) -> str:
    """What a record of Optuna's journal says, in a word."""
    from optuna.storages.journal._storage import JournalOperation as Operation
    from optuna.trial import TrialState

    (key,) = record.get("user_attr") or record.get("system_attr") or [""]
    match record["op_code"]:
        case Operation.CREATE_STUDY:
            return "study"
        case Operation.CREATE_TRIAL:
            return "copy" if "retry_of" in record["user_attrs"] else "trial"
        case Operation.SET_TRIAL_INTERMEDIATE_VALUE:
            return "value"
        case Operation.SET_TRIAL_STATE_VALUES:
            return TrialState(record["state"]).name.lower()
        case Operation.SET_TRIAL_SYSTEM_ATTR:
            return "rung" if key.startswith("completed_rung_") else key
        case _:
            return "tick" if key.startswith("tick_") else key


def _watch_outbox(plan: Plan) -> None:
    from sweeps.outbox import Outbox

    class Lines:
        def __init__(self, file: Any) -> None:
            self._file = file

        def write(self, line: bytes) -> int:
            plan.reach("line kept", half=lambda: self._file.write(_half(line)))
            return self._file.write(line)

    opened = Outbox.__init__

    def watched(outbox: Outbox, *arguments: Any, **named: Any) -> None:
        opened(outbox, *arguments, **named)
        outbox._file = Lines(outbox._file)

    Outbox.__init__ = watched


def _watch_mlflow(plan: Plan) -> None:
    from alembic.runtime.migration import HeadMaintainer
    from mlflow.store.artifact.local_artifact_repo import LocalArtifactRepository
    from mlflow.tracking.client import MlflowClient

    from sweeps.sending import Sender

    _before(Sender, "send", lambda *_, **named: plan.reach("line sent"))
    _before(MlflowClient, "create_run", lambda *_, **named: plan.reach("run made"))
    _before(MlflowClient, "log_batch", lambda *_, **named: plan.reach("values logged"))
    _before(MlflowClient, "set_terminated", lambda *_, **named: plan.reach("run ended"))
    _before(MlflowClient, "set_tag", lambda *_, **named: plan.reach("pictures tagged"))  # by log_image only
    _before(HeadMaintainer, "update_to_step", lambda *_: plan.reach("table of MLflow made"))

    def artifact(_: Any, path: str, *others: Any, **named: Any) -> None:
        names = {".png": "picture sent", ".webp": "thumbnail sent"}
        plan.reach(names.get(Path(path).suffix, "file sent"))

    _before(LocalArtifactRepository, "log_artifact", artifact)


def _watch_folders(plan: Plan) -> None:
    import ray

    def look(path: Any, *arguments: Any, **named: Any) -> None:
        if Path(path).name.startswith("checkpoint_"):
            plan.reach("checkpoint dropped", half=lambda: next(Path(path).iterdir()).unlink())

    _before(shutil, "rmtree", look)
    _before(ray, "shutdown", lambda *_, **named: plan.reach("Ray shut down"))
