"""A folder of images, flat or one folder for each class -> uint8 images and labels. `datasets` calls it.

Every file is looked at. What begins with a dot is passed over; links are followed to files and to nothing
else; whatever is no image is named. Files are told by what they hold, never by how they are called.
"""

import hashlib
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import UnidentifiedImageError

from wgangp import conversion
from wgangp.errors import UserError
from wgangp.wording import count, error_words, printable

_NAMED = 5
"""Files that a message names before it only counts."""
_SAID_EVERY = 1000


@dataclass(frozen=True)
class Listing:
    """What is in a folder, unread.

    Attributes:
        folder: where.
        files: paths relative to it, in order of their names.
        classes: names of the class folders; none if the folder is flat, or has one only.
        refused: what is no file to read, by its name, and why.
        hidden: how many names begin with a dot.
        fingerprint: hex sha256 over names, sizes and times of change.
    """

    folder: Path
    files: list[str]
    classes: list[str]
    refused: dict[str, str] = field(default_factory=dict)
    hidden: int = 0
    fingerprint: str = ""


@dataclass(frozen=True)
class FolderImages:
    """What `read` made of a listing.

    Attributes:
        images: uint8 [N, H, W, C].
        labels: int64 [N], places in `Listing.classes`; None without classes.
        skipped: files that were passed over, by their names, and why.
        enlarged: how many images were smaller than `size`.
    """

    images: np.ndarray
    labels: np.ndarray | None
    skipped: dict[str, str]
    enlarged: int


def list_folder(folder: Path) -> Listing:
    """Look at a folder without opening a file.

    Raises:
        UserError: it cannot be read, is empty, or mixes images with folders.
    """
    total = hashlib.sha256()
    refused: dict[str, str] = {}
    files, folders, hidden = _entries(folder, "", refused, total)
    if files and folders:
        raise UserError(
            f"dataset: {folder} must hold images or one folder for each class, got"
            f" {count(len(files), 'file')} such as {printable(files[0])} beside"
            f" {count(len(folders), 'folder')} such as {printable(folders[0])}."
        )
    for each in folders:
        within, deeper, more = _entries(folder, f"{each}/", refused, total)
        hidden += more
        files += within
        refused |= dict.fromkeys(deeper, "a folder within a class's folder")
        if not within:
            refused[each] = "a folder without files"
    if not files and not refused:
        raise UserError(f"dataset: {folder} must hold images, and is empty.")
    classes = [each for each in folders if each not in refused]
    return Listing(folder, files, classes if len(classes) > 1 else [], refused, hidden, total.hexdigest())


def _entries(folder: Path, below: str, refused: dict[str, str], total: "hashlib._Hash") -> tuple:
    """(files, folders, how many hidden) in a folder; their names begin with `below`."""
    files, folders, hidden = [], [], 0
    try:
        entries = sorted(os.scandir(folder / below), key=lambda entry: entry.name)
    except OSError as error:
        raise UserError(f"dataset: {folder / below} cannot be read: {error.strerror}.") from error
    for entry in entries:
        name = below + entry.name
        if entry.name.startswith("."):
            hidden += 1
            continue
        try:
            status = entry.stat()
            is_folder, is_file = entry.is_dir(), entry.is_file()
        except OSError:
            refused[name] = "a link that leads nowhere"
            continue
        if is_folder and entry.is_symlink():
            refused[name] = "a link to a folder"
        elif is_folder:
            folders.append(name)
        elif not is_file:
            refused[name] = "a pipe or a device"
        elif not status.st_size:
            refused[name] = "empty"
        else:
            files.append(name)
            total.update(f"{name}\0{status.st_size}\0{status.st_mtime_ns}\0".encode(errors="surrogateescape"))
    return files, folders, hidden


