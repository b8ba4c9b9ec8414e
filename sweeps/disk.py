"""A full disk, recognised in whatever shape a library hands it on."""

import contextlib
import errno
from collections.abc import Iterator

from sweeps.interrupt import Interrupted


class DiskFull(Exception):
    """A worker could not save: no fault of its trial, and no other trial could go on either."""


WORDS = "the disk is full"
_SIGNS = ("no space left on device", "disk quota exceeded", "database or disk is full")


def is_full(error: BaseException | None) -> bool:
    """Whether an error, or one that led to it, is about a full disk or a used-up quota."""
    return any(
        isinstance(each, DiskFull)
        or (isinstance(each, OSError) and each.errno in (errno.ENOSPC, errno.EDQUOT))
        or any(sign in str(each).lower() for sign in _SIGNS)
        for each in _chain(error)
    )


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        yield error
        seen.add(id(error))
        error = getattr(error, "cause", None) or error.__cause__ or error.__context__


@contextlib.contextmanager
def interrupting() -> Iterator[None]:
    """Raises: Interrupted, when the block finds the disk full: the sweep can go on once there is room."""
    try:
        yield
    except Exception as error:
        if is_full(error):
            raise Interrupted(WORDS) from error
        raise
