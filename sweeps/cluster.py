"""Ray as a sweep needs it: started quietly, with nothing left behind, and what it has to offer."""

import contextlib
import fcntl
import logging
import os
import secrets
import shutil
import socket
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import ray
from ray._private.authentication.authentication_token_setup import (
    maybe_enable_token_auth_if_token_available,
)

from sweeps.interrupt import Interrupt
from sweeps.resources import Resources
from wgangp.errors import UserError

ROOT = Path(__file__).resolve().parent.parent

QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AIR_NEW_OUTPUT": "0",
    "RAY_TRAIN_ENABLE_V2_MIGRATION_WARNINGS": "0",
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_DISABLE_SIGINT_HANDLER": "1",
    "TUNE_GLOBAL_CHECKPOINT_S": "100000000",  # Ray's own state of the experiment is never read back
    "TUNE_PRINT_ALL_TRIAL_ERRORS": "0",
    "TUNE_WARN_INSUFFICENT_RESOURCE_THRESHOLD_S": "100000000",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_LOGGING_LEVEL": "WARNING",
}
"""No usage statistics, no files nobody reads, no tables over ours."""

WORKERS = {
    "PYTHONPATH": str(ROOT),
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "TF_CONFIG": "{}",  # one inherited would make TensorFlow wait for machines that are not there
}
"""The environment of worker processes; they import this repository from where it stands."""


MUTE: dict[str, Any] = {
    "log_to_driver": False,
    "configure_logging": False,
    "logging_level": logging.ERROR,
}

OURS = {
    "RAY_AUTH_TOKEN": secrets.token_hex(20),  # one for this process: Ray reads it once
    "RAY_worker_niceness": "5",  # by Ray's own 15 they nearly stand still beside other work
}
"""What a cluster started here runs under, unless the user says otherwise."""


