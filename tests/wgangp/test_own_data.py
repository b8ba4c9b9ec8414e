"""Arrays of somebody's own as `dataset`: an .npz file, a function, and what Keras downloads."""

import io
import pickle
import sys
import urllib.request
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wgangp import conversion, datasets, downloads, user_code
from wgangp.config import TrainConfig
from wgangp.datasets import Dataset
from wgangp.errors import UserError

IMAGES = np.random.default_rng(0).integers(0, 256, (30, 8, 8, 3), np.uint8)
VECTORS = np.random.default_rng(0).uniform(-3, 5, (30, 2))


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., Dataset]:
    """Saves arrays to my.npz and reads them as a data set."""

    def load(settings: dict[str, Any] | None = None, /, **arrays: Any) -> Dataset:
        path = tmp_path / "my.npz"
        if arrays:
            np.savez(path, **arrays)
        config = TrainConfig(dataset=str(path), **(settings or {}))
        return datasets.load(config, cache=tmp_path / "cache", say=lambda line: None)

    return load


def refused(function: Callable[..., Any], *arguments: Any, **named: Any) -> str:
    with pytest.raises(UserError) as caught:
        function(*arguments, **named)
    (problem,) = caught.value.problems
    assert "\n" not in problem
    return problem


# Arrays -------------------------------------------------------------------------------------------------


def test_bytes_are_taken_as_they_are(load: Callable[..., Dataset]) -> None:
    np.testing.assert_array_equal(load(images=IMAGES).images, IMAGES)
    grey = load(images=IMAGES[..., 0])
    np.testing.assert_array_equal(grey.images, IMAGES[..., :1])
    assert grey.labels is None
    assert load(images=np.asfortranarray(IMAGES)).sha256 == load(images=IMAGES).sha256


@pytest.mark.parametrize(
    ("labels", "places"),
    [
        (np.arange(30) % 3, [0, 1, 2]),
        (np.arange(30)[:, None] % 3 * 10, [0, 1, 2]),
        (np.array(["b", "a", "c"] * 10), [1, 0, 2]),
        (np.array([True, False, True] * 10), [1, 0, 1]),
    ],
)
def test_labels_of_any_kind_become_places(
    load: Callable[..., Dataset], labels: np.ndarray, places: list[int]
) -> None:
    assert load(images=IMAGES, labels=labels).labels.tolist() == places * 10


def test_arrays_follow_the_same_rule_as_pictures(load: Callable[..., Dataset]) -> None:
    found = load({"image_size": 4, "channels": 1}, images=IMAGES)

    assert found.images.shape == (30, 4, 4, 1)
    whole = load({"channels": 1}, images=IMAGES).images.astype(float)
    assert abs(found.images.mean() - whole.mean()) < 2


def test_real_numbers_in_their_stated_range_become_bytes(load: Callable[..., Dataset]) -> None:
    for low, high in ((0, 1), (-1, 1), (-3.5, 1000)):
        scaled = low + IMAGES / 255 * (high - low)
        np.testing.assert_array_equal(load({"data_range": [low, high]}, images=scaled).images, IMAGES)
    np.testing.assert_array_equal(
        load({"data_range": [0, 65535]}, images=IMAGES.astype(np.uint16) * 257).images, IMAGES
    )


def test_vectors_become_real_numbers_between_minus_one_and_one(load: Callable[..., Dataset]) -> None:
    found = load({"data_range": [-3, 5]}, images=VECTORS)

    assert (found.images.dtype, found.images.shape) == (np.float32, (30, 2))
    np.testing.assert_allclose(found.images, (VECTORS + 3) / 4 - 1, atol=1e-6)


