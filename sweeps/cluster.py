"""Ray as a sweep needs it: started quietly, with nothing left behind, and what it has to offer."""

import contextlib
import logging
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import ray

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


@dataclass(frozen=True)
class Cluster:
    """What there is to train on."""

    cpus: float
    gpus: float

    def capacity(self, *, cpus: float, gpus: float, most: int | None) -> int:
        """Trials that fit at once, each with `cpus` and `gpus`; a share of a GPU is a share of one GPU."""
        fits = int((self.cpus + 1e-9) // cpus)
        if gpus >= 1:
            fits = min(fits, int(self.gpus // gpus))
        elif gpus:
            fits = min(fits, int(self.gpus) * int((1 + 1e-9) // gpus))
        return min(fits, most) if most else fits


@contextlib.contextmanager
def cluster() -> Iterator[Cluster]:
    """The cluster at RAY_ADDRESS, which must be this machine, or one started here and ended with the block.

    Raises:
        UserError: RAY_ADDRESS names a cluster with other machines in it.
    """
    address = os.environ.get("RAY_ADDRESS")
    logging.getLogger("ray").setLevel(logging.ERROR)

    common: dict[str, Any] = {
        "log_to_driver": False,
        "configure_logging": False,
        "logging_level": logging.ERROR,
    }
    with contextlib.ExitStack() as after:
        after.enter_context(_environment(QUIET | ({} if address else WORKERS)))
        if address:
            after.callback(ray.shutdown)
            ray.init(address=address, runtime_env={"env_vars": WORKERS}, **common)
        else:
            os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(20))
            os.environ.setdefault("RAY_worker_niceness", "5")
            scratch = after.enter_context(_scratch())
            after.callback(ray.shutdown)
            ray.init(address="local", include_dashboard=False, _temp_dir=str(scratch), **common)
        alive = [node for node in ray.nodes() if node["Alive"]]
        if len(alive) > 1:
            raise UserError(
                f"RAY_ADDRESS: must be a cluster of one machine, got {len(alive)} machines. Unset it."
            )
        there = ray.cluster_resources()
        yield Cluster(cpus=there.get("CPU", 0), gpus=there.get("GPU", 0))


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
    """A folder for Ray's session, gone afterwards; its sockets allow no long path."""
    base = Path(tempfile.gettempdir())
    base = base if len(str(base)) < 30 else Path("/tmp")
    for left in base.glob("gp-sweep-*-*"):  # by a driver that was killed
        if not psutil.pid_exists(int(left.name.split("-")[2])):
            shutil.rmtree(left, ignore_errors=True)
    path = Path(tempfile.mkdtemp(prefix=f"gp-sweep-{os.getpid()}-", dir=base))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