@dataclass(frozen=True)
class Cluster:
    """What there is to train on."""

    cpus: float
    gpus: float

    def capacity(self, each: Resources, *, most: int | None) -> int:
        """Whole trials that fit at once, `most` at most; a share of a GPU is a share of one GPU."""
        fits = int((self.cpus + 1e-9) // each.all_cpus)
        if each.gpus >= 1:
            fits = min(fits, int(self.gpus // each.all_gpus))
        elif each.gpus:
            fits = min(fits, int(self.gpus) * int((1 + 1e-9) // each.gpus))
        return min(fits, most or fits, each.most_trials or fits)


@contextlib.contextmanager
def cluster(interrupt: Interrupt) -> Iterator[Cluster]:
    """The cluster at RAY_ADDRESS, which must be this machine, or one started here and ended with the block.

    Raises:
        UserError: nothing answers at RAY_ADDRESS, or the cluster there has other machines in it.
        Interrupted: a signal came before it started.
    """
    address = os.environ.get("RAY_ADDRESS", "")
    logging.getLogger("ray").setLevel(logging.ERROR)
    # It saves a state that is never read back, in a thread that may come upon a file just renamed.
    logging.getLogger("ray.tune.execution.experiment_state").setLevel(logging.CRITICAL)
    # It lists what failed and was tried again as if it were lost.
    logging.getLogger("ray.tune.tune").setLevel(logging.CRITICAL)
    with _started(interrupt) if address in ("", "local") else _joined(address, interrupt):
        alive = [node for node in ray.nodes() if node["Alive"]]
        if len(alive) > 1:
            raise UserError(
                f"RAY_ADDRESS: must be a cluster of one machine, got {len(alive)} machines. Unset it."
            )
        there = ray.cluster_resources()
        yield Cluster(cpus=there.get("CPU", 0), gpus=there.get("GPU", 0))


@contextlib.contextmanager
def _started(interrupt: Interrupt) -> Iterator[None]:
    given = {name: os.environ[name] for name in OURS if name in os.environ}
    with _environment(QUIET | WORKERS | OURS | given), _scratch() as scratch:
        try:
            with interrupt.at_once(lambda: _remove(scratch)):
                ray.init(address="local", include_dashboard=False, _temp_dir=str(scratch), **MUTE)
                _hush()
            yield
        finally:
            ray.shutdown()


@contextlib.contextmanager
def _joined(address: str, interrupt: Interrupt) -> Iterator[None]:
    _look_for(address)
    with _environment(QUIET):
        # `ray start` asks for the token in the home folder if there is one; so do we.
        maybe_enable_token_auth_if_token_available(warn_if_disabled=False)
        try:
            with interrupt.at_once(lambda: None):
                ray.init(address=address, runtime_env={"env_vars": WORKERS}, **MUTE)
                _hush()
            yield
        except ConnectionError as error:
            raise _nobody(address, " ".join(str(error).split())) from error
        finally:
            ray.shutdown()


def check_folder(here: Path) -> None:
    """Ray puts the working folder before all else on its workers' path.

    Raises:
        UserError: modules there would be taken for ours.
    """
    for package in ("sweeps", "wgangp"):
        other = here / package / "__init__.py"
        if here != ROOT and (other.exists() or (here / f"{package}.py").exists()):
            raise UserError(
                f"{here}: holds a Python package {package}, which would be run in place of {ROOT / package};"
                " start from another folder."
            )


def _hush() -> None:
    """Ray would print a paragraph over the table for each worker that dies; the study says it in a line."""
    module: Any = ray._private.worker
    module._worker_logs_enabled = False


def ignored_settings() -> list[str]:
    """What the environment asks for and does not get, for a person."""
    if os.environ.get("TF_CONFIG", "").strip() in ("", "{}"):
        return []
    return [
        "TF_CONFIG is ignored: trials train on this machine alone, with as many workers as the space says."
    ]


def _look_for(address: str) -> None:
    """Ray would wait half a minute for a cluster that is gone."""
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or "/" in host:
        raise UserError(
            f"RAY_ADDRESS: must be host:port of a cluster on this machine, got '{address}'."
            " Unset it to have one started."
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=3).close()
    except (OSError, OverflowError) as error:
        raise _nobody(address, str(error)) from error


def _nobody(address: str, why: str) -> UserError:
    return UserError(
        f"RAY_ADDRESS: must be a cluster that runs, got '{address}': {why}. Unset it to have one started."
    )


@contextlib.contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """What Ray's processes inherit; whoever called us gets the old environment back."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _scratch() -> Iterator[Path]:
    """A folder for Ray's session, gone afterwards; its sockets allow no long path, its commands no space.

    A lock says that its owner lives: what drivers that were killed left behind is removed by the next.
    """
    base = Path(tempfile.gettempdir())
    base = base if len(str(base)) < 30 and " " not in str(base) else Path("/tmp")
    for left in base.glob("gp-sweep-*"):
        if not _is_held(left / "lock"):
            shutil.rmtree(left, ignore_errors=True)
    unlocked = Path(tempfile.mkdtemp(prefix=".gp-sweep-", dir=base))
    path = base / unlocked.name[1:]
    with (unlocked / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        unlocked.rename(path)
        try:
            yield path
        finally:
            _remove(path)


def _is_held(lock: Path) -> bool:
    """Whether the owner lives. Without a lock it is what Ray's agents wrote on after a driver was killed."""
    try:
        with lock.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return False
    except BlockingIOError:
        return True
    except OSError:
        return False


def _remove(scratch: Path) -> None:
    """The folder of Ray's session, and before it what was started with it and still runs."""
    for process in psutil.Process().children():
        with contextlib.suppress(psutil.Error):
            if any(str(scratch) in word for word in process.cmdline()):
                family = [process, *process.children(recursive=True)]
                for member in family:
                    with contextlib.suppress(psutil.NoSuchProcess):
                        member.kill()
                psutil.wait_procs(family, timeout=3)
    shutil.rmtree(scratch, ignore_errors=True)