def read(
    listing: Listing,
    *,
    size: int | None,
    channels: int | None,
    skip_unreadable: bool,
    say: Callable[[str], None],
) -> FolderImages:
    """Read all images of a listing, in its order.

    Args:
        listing: from `list_folder`.
        size: of both sides; None: all must have the same, and keep it.
        channels: 1 or 3; None: 1 if all are grey.
        skip_unreadable: pass over what is no image.
        say: gets a line as it goes on.

    Raises:
        UserError: something is no image, none is, they differ in size and no `size` is asked for, or there
            is no memory for them.
    """
    unreadable = dict(listing.refused)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        probed = _each(pool, conversion.probe, listing, listing.files, unreadable, say, "looking at images")
        sizes = [(width, height) for width, height, _ in probed.values()]
        _check(listing, unreadable, sizes, size=size, skip_unreadable=skip_unreadable)
        channels = channels or max(found for _, _, found in probed.values())
        sides = (size, size) if size else sizes[0][::-1]
        conversion.check_memory((len(probed), *sides, channels))
        rows = {listing.folder / name: row for row, name in enumerate(probed)}
        images = np.empty((len(rows), *sides, channels), np.uint8)

        def keep(path: Path) -> None:
            images[rows[path]] = conversion.read(path, size=size, channels=channels)

        found = _each(pool, keep, listing, list(probed), unreadable, say, "reading images")
    _check(listing, unreadable, sizes, size=size, skip_unreadable=skip_unreadable)
    enlarged = sum(1 for name in found if size and min(probed[name][:2]) < size)
    places = {name: place for place, name in enumerate(listing.classes)}
    labels = np.array([places[name.partition("/")[0]] for name in found]) if places else None
    if len(found) < len(images):
        images = images[[row for row, name in enumerate(probed) if name in found]]
    return FolderImages(images, labels, unreadable, enlarged)


def _each(
    pool: ThreadPoolExecutor,
    function: Callable[[Path], object],
    listing: Listing,
    names: list[str],
    unreadable: dict[str, str],
    say: Callable[[str], None],
    doing: str,
) -> dict:
    """By name what `function` makes of each file; where it fails, the reason goes to `unreadable`."""

    def attempt(name: str) -> tuple[object, str]:
        try:
            return function(listing.folder / name), ""
        except Exception as error:  # Pillow's readers raise almost anything on files that are not sound
            return None, _reason(error)

    found = {}
    for done, (name, (result, reason)) in enumerate(zip(names, pool.map(attempt, names), strict=True)):
        if done % _SAID_EVERY == 0:
            say(f"{doing}: {done:,} of {len(names):,}")
        if reason:
            unreadable[name] = reason
        else:
            found[name] = result
    return found


def _reason(error: Exception) -> str:
    if isinstance(error, UnidentifiedImageError):
        return "no image"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    if "truncated" in str(error).lower():
        return "truncated"
    return " ".join(str(error).split()) or error_words(error)


def _check(
    listing: Listing,
    unreadable: dict[str, str],
    sizes: list[tuple[int, int]],
    *,
    size: int | None,
    skip_unreadable: bool,
) -> None:
    total = len(listing.files) + len(listing.refused)
    if unreadable and (not skip_unreadable or len(unreadable) == total):
        what_to_do = "Remove or mend them, or set skip_unreadable: true." if len(unreadable) < total else ""
        raise UserError(
            f"dataset: {len(unreadable):,} of {count(total, 'file')} in {listing.folder} cannot be read as"
            f" images: {named(unreadable)}. {what_to_do}".rstrip()
        )
    different = sorted(set(sizes), key=lambda each: each[0] * each[1])
    if size is None and len(different) > 1:
        small, large = (f"{width}x{height}" for width, height in (different[0], different[-1]))
        raise UserError(
            f"image_size: must be given, as the images in {listing.folder} have {len(different):,} sizes,"
            f" {small} to {large}; for example image_size: 32."
        )


def named(unreadable: dict[str, str]) -> str:
    """The first few names with their reasons, and how many there are more."""
    names = [f"{printable(name)} ({reason})" for name, reason in sorted(unreadable.items())]
    more = f", and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
