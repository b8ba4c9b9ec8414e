"""Scores that count neighbours between real and generated images in feature space. numpy and scikit-learn.

A ball stands around each image of a set, reaching to its k-th nearest neighbour in the same set.

    precision  share of generated images within a ball of a real one        Kynkaanniemi et al. 2019, k = 3
    recall     share of real images within a ball of a generated one        the same
    density    how many balls of real images hold a generated one, / k      Naeem et al. 2020, k = 5
    coverage   share of real images whose ball holds a generated one        the same
"""

import numpy as np
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.neighbors import NearestNeighbors

PRECISION_K = 3
DENSITY_K = 5

_ROWS = 1000  # of generated images whose distances are held at once: bounds the memory


class Neighbourhood:
    """Real images, their balls measured once; generated sets are scored against it."""

    def __init__(self, features: np.ndarray) -> None:
        """Of real features [N, D], N > 5, finite.

        Raises:
            ValueError: there are too few.
        """
        self._real = _checked(features)
        self._radii = _radii(self._real)

    def scores(self, features: np.ndarray) -> dict[str, float]:
        """precision, recall and coverage in 0..1, density 0 or more, of generated features [M, D], M > 5.

        All NaN if a feature is not finite. Sets of about equal size are meant: with more images the balls
        are smaller.

        Raises:
            ValueError: there are too few.
        """
        if not np.isfinite(features).all():
            return dict.fromkeys(("precision", "recall", "density", "coverage"), float("nan"))
        fake = _checked(features)
        wide, narrow = self._radii[PRECISION_K], self._radii[DENSITY_K]
        recalled = np.zeros(len(self._real), bool)
        covered = np.zeros(len(self._real), bool)
        precise = dense = 0
        fake_radii = _radii(fake)[PRECISION_K]
        for first in range(0, len(fake), _ROWS):
            rows = slice(first, first + _ROWS)
            distances = euclidean_distances(fake[rows], self._real)
            precise += (distances <= wide).any(axis=1).sum()
            dense += (distances <= narrow).sum()
            covered |= (distances <= narrow).any(axis=0)
            recalled |= (distances <= fake_radii[rows, None]).any(axis=0)
        return {
            "precision": float(precise / len(fake)),
            "recall": float(recalled.mean()),
            "density": float(dense / (DENSITY_K * len(fake))),
            "coverage": float(covered.mean()),
        }


def _checked(features: np.ndarray) -> np.ndarray:
    if features.ndim != 2 or len(features) <= DENSITY_K:
        raise ValueError(f"features must be [N, D] with N above {DENSITY_K}, got {list(features.shape)}")
    return np.asarray(features, np.float64)


def _radii(features: np.ndarray) -> dict[int, np.ndarray]:
    """For both k the distance of each row to its k-th nearest other row: [N]."""
    nearest = NearestNeighbors(n_neighbors=DENSITY_K, algorithm="brute").fit(features)
    distances, _ = nearest.kneighbors()  # of no point given: an image is no neighbour of itself
    return {k: distances[:, k - 1] for k in (PRECISION_K, DENSITY_K)}
