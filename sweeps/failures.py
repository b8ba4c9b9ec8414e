"""Errors on their way out of a worker's process, for all that train in one."""

import contextlib
from collections.abc import Iterator

from sweeps import disk
from sweeps.records import TrialFailed, WorkerFull
from wgangp.wording import error_words


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
        raise kind(error_words(error)) from error
