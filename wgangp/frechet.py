"""The Frechet distance of two sets of feature vectors (FID), its error and its limit. numpy and scipy only.

    FID = |m1 - m2|^2 + Tr(C1 + C2 - 2 (C1 C2)^(1/2))        Heusel et al. 2017, covariances over N - 1

The trace of the root is the sum of the square roots of the eigenvalues of S = L^T C2 L with L L^T = C1. S is
symmetric, so they are real; and of known rank, so what rounding adds is left out: exact with fewer samples
than dimensions too.

With N samples FID is biased upwards, about as 1/N, by another amount for each generator (Chong and Forsyth
2020): only scores of equal N compare.
"""

from dataclasses import dataclass

import numpy as np
import scipy.linalg


@dataclass(frozen=True)
class Gaussian:
    """What generated images are compared with. Arrays are float64.

    Attributes:
        mean: [D].
        covariance: [D, D], divided by count - 1.
        factor: [D, D], L, lower triangular, with L L^T = `covariance`.
        count: images it was made of; 0 if it is not made of images.
    """

    mean: np.ndarray
    covariance: np.ndarray
    factor: np.ndarray
    count: int

    @property
    def rank(self) -> int:
        """The most that the covariance's rank can be."""
        return min(len(self.mean), self.count - 1) if self.count else len(self.mean)


def gaussian(features: np.ndarray) -> Gaussian:
    """The Gaussian of features [N, D], N >= 2, finite.

    Raises:
        ValueError: there are too few, or not all are finite.
    """
    mean, covariance = _moments(features)
    if not np.isfinite(covariance).all():
        raise ValueError("the features of the reference must be finite")
    # Of the centred features themselves, and so as exact as they are, whatever the rank.
    (upper,) = scipy.linalg.qr((features - mean) / np.sqrt(len(features) - 1), mode="r")
    factor = np.zeros_like(covariance)
    factor[:, : len(upper)] = upper[: len(mean)].T
    return Gaussian(mean=mean, covariance=covariance, factor=factor, count=len(features))


def fid(features: np.ndarray, *, against: Gaussian) -> float:
    """FID of features [N, D], N >= 2, to a reference of the same network's features.

    Returns:
        0 or more; NaN if a feature is not finite.

    Raises:
        ValueError: there are fewer than 2 samples, or they have other dimensions than the reference.
    """
    mean, covariance = _moments(features, like=against)
    if not np.isfinite(covariance).all():
        return float("nan")
    return distance(mean, covariance, len(features), against=against)


def distance(mean: np.ndarray, covariance: np.ndarray, count: int, *, against: Gaussian) -> float:
    """FID from a mean [D] and a covariance [D, D] of `count` images, finite."""
    product = _product(covariance, against)
    values = scipy.linalg.eigvalsh(product, lower=True, driver="evd", overwrite_a=True)
    return _sum(mean, covariance, against, roots=np.sqrt(_kept(values, count, against)))


def fid_with_error(features: np.ndarray, *, against: Gaussian) -> tuple[float, float]:
    """FID as `fid`, and its standard error over the draw of these N generated images.

    The error is the infinitesimal jackknife (Efron 1982), the limit of a bootstrap of many resamples without
    its own noise: the standard deviation over samples x of what each adds to FID to first order,

        2 (m2 - m1).c + c.c - c.A c       c = x - m2,  A = L (L^T C2 L)^(-1/2) L^T

    over sqrt(N). It knows nothing of another training run's luck.

    Returns:
        (fid, error); both NaN if a feature is not finite.

    Raises:
        ValueError: as `fid`.
    """
    mean, covariance = _moments(features, like=against)
    if not np.isfinite(covariance).all():
        return float("nan"), float("nan")
    values, vectors = scipy.linalg.eigh(_product(covariance, against), lower=True, driver="evd")
    kept = _kept(values, len(features), against)
    found = _sum(mean, covariance, against, roots=np.sqrt(kept))
    centred = np.asarray(features, np.float64) - mean
    # What is as small as rounding has no direction of its own, and would be divided by its fourth root.
    sound = kept > len(mean) * np.finfo(np.float64).eps * kept.max(initial=0)
    basis = against.factor @ vectors[:, -len(kept) :][:, sound] / kept[sound] ** 0.25
    influence = 2 * centred @ (mean - against.mean) + np.square(centred).sum(axis=1)
    influence -= np.square(centred @ basis).sum(axis=1)
    return found, float(influence.std(ddof=1) / np.sqrt(len(features)))


def fid_at_infinity(features: np.ndarray, *, against: Gaussian) -> float:
    """FID extrapolated to infinitely many samples: a line in 1/N, read at 0 (Chong and Forsyth 2020).

    The N samples are scored whole, in halves and in quarters, each size by the mean over its disjoint parts,
    so that every point of the line rests on all samples. In parts of fewer samples than dimensions the bias
    is no line any more.

    Args:
        features: [N, D], in random order.
        against: the reference; its own size is no part of the extrapolation.

    Returns:
        May be slightly below 0, being unbiased; NaN if a feature is not finite.

    Raises:
        ValueError: a part would have fewer than 2 samples.
    """
    inverse, found = [], []
    for parts in (1, 2, 4):
        size = len(features) // parts
        scores = [fid(features[i * size : (i + 1) * size], against=against) for i in range(parts)]
        inverse.append(1 / size)
        found.append(np.mean(scores))
    if not np.isfinite(found).all():
        return float("nan")
    return float(np.polynomial.Polynomial.fit(inverse, found, 1)(0.0))


def diversity(features: np.ndarray, *, against: Gaussian) -> float:
    """Variance of features [N, D] as a share of the reference's, both summed over the dimensions.

    1: as varied as the reference; near 0: all images are one. NaN if a feature is not finite.
    """
    total = np.trace(against.covariance)
    variances = np.asarray(features, np.float64).var(axis=0, ddof=1)
    return float(variances.sum() / total) if total > 0 else float("nan")


def _moments(features: np.ndarray, *, like: Gaussian | None = None) -> tuple[np.ndarray, np.ndarray]:
    features = np.asarray(features, np.float64)
    if features.ndim != 2 or len(features) < 2:
        raise ValueError(f"features must be [N, D] with N at least 2, got {list(features.shape)}")
    if like is not None and features.shape[1] != len(like.mean):
        raise ValueError(
            f"features must have the reference's {len(like.mean)} dimensions, got {features.shape[1]}"
        )
    with np.errstate(invalid="ignore", over="ignore"):
        return features.mean(axis=0), np.atleast_2d(np.cov(features, rowvar=False))


def _product(covariance: np.ndarray, against: Gaussian) -> np.ndarray:
    """S, of which only the lower triangle counts; LAPACK leaves out what is zero or known by symmetry."""
    product, _ = scipy.linalg.lapack.dsygst(covariance, against.factor, itype=2, lower=1)
    return product


def _kept(values: np.ndarray, count: int, against: Gaussian) -> np.ndarray:
    """The eigenvalues that may differ from 0, ascending: the rank is at most that of either covariance."""
    return values[-min(against.rank, count - 1) :].clip(min=0)


def _sum(mean: np.ndarray, covariance: np.ndarray, against: Gaussian, *, roots: np.ndarray) -> float:
    total = np.square(mean - against.mean).sum() + np.trace(covariance) + np.trace(against.covariance)
    return max(0.0, float(total - 2 * roots.sum()))
