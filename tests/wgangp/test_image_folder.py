"""A folder of images as `dataset`: every mode, size and fault, through `datasets.load`."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from wgangp import conversion, datasets
from wgangp.config import TrainConfig
from wgangp.datasets import Dataset
from wgangp.errors import UserError

COUNT = 24
RAMP = np.arange(64, dtype=np.uint8).reshape(8, 8) * 4


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A flat folder of 8x8 pictures, each of one shade."""
    path = tmp_path / "pictures"
    path.mkdir()
    for number in range(COUNT):
        Image.new("RGB", (8, 8), (number, 2 * number, 3 * number)).save(path / f"{number:02d}.png")
    return path


@pytest.fixture
def load(folder: Path, tmp_path: Path) -> Callable[..., Dataset]:
    def load(**settings: Any) -> Dataset:
        return datasets.load(
            TrainConfig(dataset=str(folder), **settings), cache=tmp_path / "cache", say=lambda line: None
        )

    return load


def refused(load: Callable[..., Dataset], **settings: Any) -> str:
    with pytest.raises(UserError) as caught:
        load(**settings)
    (problem,) = caught.value.problems
    assert "\n" not in problem
    return problem


def one(folder: Path, image: Image.Image, suffix: str = ".png", **options: Any) -> np.ndarray:
    """What a picture of this mode is read as, in colour, unsized."""
    path = folder.parent / f"one{suffix}"
    image.save(path, **options)
    return conversion.read(path, size=None, channels=3)


def test_a_flat_folder_is_read_in_order_of_names_without_labels(load: Callable[..., Dataset]) -> None:
    found = load()

    assert (found.images.shape, found.images.dtype, found.labels) == ((COUNT, 8, 8, 3), np.uint8, None)
    assert found.images[:, 0, 0].tolist() == [[n, 2 * n, 3 * n] for n in range(COUNT)]
    assert found.notes == {}


def test_class_folders_are_labels_by_name_and_one_alone_is_none(
    folder: Path, load: Callable[..., Dataset]
) -> None:
    for kind in ("zebra", "ant"):
        (folder / kind).mkdir()
    for path in folder.glob("*.png"):
        path.rename(folder / ("ant" if int(path.stem) < 10 else "zebra") / path.name)

    assert load().labels.tolist() == [0] * 10 + [1] * (COUNT - 10)
    for path in (folder / "zebra").iterdir():
        path.rename(folder / "ant" / path.name)
    (folder / "zebra").rmdir()
    assert load().labels is None


# Modes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("image", "pixel"),
    [
        (Image.new("L", (8, 8), 77), (77, 77, 77)),
        (Image.new("1", (8, 8), 1), (255, 255, 255)),
        (Image.new("RGB", (8, 8), (1, 2, 3)), (1, 2, 3)),
        (Image.new("RGBA", (8, 8), (9, 9, 9, 0)), (255, 255, 255)),  # nothing there: white
        (Image.new("RGBA", (8, 8), (0, 0, 0, 51)), (204, 204, 204)),  # a fifth of black over white
        (Image.new("LA", (8, 8), (0, 51)), (204, 204, 204)),
        (Image.fromarray(np.full((8, 8), 257 * 100, np.uint16)), (100, 100, 100)),
        (Image.fromarray(np.full((8, 8), 65535, np.uint16)), (255, 255, 255)),
        (Image.fromarray(np.full((8, 8), 257 * 7, np.int32)), (7, 7, 7)),
    ],
    ids=["grey", "bits", "colour", "clear", "glass", "grey glass", "16 bit", "16 bit white", "32 bit"],
)
def test_every_mode_becomes_bytes_of_colour(
    folder: Path, image: Image.Image, pixel: tuple[int, int, int]
) -> None:
    suffix = ".tiff" if image.mode in ("I", "LA") else ".png"

    assert np.unique(one(folder, image, suffix).reshape(-1, 3), axis=0).tolist() == [list(pixel)]


def test_palettes_with_a_clear_colour_and_inks_are_understood(folder: Path) -> None:
    palette = Image.new("P", (8, 8), 1)
    palette.putpalette([10, 20, 30, 200, 100, 50])
    assert one(folder, palette)[0, 0].tolist() == [200, 100, 50]
    assert one(folder, palette, transparency=1)[0, 0].tolist() == [255, 255, 255]
    cyan = one(folder, Image.new("CMYK", (8, 8), (255, 0, 0, 0)), ".tiff")
    assert cyan[0, 0].tolist() == [0, 255, 255]


def test_colour_becomes_grey_by_luma(folder: Path) -> None:
    path = folder / "00.png"
    Image.new("RGB", (8, 8), (100, 150, 200)).save(path)

    assert conversion.read(path, size=None, channels=1)[0, 0, 0] == round(29.9 + 0.587 * 150 + 0.114 * 200)


