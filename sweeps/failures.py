"""Errors on their way out of a worker's process, for all that train in one."""

import contextlib
from collections.abc import Iterator

from sweeps import disk
from sweeps.records import TrialFailed, WorkerFull


@contextlib.contextmanager
def in_one_line(*but: type[Exception]) -> Iterator[None]:
    """Errors leave a process as plain words: whom they reach has no TensorFlow to load their types with.

    Raises:
        DiskFull: there was no space left.
        TrialFailed: any other error, but for WorkerFull and those of the types in `but`, which stay.
    """
    plain: tuple[type[Exception], ...] = (WorkerFull, TrialFailed, disk.DiskFull, *but)
    try:
        yield
    except plain:
        raise
    except Exception as error:
        kind = disk.DiskFull if disk.is_full(error) else TrialFailed
        raise kind(words(error)) from error


_TRACE = ("Graph execution error:", "Detected at node", "File ", "Stack trace for op", "[[{{node", "<frozen")
"""What lines begin with in which TensorFlow says where in its graph an error arose."""


def words(error: Exception) -> str:
    """An error in one line: its type, and what it says but for traces of TensorFlow's graphs."""
    lines = [line.strip() for line in str(error).splitlines()]
    said = [line for line in lines if not line.startswith(_TRACE)] or lines
    return " ".join(f"{type(error).__name__}: {' '.join(said)}".split())
