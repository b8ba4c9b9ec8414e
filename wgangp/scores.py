"""Scores of generated images, from feature vectors. numpy and scipy only; the caller brings the features."""

from dataclasses import dataclass

import numpy as np
import scipy.linalg


@dataclass(frozen=True)
class Reference:
    """The Gaussian that generated images are compared with. Arrays are float64.

    Attributes:
        mean: [D].
        covariance: [D, D], divided by count - 1.
        root: [D, D], the symmetric square root of `covariance`.
        count: images it was made of.
    """

    mean: np.ndarray
    covariance: np.ndarray
    root: np.ndarray
    count: int


def reference(features: np.ndarray) -> Reference:
    """The reference of features [N, D], N >= 2, finite."""
    mean, covariance = _moments(features)
    values, vectors = scipy.linalg.eigh(covariance, driver="evd")
    root = (vectors * np.sqrt(values.clip(min=0))) @ vectors.T
    return Reference(mean=mean, covariance=covariance, root=root, count=len(features))


def fid(features: np.ndarray, *, against: Reference) -> float:
    """Frechet distance of two Gaussians, |m1 - m2|^2 + Tr(C1 + C2 - 2 (C1 C2)^(1/2)) (Heusel et al. 2017).

    The trace of the root is the sum of the square roots of the eigenvalues of R C2 R with R R = C1:
    symmetric, so real, and sound for fewer samples than dimensions. With N samples the score is biased
    upwards, about as 1/N: only scores of equal N compare.

    Args:
        features: [N, D], N >= 2.
        against: of the same network's features.

    Returns:
        0 or more; NaN if a feature is not finite.
    """
    if not np.isfinite(features).all():
        return float("nan")
    mean, covariance = _moments(features)
    product = against.root @ covariance @ against.root
    values = scipy.linalg.eigvalsh((product + product.T) / 2, driver="evd")
    trace_of_root = np.sqrt(values.clip(min=0)).sum()
    distance = np.square(mean - against.mean).sum()
    total = distance + np.trace(covariance) + np.trace(against.covariance) - 2 * trace_of_root
    return max(0.0, float(total))


def _moments(features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    features = np.asarray(features, np.float64)
    return features.mean(axis=0), np.cov(features, rowvar=False)
