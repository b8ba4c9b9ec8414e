"""The scores of generated images by name, from their features; `evaluation` and `winner` ask for them.

    fid, fid_standard_error, diversity    always: `frechet`
    kid, kid_standard_error               kernel distance, Binkowski et al. 2018
    precision, recall, density, coverage  `neighbours`
    inception_score                       exp E KL(p(y|x) || p(y)), Salimans et al. 2016, of the classes that
                                          the feature network tells apart: the usual one with Inception only

fid compares all generated with all training images. What compares image by image costs the square of their
number: it takes as many real as generated ones, and no more than it is told.
"""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache

import numpy as np

from wgangp import frechet
from wgangp.neighbours import Neighbourhood

OF_NEIGHBOURS = ("precision", "recall", "density", "coverage")


@dataclass(frozen=True)
class Reference:
    """What generated images are compared with.

    Attributes:
        gaussian: of all training images.
        features: float32 [n, D], of some of them, in random order.
    """

    gaussian: frechet.Gaussian
    features: np.ndarray


class Scorer:
    """Scores one set of generated images after another; what belongs to the reference is computed once."""

    def __init__(self, reference: Reference, *, most: int) -> None:
        """Image by image at most `most` are compared."""
        self._gaussian, self._most = reference.gaussian, most
        self._reference = reference.features

    def scores(
        self, features: np.ndarray, probabilities: np.ndarray | None, *, names: Collection[str]
    ) -> dict[str, float]:
        """The scores `names` of features [N, D], in random order, and class probabilities [N, classes].

        Without probabilities there is no inception_score.

        A value is NaN if a feature that it is of is not finite.

        Raises:
            ValueError: there are too few samples.
        """
        fid, error = frechet.fid_with_error(features, against=self._gaussian)
        found = {"fid": fid, "fid_standard_error": error}
        found["diversity"] = frechet.diversity(features, against=self._gaussian)
        some = features[: min(self._most, len(self._reference))]
        if "kid" in names:
            found["kid"], found["kid_standard_error"] = kid(some, self._reference[: len(some)])
        if set(names) & set(OF_NEIGHBOURS):
            counted = self._neighbourhood(len(some)).scores(some)
            found |= {name: counted[name] for name in OF_NEIGHBOURS if name in names}
        if "inception_score" in names and probabilities is not None:
            found["inception_score"] = inception_score(probabilities)
        return found

    @cache  # noqa: B019  (a scorer lives as long as its process)
    def _neighbourhood(self, count: int) -> Neighbourhood:
        return Neighbourhood(self._reference[:count])


def kid(features: np.ndarray, real: np.ndarray) -> tuple[float, float]:
    """Kernel distance, unbiased, of generated [N, D] to real features [M, D], and its standard error.

    The squared maximum mean discrepancy with the kernel (x.y / D + 1)^3. All pairs are taken, which is what
    the usual mean over random subsets estimates. The error is the jackknife's over the generated images.

    Returns:
        (kid, error), kid slightly negative at times; NaN if a feature is not finite.

    Raises:
        ValueError: there are fewer than 3 generated or 2 real images.
    """
    x, y = np.asarray(features, np.float64), np.asarray(real, np.float64)
    n, m = len(x), len(y)
    if n < 3 or m < 2:
        raise ValueError(f"kid needs 3 generated and 2 real images, got {n} and {m}")
    if not np.isfinite(x).all():
        return float("nan"), float("nan")
    with np.errstate(over="ignore", invalid="ignore"):
        among_real, among = _kernel(y, y), _kernel(x, x)
        pairs = among.sum(axis=1) - among.diagonal()
        across = _kernel(x, y).mean(axis=1)
        value = pairs.sum() / (n * (n - 1)) - 2 * across.mean()
        value += (among_real.sum() - among_real.trace()) / (m * (m - 1))
        without = (pairs.sum() - 2 * pairs) / ((n - 1) * (n - 2)) - 2 * (across.sum() - across) / (n - 1)
        error = np.sqrt((n - 1) / n * np.square(without - without.mean()).sum())
    return float(value), float(error)


def inception_score(probabilities: np.ndarray) -> float:
    """exp of the mean divergence of p(y|x) from p(y), over class probabilities [N, classes]: 1..classes.

    Of all images at once, not the mean over ten parts. NaN if a probability is.
    """
    p = np.asarray(probabilities, np.float64)
    if not np.isfinite(p).all():
        return float("nan")
    marginal = p.mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(p > 0, p * (np.log(p) - np.log(marginal)), 0)
    return float(np.exp(terms.sum(axis=1).mean()))


def _kernel(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    base = x @ y.T / x.shape[1] + 1
    return base * base * base  # a power is many times slower
