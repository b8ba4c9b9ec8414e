"""Generated images -> their scores, by the frozen feature network. `trainer` and `winner` call it."""

from collections.abc import Collection, Iterable

import numpy as np

from wgangp import networks, scores
from wgangp.features import Description
from wgangp.prepared import Prepared

COMPARED = 1000
"""Images that a tick compares one by one, for the scores that do so: an evaluation is to cost little."""


class Evaluation:
    """The feature network and the reference of a data set, for one set of generated images after another."""

    def __init__(self, prepared: Prepared, *, compared: int = COMPARED) -> None:
        """At most `compared` images are compared one by one."""
        self._network = prepared.features.network(prepared.images.shape[1:])
        self._scorer = scores.Scorer(prepared.reference, most=compared)

    def describe(self, batches: Iterable[np.ndarray]) -> Description:
        """Features and class probabilities of images [n, H, W, C] in -1..1, batch by batch.

        NaN for a batch with a value that is not finite: its pixels would look sound.
        """
        described = []
        for images in batches:
            features, probabilities = self._network.describe(networks.to_data(images))
            if not np.isfinite(images).all():
                features = np.full_like(features, np.nan)
                probabilities = None if probabilities is None else np.full_like(probabilities, np.nan)
            described.append((features, probabilities))
        features, probabilities = zip(*described, strict=True)
        known = [part for part in probabilities if part is not None]
        return Description(np.concatenate(features), np.concatenate(known) if known else None)

    def scores(self, described: Description, *, names: Collection[str]) -> dict[str, float]:
        """By name; see `scores.Scorer`."""
        return self._scorer.scores(*described, names=names)
