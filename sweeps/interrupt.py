"""Ctrl-C and SIGTERM: the first asks the sweep to stop in order, the second ends the process at once."""

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType, TracebackType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)
NO_SIGNAL = b"\0"


class Interrupted(BaseException):
    """Why the sweep is to stop, in a word. Not an Exception, so that nothing on its way holds it up."""


class Interrupt:
    """While entered, signals set a flag; `check` raises where the sweep can stop."""

    def __init__(self) -> None:
        self._asked = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "Interrupt":
        for number in SIGNALS:
            self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, kind: type | None, value: BaseException | None, trace: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def check(self) -> None:
        """Raises: Interrupted, if a signal came."""
        if self._asked:
            raise Interrupted("interrupted")

    @contextlib.contextmanager
    def at_once(self, leave: Callable[[], None]) -> Iterator[None]:
        """A block that can be left nowhere: a signal calls `leave` and ends the process there and then.

        An exception raised by a handler in the middle of Ray's start can leave the lock of an import behind,
        and the process hangs; and Ray takes SIGTERM for itself as it starts. So a thread waits for the
        signals that Python is told of, whoever handles them.
        """
        read, write = os.pipe()
        os.set_blocking(write, False)
        before = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        ending = threading.Thread(target=_end_process_at_signal, args=(read, leave), daemon=True)
        ending.start()
        try:
            self.check()
            yield
        finally:
            for number in SIGNALS:
                signal.signal(number, self._handle)
            signal.set_wakeup_fd(before)
            os.write(write, NO_SIGNAL)
            ending.join()
            os.close(read)
            os.close(write)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._asked:
            os._exit(130)
        self._asked = True


def _end_process_at_signal(pipe: int, leave: Callable[[], None]) -> None:
    while (byte := os.read(pipe, 1)) != NO_SIGNAL:
        if byte[0] in SIGNALS:
            leave()
            os.write(2, b"Interrupted.\n")
            os._exit(130)
