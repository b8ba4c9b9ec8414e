"""An .npz file of somebody -> arrays, without trusting it: no pickles, and no more memory than it holds.

`datasets` calls it. What this package writes itself is read by `arrays`.
"""

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from wgangp import conversion
from wgangp.errors import UserError
from wgangp.wording import error_words, printable

_DAMAGED = (zipfile.BadZipFile, zlib.error)
_HEADERS: dict[tuple[int, int], Any] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def read(path: Path) -> tuple[np.ndarray, np.ndarray | None]:
    """The arrays `images` and, if it is there, `labels`.

    Raises:
        UserError: the file is none, is damaged, lacks images, or declares what it does not hold.
    """
    try:
        with zipfile.ZipFile(path) as file:
            held = sorted(name.removesuffix(".npy") for name in file.namelist())
            if "images" not in held:
                names = ", ".join(printable(name) for name in held[:5]) or "nothing"
                raise UserError(f"dataset: {path} must hold an array `images`, it holds {names}.")
            images = _array(file, "images", path)
            return images, _array(file, "labels", path) if "labels" in held else None
    except (OSError, EOFError, ValueError, NotImplementedError, RuntimeError, *_DAMAGED) as error:
        raise UserError(
            f"dataset: {path} cannot be read as an .npz file: {error_words(error)}. Write it with"
            " numpy.savez(path, images=..., labels=...)."
        ) from error


def _array(file: zipfile.ZipFile, name: str, path: Path) -> np.ndarray:
    """Read one array, after its head was held against the number of bytes that are there."""
    member = file.getinfo(f"{name}.npy")
    with file.open(member) as stream:
        header = _HEADERS.get(np.lib.format.read_magic(stream))
        if header is None:
            raise ValueError(f"{name} is of an unknown version")
        shape, _, dtype = header(stream)
        if dtype.hasobject:
            raise UserError(
                f"dataset: {path}: {name} holds Python objects, which are not read, as they could run"
                " anything; save an array of numbers."
            )
        count = 1
        for side in shape:  # whole numbers of Python, as numpy's would overflow
            count *= int(side)
        if count * dtype.itemsize != member.file_size - stream.tell():
            raise ValueError(
                f"{name} declares {'x'.join(map(str, shape))} of {dtype}, and holds"
                f" {member.file_size - stream.tell():,} bytes"
            )
        if count:
            conversion.check_memory(shape or (1,), itemsize=dtype.itemsize)
    with file.open(member) as stream:
        return np.lib.format.read_array(stream, allow_pickle=False)
