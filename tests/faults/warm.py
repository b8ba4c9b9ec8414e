"""Drivers that start fast: forked from a process that has imported everything, on one Ray cluster for all.

They are processes of their own all the same, with their own sessions, and can be killed like any other.
"""

import contextlib
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TextIO

import pytest

from tests.real_sweep import HERE

IMPORTS = ["tests.driver", "sweeps.sweep", "mlflow.store.tracking.sqlalchemy_store", "alembic.command"]
IMPORTS += ["optuna.visualization.matplotlib", "scipy.stats"]


CLUSTER = """
import ray, sys
ray.init(address="local", num_cpus=2, include_dashboard=False, _temp_dir=sys.argv[1], log_to_driver=False)
print("address", ray.get_runtime_context().gcs_address, flush=True)
sys.stdin.read()
ray.shutdown()
"""
"""A cluster for as long as someone holds the other end of its standard input."""


@contextlib.contextmanager
def ray_cluster() -> Iterator[dict[str, str]]:
    """A cluster of two CPUs; the environment of a driver that is to use it."""
    scratch = tempfile.mkdtemp(prefix="warm-", dir="/tmp")
    process = subprocess.Popen(
        [sys.executable, "-c", CLUSTER, scratch],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": str(HERE.parent), "RAY_AUTH_MODE": "disabled"},
        text=True,
    )
    assert process.stdout is not None
    try:
        address = next(line.split()[1] for line in process.stdout if line.startswith("address"))
        yield {"RAY_ADDRESS": address, "RAY_AUTH_MODE": "disabled"}
    finally:
        process.communicate(timeout=60)
        shutil.rmtree(scratch, ignore_errors=True)


class Driver:
    """A driver that was forked, with what the tests use of `subprocess.Popen`."""

    def __init__(self, process: BaseProcess, stdout: TextIO) -> None:
        assert process.pid is not None
        self.pid, self.stdout, self._process = process.pid, stdout, process

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float) -> int:
        self._process.join(timeout)
        assert self._process.exitcode is not None, "it hangs"
        return self._process.exitcode

    def communicate(self, timeout: float) -> tuple[str, None]:
        """What it printed; one that hangs is killed."""
        end = threading.Timer(timeout, self._process.kill)
        end.start()
        with self.stdout:
            output = self.stdout.read()
        self.wait(timeout)
        end.cancel()
        return output, None


class Starter:
    """Starts drivers from one process that stays."""

    def __init__(self) -> None:
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(IMPORTS)
        with pytest.MonkeyPatch.context() as patch:
            # Ray reads them as it is imported, and leaves them behind where it was used before.
            patch.setenv("RAY_AUTH_MODE", "disabled")
            patch.delenv("RAY_AUTH_TOKEN", raising=False)
            forkserver.ensure_running()

    def start(self, arguments: list[str], *, folder: Path, environment: dict[str, str | None]) -> Driver:
        mine, its = self._context.Pipe(duplex=False)
        process = self._context.Process(target=_drive, args=(arguments, folder, environment, its))
        process.start()
        its.close()
        with mine:
            return Driver(process, os.fdopen(os.dup(mine.fileno())))


def _drive(
    arguments: list[str], folder: Path, environment: dict[str, str | None], output: Connection
) -> None:
    from tests import driver

    os.setsid()
    os.chdir(folder)
    for name, value in environment.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value
    for stream in (1, 2):
        os.dup2(output.fileno(), stream)
    output.close()
    raise SystemExit(driver.main(*arguments))