@pytest.mark.parametrize(
    ("settings", "arrays", "said"),
    [
        (
            {},
            {"images": IMAGES / 255},
            "data_range: must be given, as the data are float64 [30x8x8x3] of 0..1,",
        ),
        ({}, {"images": VECTORS}, "data_range: must be given, as the data are float64 [30x2] of -2."),
        ({}, {"images": IMAGES[:, 0, 0]}, "data_range: must be given, as the data are uint8 [30x3] of"),
        ({"data_range": [0, 1]}, {"images": VECTORS}, "data_range: must hold every value, got values of -2."),
        ({"data_range": [0, 1]}, {"images": IMAGES}, "data_range: must be left out, as the images are uint8"),
        (
            {"data_range": [0, 1]},
            {"images": np.full((30, 8, 8), np.nan)},
            "data_range: must hold every value, got values of nan..nan outside 0..1",
        ),
        (
            {"data_range": [0, 1]},
            {"images": np.full((30, 2), np.inf)},
            "data_range: must hold every value, got",
        ),
        (
            {},
            {"images": np.zeros(30, np.uint8)},
            "dataset: images must be numbers [N, H, W], [N, H, W, C] or, of",
        ),
        ({}, {"images": np.zeros((30, 1, 1, 1, 1))}, "dataset: images must be numbers [N, H, W]"),
        ({}, {"images": np.zeros((0, 8, 8), np.uint8)}, "got uint8 of 0x8x8."),
        ({}, {"images": np.array(["a", "b"])}, "dataset: images must be numbers"),
        ({}, {"images": IMAGES + 1j}, "dataset: images must be numbers"),
        ({}, {"images": IMAGES[:19]}, "dataset: must hold at least 20 images, got 19."),
        (
            {},
            {"images": IMAGES, "labels": np.zeros(29, int)},
            "one for each of the 30 images, got int64 of 29.",
        ),
        ({}, {"images": IMAGES, "labels": np.zeros(30)}, "dataset: labels must be whole numbers or words"),
        ({}, {"pictures": IMAGES}, "must hold an array `images`, it holds pictures."),
        (
            {"channels": 3},
            {"images": np.zeros((30, 8, 8, 2), np.uint8)},
            "channels: can be made 1 or 3 of images",
        ),
        (
            {"data_range": [-3, 5], "image_size": 8},
            {"images": VECTORS},
            "image_size: must be left out with vectors; it is for images.",
        ),
    ],
)
def test_arrays_that_cannot_be_trained_on_are_refused_in_one_line(
    load: Callable[..., Dataset], settings: dict[str, Any], arrays: dict[str, np.ndarray], said: str
) -> None:
    assert said in refused(load, settings, **arrays)


def test_images_of_two_channels_are_left_as_they_are(load: Callable[..., Dataset]) -> None:
    assert load(images=np.zeros((30, 8, 8, 2), np.uint8)).images.shape == (30, 8, 8, 2)


def test_another_file_of_the_same_name_is_read_anew(load: Callable[..., Dataset]) -> None:
    first = load(images=IMAGES)
    assert load().sha256 == first.sha256
    assert load(images=IMAGES[:25]).sha256 != first.sha256


# Hostile files ------------------------------------------------------------------------------------------


def header(shape: tuple[int, ...], descr: str = "|u1") -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"shape": shape, "fortran_order": False, "descr": descr})
    return buffer.getvalue()


class Evil:
    def __reduce__(self) -> tuple:
        return (print, ("it ran",))


def archive(path: Path, **members: bytes) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in members.items():
            file.writestr(f"{name}.npy", data)


HOSTILE: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no archive": (lambda path: path.write_bytes(b"hello"), "BadZipFile: File is not a zip file."),
    "empty": (lambda path: path.write_bytes(b""), "BadZipFile: File is not a zip file."),
    "an empty archive": (archive, "must hold an array `images`, it holds nothing."),
    "a pickle": (
        lambda path: path.write_bytes(pickle.dumps(Evil())),
        "cannot be read as an .npz file: BadZip",
    ),
    "objects": (
        lambda path: np.savez(path, images=np.array([Evil()] * 30, dtype=object)),
        "images holds Python objects, which are not read, as they could run anything; save an array of",
    ),
    "labels that are objects": (
        lambda path: np.savez(path, images=IMAGES, labels=np.array([Evil()] * 30, dtype=object)),
        "labels holds Python objects",
    ),
    "a shape of terabytes": (
        lambda path: archive(path, images=header((2**40,)) + b"0" * 100),
        "images declares 1099511627776 of uint8, and holds 100 bytes.",
    ),
    "a shape beyond whole numbers": (
        lambda path: archive(path, images=header((2**62, 2**62)) + b"0" * 100),
        "and holds 100 bytes.",
    ),
    "a shape below nothing": (
        lambda path: archive(path, images=header((-1, -100)) + b"0" * 100),
        "cannot be read as an .npz file: ValueError",
    ),
    "no header": (lambda path: archive(path, images=b"\x93NUMPY\x01\x00"), "cannot be read as an .npz file"),
    "another header": (lambda path: archive(path, images=b"\x93NUMPY\x09\x00abc"), "of an unknown version"),
    "too short": (
        lambda path: archive(path, images=header((30, 8, 8)) + b"0" * 10),
        "images declares 30x8x8 of uint8, and holds 10 bytes.",
    ),
}


