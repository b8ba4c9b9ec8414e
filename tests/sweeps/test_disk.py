"""A full disk is known by any of the faces it shows."""

import errno

import pytest

from sweeps import disk
from sweeps.interrupt import Interrupted


class Wrapper(Exception):
    """As Ray hands on what a worker raised: in `cause`, which Python does not know."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__("a task failed")
        self.cause = cause


def chained(error: BaseException) -> BaseException:
    try:
        try:
            raise error
        except BaseException:
            raise ValueError("while handling it")  # noqa: B904
    except ValueError as outer:
        return outer


NO_SPACE = OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    ("error", "full"),
    [
        (NO_SPACE, True),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), True),
        (disk.DiskFull("in a worker"), True),
        (Wrapper(NO_SPACE), True),
        (chained(NO_SPACE), True),
        (chained(Wrapper(NO_SPACE)), True),
        (RuntimeError("Traceback ...\nOSError: [Errno 28] No space left on device"), True),
        (RuntimeError("(sqlite3.OperationalError) database or disk is full"), True),
        (OSError(errno.EACCES, "Permission denied"), False),
        (chained(RuntimeError("something else")), False),
        (None, False),
    ],
)
def test_a_full_disk_is_told_from_other_errors(error: BaseException | None, full: bool) -> None:
    assert disk.is_full(error) is full


def test_a_full_disk_interrupts_and_nothing_else_does() -> None:
    with pytest.raises(Interrupted, match="the disk is full"), disk.interrupting():
        raise Wrapper(NO_SPACE)
    with pytest.raises(ValueError, match="other"), disk.interrupting():
        raise ValueError("other")


def test_errors_that_name_each_other_in_a_circle_are_looked_at_once() -> None:
    first, second = ValueError("1"), ValueError("2")
    first.__context__, second.__context__ = second, first
    assert not disk.is_full(first)
