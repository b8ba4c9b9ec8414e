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
from collections.abc import Iterator
from multiprocessing import forkserver
from pathlib import Path

import pytest

from tests.real_sweep import HERE, PATIENCE

IMPORTS = ["tests.driver", "sweeps.sweep", "mlflow.store.tracking.sqlalchemy_store", "alembic.command"]


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


class Starter:
    """Starts drivers from one process that stays; `run` gives the exit status and what was printed."""

    def __init__(self) -> None:
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(IMPORTS)
        with pytest.MonkeyPatch.context() as patch:
            # Ray reads them as it is imported, and leaves them behind where it was used before.
            patch.setenv("RAY_AUTH_MODE", "disabled")
            patch.delenv("RAY_AUTH_TOKEN", raising=False)
            forkserver.ensure_running()

    def run(
        self, arguments: list[str], *, folder: Path, environment: dict[str, str | None]
    ) -> tuple[int, str]:
        output = folder / "output.txt"
        process = self._context.Process(target=_drive, args=(arguments, folder, environment, output))
        process.start()
        process.join(PATIENCE)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise AssertionError(f"it hangs:\n{output.read_text()}")
        return process.exitcode, output.read_text()


def _drive(arguments: list[str], folder: Path, environment: dict[str, str | None], output: Path) -> None:
    from tests import driver

    os.setsid()
    os.chdir(folder)
    for name, value in environment.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value
    file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(file, stream)
    raise SystemExit(driver.main(*arguments))
