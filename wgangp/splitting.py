"""A data set -> what is trained on, and what is held out; the same for every trial, by `split_seed`."""

import numpy as np

from wgangp.datasets import Dataset
from wgangp.errors import UserError

HELDOUT_FRACTION = 0.1
_RARE = 10
"""Images of a class that is too small to hold out a tenth of."""


def split(dataset: Dataset, *, seed: int) -> tuple[Dataset, Dataset]:
    """Divide into (training, held-out), the latter 10 % of each class, both in random order.

    Classes of fewer than 10 images are taken together, and so are images without labels. The order is random
    so that the first rows of either part are a fair sample of it: most sets come sorted.
    """
    random = np.random.default_rng(seed)
    heldout = np.zeros(len(dataset.images), bool)
    strata = _strata(dataset)
    for label in np.unique(strata):
        rows = random.permutation(np.flatnonzero(strata == label))
        heldout[rows[: round(len(rows) * HELDOUT_FRACTION)]] = True
    training, rest = (dataset.rows(random.permutation(np.flatnonzero(part))) for part in (~heldout, heldout))
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
    strata = np.zeros(len(training.images)) if training.labels is None else training.labels
    labels, sizes = np.unique(strata, return_counts=True)
    counts, left = np.divmod(count * sizes, len(strata))
    counts[np.argsort(-left, kind="stable")[: count - counts.sum()]] += 1  # the largest remainders
    kept = [
        random.permutation(np.flatnonzero(strata == label))[:number]
        for label, number in zip(labels, counts, strict=True)
    ]
    return training.rows(random.permutation(np.concatenate(kept)))


def _strata(dataset: Dataset) -> np.ndarray:
    """Of which each is divided by itself: the classes, the rare ones as one."""
    if dataset.labels is None:
        return np.zeros(len(dataset.images), np.int64)
    sizes = np.bincount(dataset.labels)
    return np.where(sizes[dataset.labels] < _RARE, -1, dataset.labels)