@pytest.mark.parametrize(("write", "said"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_file_is_refused_and_nothing_of_it_runs(
    load: Callable[..., Dataset],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    write: Callable[[Path], Any],
    said: str,
) -> None:
    write(tmp_path / "my.npz")

    assert said in refused(load)
    assert capfd.readouterr().out == ""


def test_a_file_cut_anywhere_is_refused(load: Callable[..., Dataset], tmp_path: Path) -> None:
    load(images=IMAGES)
    data = (tmp_path / "my.npz").read_bytes()
    for length in range(0, len(data), len(data) // 20):
        (tmp_path / "my.npz").write_bytes(data[:length])
        assert "cannot be read as an .npz file" in refused(load)


def test_a_small_file_of_a_huge_array_is_refused_before_it_is_unpacked(
    load: Callable[..., Dataset], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversion.psutil, "virtual_memory", lambda: type("M", (), {"available": 10e6}))
    archive(tmp_path / "my.npz", images=header((1000, 100, 100)) + bytes(10_000_000))
    assert (tmp_path / "my.npz").stat().st_size < 100_000

    assert refused(load).startswith("dataset: needs 0.0 GB of memory (1,000 of 100x100, 3 times), 0.0 GB are")


# A function ---------------------------------------------------------------------------------------------


def from_code(tmp_path: Path, text: str, **settings: Any) -> Dataset:
    path = tmp_path / "my_data.py"
    path.write_text(f"import numpy as np\n\n{text}")
    value = f"{path}:load"
    return datasets.load(
        TrainConfig(dataset=value, **settings),
        code=user_code.read(value),
        cache=tmp_path / "cache",
        say=lambda line: None,
    )


def test_a_function_gives_images_or_images_and_labels(tmp_path: Path) -> None:
    plain = from_code(tmp_path, "def load():\n    return np.zeros((20, 4, 4), np.uint8)\n")
    assert (plain.images.shape, plain.labels) == ((20, 4, 4, 1), None)
    both = from_code(
        tmp_path, "def load():\n    return [[[1, 2]]] * 20, list('ab' * 10)\n", data_range=[0, 2]
    )
    assert (both.images.shape, both.labels.tolist()) == ((20, 1, 2, 1), [0, 1] * 10)
    assert both.images[0].ravel().tolist() == [128, 255]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "def load():\n    return 1 / 0\n",
            "my_data.py:4: load failed: ZeroDivisionError: division by zero.",
        ),
        (
            "def load(path):\n    return path\n",
            "my_data.py: load failed: TypeError: load() missing 1 required",
        ),
        (
            "import nothing_like_this\ndef load(): ...\n",
            "my_data.py:3: load failed: ModuleNotFoundError: No mod",
        ),
        ("raise SystemExit(3)\ndef load(): ...\n", "my_data.py:3: load failed: SystemExit: 3."),
        ("load = 3\n", "my_data.py: load must be a function, got int."),
        (
            "def load(): ...\n",
            "dataset: images must be numbers [N, H, W], [N, H, W, C] or, of vectors, [N, D], got",
        ),
        ("def load():\n    return [[1], [1, 2]]\n", "dataset: my_data.py:load must return arrays: "),
        ("def load():\n    return {'images': 1}\n", "dataset: images must be numbers"),
        ("def load():\n    raise ValueError('a\\nb')\n", "load failed: ValueError: a b."),
    ],
)
def test_a_function_that_gives_no_data_is_told_by_its_line(tmp_path: Path, text: str, said: str) -> None:
    assert said in refused(from_code, tmp_path, text)


# Downloads ----------------------------------------------------------------------------------------------


def no_network(patch: pytest.MonkeyPatch, home: Path) -> None:
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        patch.setenv(name, "http://127.0.0.1:9")
    patch.setenv("no_proxy", "")
    # urllib keeps what it has read of these for the whole process: here afterwards it would still be this.
    patch.setattr(urllib.request, "_opener", None)
    patch.setenv("KERAS_HOME", str(home))


@pytest.mark.parametrize("name", downloads.NAMES)
def test_without_a_network_a_line_says_what_to_do(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_network(monkeypatch, tmp_path)
    said = refused(datasets.load, TrainConfig(dataset=name), cache=tmp_path, say=lambda line: None)

    assert said.startswith(f"dataset: {name} cannot be downloaded (")
    assert f'python -c "import keras; keras.datasets.{name}.load_data()" and copy ~/.keras' in said


def test_what_keras_downloads_is_told_in_megabytes_and_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import keras

    calls = []

    def load_data() -> tuple:
        calls.append(1)
        for come in range(0, 11_490_435, 100_000):  # as Keras's progress bar prints
            sys.stdout.write(f"\r{come}/11490434 \x1b[32m━━━━━\x1b[0m 0s 0us/step")
        return (IMAGES[..., 0], np.arange(30) % 10), (IMAGES[:3, ..., 0], np.arange(3))

    monkeypatch.setattr(keras.datasets.mnist, "load_data", load_data)
    said: list[str] = []
    found = datasets.load(TrainConfig(dataset="mnist"), cache=tmp_path, say=said.append)
    again = datasets.load(TrainConfig(dataset="mnist"), cache=tmp_path, say=said.append)

    assert found.images.shape == (30, 8, 8, 1)
    assert said == ["reading mnist", *(f"downloading mnist: {come} of 11 MB" for come in range(12))]
    assert (calls, again.sha256) == ([1], found.sha256)
