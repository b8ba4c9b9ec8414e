"""Data sets that Keras knows, downloaded by it once, with its progress as words. `datasets` calls it."""

import contextlib
import io
import re
import socket
from collections.abc import Callable

import numpy as np

from wgangp.errors import UserError

NAMES = ("mnist", "fashion_mnist", "cifar10", "cifar100")

_TIMEOUT_SECONDS = 30


def load(name: str, *, say: Callable[[str], None]) -> tuple[np.ndarray, np.ndarray]:
    """Training images uint8 [N, H, W] or [N, H, W, 3], and their labels; Keras keeps what it downloads.

    Raises:
        UserError: it is not there and cannot be downloaded.
    """
    import keras

    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(_TIMEOUT_SECONDS)  # Keras sets none: without an answer it would wait for ever
    try:
        with contextlib.redirect_stdout(_Progress(name, say)):
            (images, labels), _ = getattr(keras.datasets, name).load_data()
    except Exception as error:  # Keras raises Exception itself when there is no network
        reason = " ".join(str(error).split())
        raise UserError(
            f"dataset: {name} cannot be downloaded ({reason}). Where there is a network, run"
            f' python -c "import keras; keras.datasets.{name}.load_data()" and copy ~/.keras/datasets here.'
        ) from error
    finally:
        socket.setdefaulttimeout(before)
    return images, labels


class _Progress(io.TextIOBase):
    """Takes Keras's progress bar, `8192/11490434 ...`, and says it in megabytes."""

    def __init__(self, name: str, say: Callable[[str], None]) -> None:
        self._name, self._say, self._said = name, say, ""

    def write(self, text: str) -> int:
        if found := re.search(r"(\d+)/(\d+)", text):
            come, size = (int(number) / 1e6 for number in found.groups())
            line = f"downloading {self._name}: {come:.0f} of {size:.0f} MB"
            if line != self._said:
                self._said = line
                self._say(line)
        return len(text)
