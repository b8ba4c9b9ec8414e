"""How well early scores ranked the final ones: whether pruning at a rung was sound for this data."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sweeps.records import TrialRecord, complete

FEW = 8
"""Below so many trials no rank correlation is told from chance."""


@dataclass(frozen=True)
class Agreement:
    """The ranking at a rung against the final one, over the trials that went on to the end.

    Attributes:
        kimg: of the rung.
        trials: how many went on.
        rho: Spearman's rank correlation, -1..1; None of fewer than `FEW` trials, or if all scored alike.
        low: 95 % interval of rho.
        high: and its other end.
    """

    kimg: float
    trials: int
    rho: float | None = None
    low: float = -1.0
    high: float = 1.0

    def __str__(self) -> str:
        went_on = f"{self.trials} trials went on to the end"
        if self.rho is None:
            why = f"too few to say (at least {FEW} are needed)" if self.trials < FEW else "all scored alike"
            return f"{self.kimg:g} kimg: {went_on}, {why}"
        return (
            f"{self.kimg:g} kimg: rank correlation {self.rho:.2f} with the final FID (95 % interval"
            f" {self.low:.2f} to {self.high:.2f}); {went_on}"
        )


def agreements(records: list[TrialRecord], *, rungs: Sequence[int], tick_kimg: float) -> list[Agreement]:
    """For each rung but the last tick.

    Args:
        records: all trials of the sweep.
        rungs: the ticks at which trials are compared.
        tick_kimg: kimg of a tick.
    """
    from scipy.stats import spearmanr  # slow to import, and needed at the end only

    found = []
    for rung in rungs:
        pairs = [
            (one.best_fid_within(tick=rung), one.best_fid) for one in complete(records) if one.tick > rung
        ]
        pairs = [pair for pair in pairs if all(map(math.isfinite, pair))]
        kimg, count = rung * tick_kimg, len(pairs)
        if count and (count < FEW or any(len(set(side)) == 1 for side in zip(*pairs, strict=True))):
            found.append(Agreement(kimg, count))
        elif count:
            rho = float(spearmanr(*zip(*pairs, strict=True)).statistic)
            found.append(Agreement(kimg, count, rho, *_interval(rho, count)))
    return found


def _interval(rho: float, count: int) -> tuple[float, float]:
    """95 % by Fisher's transformation with the variance of Bonett and Wright 2000."""
    error = math.sqrt((1 + rho**2 / 2) / (count - 3))
    centre = math.atanh(max(-1 + 1e-12, min(1 - 1e-12, rho)))
    return math.tanh(centre - 1.96 * error), math.tanh(centre + 1.96 * error)
