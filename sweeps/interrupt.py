"""Ctrl-C and SIGTERM: the first asks the sweep to stop in order, the second ends the process at once."""

import os
import signal
from types import FrameType, TracebackType
from typing import Any


class Interrupted(BaseException):
    """The sweep was asked to stop. Not an Exception, so that nothing on its way holds it up."""


class Interrupt:
    """While entered, signals set a flag; `check` raises where the sweep can stop."""

    def __init__(self) -> None:
        self._asked = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "Interrupt":
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, kind: type | None, value: BaseException | None, trace: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def check(self) -> None:
        """Raises: Interrupted, if a signal came."""
        if self._asked:
            raise Interrupted

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._asked:
            os._exit(130)
        self._asked = True
