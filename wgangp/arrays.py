"""Named arrays on disk: written aside and renamed, and read only if what was written is still there.

Used for whatever the package keeps between processes: cached data, frozen features, checkpoints. Files are
npz without pickles; each carries the digest of its own content.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from wgangp import files

_DIGEST = "sha256"


class DamagedFile(Exception):
    """A file that is missing, cut short, changed, or not one of ours."""


def digest(arrays: Mapping[str, np.ndarray]) -> str:
    """Hex sha256 over names, dtypes, shapes and bytes of `arrays`, whatever their order."""
    total = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        total.update(f"{name}:{array.dtype.str}:{arrays[name].shape};".encode())
        total.update(array.reshape(-1).view(np.uint8).data)
    return total.hexdigest()


def save(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write `arrays` and their digest to the npz file `path`."""
    # Any: numpy's stub takes **arrays and allow_pickle from the same mapping
    contents: dict = {**arrays, _DIGEST: np.array(digest(arrays))}
    with files.whole(path) as file:
        np.savez(file, **contents)


def load(path: Path) -> dict[str, np.ndarray]:
    """Read what `save` wrote.

    Raises:
        DamagedFile: `path` cannot be read or its content is not what was saved.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except Exception as error:  # a changed zip file raises almost anything, NotImplementedError too
        raise DamagedFile(f"{path} cannot be read: {error}") from error
    if str(arrays.pop(_DIGEST, "")) != digest(arrays):
        raise DamagedFile(f"{path} is damaged: its sha256 does not hold")
    return arrays
