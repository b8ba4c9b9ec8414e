import json
from pathlib import Path

import numpy as np
import pytest

from wgangp import checkpoints
from wgangp.checkpoints import CheckpointError

ARRAYS = {"critic/0": np.arange(4.0)}
STATE = {"tick": 3, "best_fid": 0.1 + 0.2, "note": None}


def test_what_is_read_is_what_was_written(tmp_path: Path) -> None:
    checkpoints.write(tmp_path / "a", {"x": np.ones(2)}, {"tick": 1})
    checkpoints.write(tmp_path / "a", ARRAYS, STATE)

    arrays, state = checkpoints.read(tmp_path / "a")

    np.testing.assert_array_equal(arrays["critic/0"], ARRAYS["critic/0"])
    assert (arrays.keys(), state) == (ARRAYS.keys(), STATE)


def test_the_manifest_names_size_and_sha256_of_every_other_file(tmp_path: Path) -> None:
    checkpoints.write(tmp_path, ARRAYS, STATE)

    manifest = json.loads((tmp_path / "manifest.json").read_text())

    assert {path.name for path in tmp_path.iterdir()} == {"arrays.npz", "state.json", "manifest.json"}
    assert {name: entry["size"] for name, entry in manifest.items()} == {
        name: (tmp_path / name).stat().st_size for name in ("arrays.npz", "state.json")
    }


@pytest.mark.parametrize("name", ["arrays.npz", "state.json", "manifest.json"])
@pytest.mark.parametrize("damage", ["remove", "empty", "cut", "change"])
def test_a_damaged_checkpoint_is_known_for_what_it_is(tmp_path: Path, name: str, damage: str) -> None:
    checkpoints.write(tmp_path, ARRAYS, STATE)
    path, data = tmp_path / name, (tmp_path / name).read_bytes()
    if damage == "remove":
        path.unlink()
    else:
        middle = len(data) // 2
        changed = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
        path.write_bytes({"empty": b"", "cut": data[:-9], "change": changed}[damage])

    with pytest.raises(CheckpointError):
        checkpoints.read(tmp_path)


def test_a_write_that_dies_leaves_no_checkpoint_rather_than_a_mixed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints.write(tmp_path, ARRAYS, STATE)

    def die(path: Path, data: bytes) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("wgangp.files.write", die)
    with pytest.raises(KeyboardInterrupt):
        checkpoints.write(tmp_path, ARRAYS, STATE)
    with pytest.raises(CheckpointError):
        checkpoints.read(tmp_path)
