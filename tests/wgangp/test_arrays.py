from pathlib import Path

import numpy as np
import pytest

from wgangp import arrays, files
from wgangp.arrays import DamagedFile

CONTENTS = {"a/0": np.arange(6.0).reshape(2, 3), "b": np.asarray(0.5), "c": np.zeros(3, np.uint8)}


def test_what_is_loaded_is_what_was_saved(tmp_path: Path) -> None:
    arrays.save(tmp_path / "new" / "x.npz", CONTENTS)
    loaded = arrays.load(tmp_path / "new" / "x.npz")

    assert loaded.keys() == CONTENTS.keys()
    for name, array in CONTENTS.items():
        np.testing.assert_array_equal(loaded[name], array, strict=True)
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["x.npz"]


def test_every_change_of_a_file_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    arrays.save(path, CONTENTS)
    whole = path.read_bytes()

    for place in range(0, len(whole), 7):
        changed = bytearray(whole)
        changed[place] ^= 1
        path.write_bytes(changed)
        try:
            loaded = arrays.load(path)
        except DamagedFile:
            continue
        # Bytes that a zip file keeps twice or ignores (times, comments) change no content.
        assert arrays.digest(loaded) == arrays.digest(CONTENTS)


@pytest.mark.parametrize("keep", [0, 10, 200])
def test_a_cut_file_is_damaged(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "x.npz"
    arrays.save(path, CONTENTS)
    path.write_bytes(path.read_bytes()[:keep])

    with pytest.raises(DamagedFile, match=r"x\.npz"):
        arrays.load(path)


def test_a_file_of_someone_else_is_damaged(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", a=np.arange(3))
    np.save(tmp_path / "pickle.npz", np.array([{}], object), allow_pickle=True)

    for name in ("x.npz", "pickle.npz", "missing.npz"):
        with pytest.raises(DamagedFile):
            arrays.load(tmp_path / name)


def test_an_interrupted_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x"
    files.write(path, b"old")

    def die(file: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.fsync", die)
    with pytest.raises(KeyboardInterrupt):
        files.write(path, b"new")

    assert path.read_bytes() == b"old"
