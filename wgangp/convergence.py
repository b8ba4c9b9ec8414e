"""Curves -> verdict: whether a training run has diverged. Pure functions of numbers; `trainer` calls them.

An exploded but finite penalty is no verdict: such runs sometimes recover.
"""

import math
from collections.abc import Mapping

DEAD_NORM = 0.05
DEAD_WASSERSTEIN = 0.05
DEAD_TICKS = 3
SLOPE_ONE = ("two_sided", "one_sided")
"""Penalties under which a healthy critic has slopes near one; under the others it may be flat and well."""

_LOSSES = ("critic_loss", "generator_loss", "gradient_penalty", "wasserstein", "gradient_norm")
_SCORES = ("fid", "heldout_gap")


def is_dead(*, gradient_norm: float, wasserstein: float) -> bool:
    """Whether the critic says the same of every image: no slope at x_hat and no gap between real and fake."""
    return gradient_norm < DEAD_NORM and abs(wasserstein) < DEAD_WASSERSTEIN


def divergence(metrics: Mapping[str, float], *, weights_are_finite: bool, dead_ticks: int) -> str:
    """Why a run has diverged, in words; empty if it has not.

    Args:
        metrics: of one tick, with the names of `Progress.metrics`.
        weights_are_finite: of both networks, at the tick's end.
        dead_ticks: ticks running, this one included, at which `is_dead` was true.
    """
    # Losses first: a bad score is a consequence.
    for name in _LOSSES:
        if not math.isfinite(metrics[name]):
            return f"{name} is not finite"
    if not weights_are_finite:
        return "a weight is not finite"
    for name in _SCORES:
        if not math.isfinite(metrics[name]):
            return f"{name} is not finite"
    if dead_ticks >= DEAD_TICKS:
        norm, wasserstein = metrics["gradient_norm"], metrics["wasserstein"]
        return (
            f"dead critic: gradient norm {norm:.2g} and wasserstein {wasserstein:.2g} for {dead_ticks} ticks"
        )
    return ""
