"""What Ray does when memory runs out, made bearable for Tune.

Ray ends workers before the machine has no memory left, not only the greedy one. Calls to them then raise
`OutOfMemoryError`, which Tune does not know as the death of a worker: it would end the whole sweep.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

from ray._private import serialization
from ray.exceptions import OutOfMemoryError, RayActorError


class EndedForMemory(OutOfMemoryError, RayActorError):
    """A worker that Ray ended, as a death that costs its trial an attempt and the other trials nothing."""

    def __init__(self, message: str) -> None:
        RayActorError.__init__(self, error_msg=message)
        OutOfMemoryError.__init__(self, message)

    def __reduce__(self) -> Any:
        return EndedForMemory, (self.message,)


@contextlib.contextmanager
def costs_only_the_worker() -> Iterator[None]:
    """In the block Tune takes a worker ended for memory for what it is, a dead worker."""
    module: Any = serialization
    stock, module.OutOfMemoryError = module.OutOfMemoryError, EndedForMemory
    try:
        yield
    finally:
        module.OutOfMemoryError = stock