@pytest.mark.parametrize(
    ("orientation", "turned"),
    [
        (1, RAMP),
        (2, RAMP[:, ::-1]),
        (3, RAMP[::-1, ::-1]),
        (4, RAMP[::-1]),
        (5, RAMP.T),
        (6, np.rot90(RAMP, -1)),
        (7, np.rot90(RAMP, 2).T),
        (8, np.rot90(RAMP)),
    ],
)
def test_a_picture_is_turned_as_the_camera_says(folder: Path, orientation: int, turned: np.ndarray) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    found = one(folder, Image.fromarray(RAMP), exif=exif)

    np.testing.assert_array_equal(found[..., 0], turned)


def test_grey_pictures_alone_have_one_channel_and_one_in_colour_makes_three(
    folder: Path, load: Callable[..., Dataset]
) -> None:
    for path in folder.iterdir():
        Image.open(path).convert("L").save(path)
    assert load().images.shape[-1] == 1
    assert load(channels=3).images.shape[-1] == 3
    Image.new("RGB", (8, 8)).save(folder / "00.png")
    assert load().images.shape[-1] == 3
    assert load(channels=1).images.shape[-1] == 1


# Sizes --------------------------------------------------------------------------------------------------


def test_the_square_in_the_middle_is_cut_out_and_shrunk_without_aliases(
    folder: Path, load: Callable[..., Dataset]
) -> None:
    wide = np.zeros((16, 48), np.uint8)
    wide[:, 16:32] = np.tile([[0, 255], [255, 0]], (8, 8))  # a chessboard between black sides
    Image.fromarray(wide).save(folder / "00.png")
    found = load(image_size=8, channels=1).images[0, ..., 0].astype(float)

    assert found.shape == (8, 8)
    assert abs(found - 127.5).max() < 15  # a shrunk chessboard is grey; every second pixel would be 0 or 255


def test_images_smaller_than_asked_for_are_enlarged_and_counted(load: Callable[..., Dataset]) -> None:
    found = load(image_size=16)

    assert found.images.shape == (COUNT, 16, 16, 3)
    assert found.notes == {"enlarged_images": COUNT}


def test_several_sizes_need_one_to_be_asked_for(folder: Path, load: Callable[..., Dataset]) -> None:
    Image.new("RGB", (30, 20)).save(folder / "00.png")

    assert refused(load) == (
        f"image_size: must be given, as the images in {folder} have 2 sizes, 8x8 to 30x20; for example"
        " image_size: 32."
    )
    assert load(image_size=8).images.shape == (COUNT, 8, 8, 3)


# Faults -------------------------------------------------------------------------------------------------


