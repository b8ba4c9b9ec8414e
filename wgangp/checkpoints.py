"""A checkpoint: a folder with arrays.npz, state.json, and manifest.json, which is written last.

The manifest holds name, size and sha256 of the other two, so that half a copy is known for what it is.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from wgangp import arrays, files

BEST_GENERATOR = "best_generator/"
"""What the names of the best generator's weights begin with; absent before the first finite score."""

_ARRAYS, _STATE, _MANIFEST = "arrays.npz", "state.json", "manifest.json"


class CheckpointError(Exception):
    """A checkpoint that is incomplete, damaged, or of a run that does not fit."""


def write(folder: Path, contents: Mapping[str, np.ndarray], state: Mapping[str, Any]) -> None:
    """Write arrays and state (JSON values) to `folder`, made if missing."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _MANIFEST).unlink(missing_ok=True)
    arrays.save(folder / _ARRAYS, contents)
    files.write(folder / _STATE, json.dumps(state, indent=2).encode())
    manifest = {name: _fingerprint(folder / name) for name in (_ARRAYS, _STATE)}
    files.write(folder / _MANIFEST, json.dumps(manifest, indent=2).encode())


def read(folder: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and state of a checkpoint.

    Raises:
        CheckpointError: it is incomplete or damaged.
    """
    try:
        manifest = json.loads((folder / _MANIFEST).read_text())
        for name in (_ARRAYS, _STATE):
            if manifest[name] != _fingerprint(folder / name):
                raise CheckpointError(f"{folder / name} is damaged")
        return arrays.load(folder / _ARRAYS), json.loads((folder / _STATE).read_text())
    except (OSError, ValueError, KeyError, TypeError, arrays.DamagedFile) as error:
        raise CheckpointError(f"{folder} cannot be read: {error!r}") from error


def _fingerprint(path: Path) -> dict[str, int | str]:
    data = path.read_bytes()
    return {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