def cut(folder: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
    Image.fromarray(noise).save(folder / "x.png")
    data = (folder / "x.png").read_bytes()
    (folder / "x.png").write_bytes(data[: len(data) // 2])


def cut_jpeg(folder: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
    Image.fromarray(noise).save(folder / "x.jpg")
    data = (folder / "x.jpg").read_bytes()
    (folder / "x.jpg").write_bytes(data[: len(data) // 2])


def real_numbers(folder: Path) -> None:
    Image.fromarray(np.zeros((8, 8), np.float32)).save(folder / "x.tiff")


FAULTS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "empty": (lambda folder: (folder / "x.png").touch(), "x.png (empty)"),
    "text": (lambda folder: (folder / "notes.txt").write_text("hello"), "notes.txt (no image)"),
    "text called png": (lambda folder: (folder / "x.png").write_text("hello"), "x.png (no image)"),
    "half a png": (cut, "x.png (truncated)"),
    "half a jpeg": (cut_jpeg, "x.jpg (truncated)"),
    "real numbers": (real_numbers, "x.tiff (real numbers of no stated range)"),
    "a dead link": (lambda folder: (folder / "x").symlink_to("nowhere"), "x (a link that leads nowhere)"),
    "a link to itself": (lambda folder: (folder / "x").symlink_to("x"), "x (a link that leads nowhere)"),
    "a loop": (lambda folder: (folder / "x").symlink_to(folder), "x (a link to a folder)"),
    "a pipe": (lambda folder: os.mkfifo(folder / "x"), "x (a pipe or a device)"),
    "an odd name": (lambda folder: (folder / "a\nb.png").touch(), "'a\\nb.png' (empty)"),
    "a name in no encoding": (
        lambda folder: open(os.fsencode(folder) + b"/\xff.png", "w").close(),
        "\\udcff.png (empty)",
    ),
}


@pytest.mark.parametrize(("break_it", "named"), FAULTS.values(), ids=FAULTS)
def test_what_is_no_image_is_named_and_may_be_passed_over(
    folder: Path, load: Callable[..., Dataset], break_it: Callable[[Path], Any], named: str
) -> None:
    break_it(folder)
    sized = {"image_size": 8}

    assert refused(load, **sized) == (
        f"dataset: 1 of {COUNT + 1} files in {folder} cannot be read as images: {named}. Remove or mend them,"
        " or set skip_unreadable: true."
    )
    found = load(skip_unreadable=True, **sized)
    assert len(found.images) == COUNT
    assert found.notes == {"skipped_files": 1, "skipped": named}


def test_a_renamed_image_is_read_by_what_it_holds(folder: Path, load: Callable[..., Dataset]) -> None:
    (folder / "00.png").rename(folder / "00.txt")
    Image.new("RGB", (8, 8)).save(folder / "01.bmp")
    (folder / "01.bmp").rename(folder / "01.png")

    assert len(load().images) == COUNT


def test_hidden_files_are_counted_and_links_to_images_followed(
    folder: Path, load: Callable[..., Dataset], tmp_path: Path
) -> None:
    (folder / ".DS_Store").write_bytes(b"x")
    (folder / ".git").mkdir()
    (folder / "00.png").rename(tmp_path / "away.png")
    (folder / "00.png").symlink_to(tmp_path / "away.png")

    found = load()
    assert (len(found.images), found.notes) == (COUNT, {"hidden_files": 2})


def test_of_many_faults_a_few_are_named_and_all_counted(folder: Path, load: Callable[..., Dataset]) -> None:
    for number in range(9):
        (folder / f"{number:02d}.png").write_bytes(b"")
    said = refused(load)

    assert said.startswith(
        f"dataset: 9 of {COUNT} files in {folder} cannot be read as images: 00.png (empty), 01"
    )
    assert ", 04.png (empty), and 4 more. Remove" in said


def empty(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()


def all_broken(folder: Path) -> None:
    for path in folder.iterdir():
        path.write_bytes(b"no")


def mixed(folder: Path) -> None:
    (folder / "more").mkdir()


def too_few(folder: Path) -> None:
    for number in range(5):
        (folder / f"{number:02d}.png").unlink()


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (empty, "must hold images, and is empty."),
        (all_broken, f"{COUNT} of {COUNT} files in "),
        (mixed, f"must hold images or one folder for each class, got {COUNT} files such as 00.png beside 1"),
        (too_few, "must hold at least 20 images, got 19."),
    ],
)
def test_a_folder_of_no_use_is_refused_in_one_line(
    folder: Path, load: Callable[..., Dataset], change: Callable[[Path], None], said: str, skip: bool
) -> None:
    change(folder)

    assert said in refused(load, skip_unreadable=skip)


def test_folders_within_class_folders_and_classes_without_images_are_named(
    folder: Path, load: Callable[..., Dataset]
) -> None:
    for kind in ("a", "b", "c"):
        (folder / kind).mkdir()
    for path in folder.glob("*.png"):
        path.rename(folder / "a" / path.name)
    (folder / "a" / "deeper").mkdir()
    (folder / "b" / "x").write_text("no image")

    said = refused(load)
    assert "a/deeper (a folder within a class's folder), b/x (no image), c (a folder without files)" in said
    assert load(skip_unreadable=True).labels is None or set(load(skip_unreadable=True).labels) == {0}


def test_a_bomb_and_what_does_not_fit_into_memory_are_refused(
    folder: Path, load: Callable[..., Dataset], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversion, "_MOST_PIXELS", 63)
    assert "00.png (too large: 8x8)" in refused(load)
    monkeypatch.undo()
    monkeypatch.setattr(conversion.psutil, "virtual_memory", lambda: type("M", (), {"available": 1e6}))
    assert "dataset: needs " in refused(load, image_size=1024)


# The copy -----------------------------------------------------------------------------------------------


def test_the_second_start_reads_the_copy_until_anything_changes(
    folder: Path, load: Callable[..., Dataset], monkeypatch: pytest.MonkeyPatch
) -> None:
    read, opened = conversion.read, []
    monkeypatch.setattr(conversion, "read", lambda path, **how: opened.append(path.name) or read(path, **how))
    first = load()
    assert len(opened) == COUNT
    assert (load().sha256, len(opened)) == (first.sha256, COUNT)

    Image.new("RGB", (8, 8), "red").save(folder / "00.png")
    assert load().sha256 != first.sha256
    assert len(opened) == 2 * COUNT
    load(image_size=16)
    assert len(opened) == 3 * COUNT
    (folder / "01.png").rename(folder / "99.png")
    load()
    assert len(opened) == 4 * COUNT
