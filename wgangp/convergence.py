"""Curves -> verdict: whether a training run has diverged, and what its curves say. Pure functions of numbers.

`trainer` asks `divergence` after each tick; whoever shows a run asks `verdict`. An exploded but finite
penalty ends nothing: such runs sometimes recover.

The thresholds are below, each with its reason. They were set on half of the real runs of
`benchmarks/convergence.py`; the README shows how they did on the other half.
"""

import itertools
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

DEAD_NORM = 0.05
DEAD_WASSERSTEIN = 0.05
DEAD_TICKS = 3
SLOPE_ONE = ("two_sided", "one_sided")
"""Penalties under which a healthy critic has slopes near one; under the others it may be flat and well."""

FEWEST_TICKS = 4
"""Fewer say nothing about a course."""
LATE = 1 / 3
"""The last part of a run, by which it is judged: early on every run explodes and improves."""
EXPLODED_NORM = 10.0
"""A healthy slope is slightly above 1, in the first ticks up to 8."""
IDLE_NORM, IDLE_PENALTY = 0.5, 0.25
"""Slopes far below the 1 that the penalty asks for, late: (1 - 0.5)^2 is charged and the critic stays."""
COLLAPSED_SHARE = 0.5
"""Of its highest recall, or diversity, that a run has lost when it has collapsed."""
ONE_IMAGE = 1e-4
"""Diversity of images that are all one; early in a run it is above this, and grows."""
VARIED_RECALL, VARIED_DIVERSITY = 0.1, 0.3
"""Below these there was no variety to lose."""
OVERFIT_SHARE = 0.1
"""Of the gap between real and generated images that the critic sees between training and held-out ones."""
OVERFIT_DISTANCE = 0.2
"""And this gap over the critic's slope, a distance of images in -1..1: of 500 images 0.1 is chance."""
OSCILLATING_RISE = 0.1
"""A rise of FID between two ticks by this share is no noise of the score (standard error 1-2 %)."""
OSCILLATING_TICKS = 2
"""So many such rises late in a run are no accident."""
OSCILLATING_ABOVE = 0.25
"""Or one rise by this share; or FID is so far above its best in the last two ticks."""
IMPROVING_SHARE = 0.1
"""By which the best FID fell in the last part of a run that a longer one would improve."""

_LOSSES = ("critic_loss", "generator_loss", "gradient_penalty", "wasserstein", "gradient_norm")
_SCORES = ("fid", "heldout_gap")

Tick = Mapping[str, float]
"""The metrics of a tick, with the names of `Progress.metrics`; what was not finite is left out."""


@dataclass(frozen=True)
class Verdict:
    """What curves say.

    Attributes:
        word: improving, plateaued, oscillating, overfitting, collapsed, dead critic, exploded or diverged;
            `-` of too few ticks.
        evidence: the numbers it rests on, for a person.
    """

    word: str
    evidence: str


def verdict(ticks: Sequence[Tick], *, diverged: str = "") -> Verdict:
    """The verdict on a run by its ticks in order; what is worse goes before what is better.

    `diverged`: the reason, if that ended it.
    """
    if diverged:
        return Verdict("dead critic" if diverged.startswith("dead critic") else "diverged", diverged)
    if len(ticks) < FEWEST_TICKS:
        return Verdict("-", f"{len(ticks)} ticks are too few to say")
    late = ticks[-max(2, math.ceil(len(ticks) * LATE)) :]
    for word, evidence in (
        ("exploded", _exploded(late)),
        ("dead critic", _dead(late)),
        ("collapsed", _collapsed(ticks, late)),
        ("overfitting", _overfitting(late)),
        ("oscillating", _oscillating(ticks, late)),
    ):
        if evidence:
            return Verdict(word, evidence)
    before = min(_values(ticks[: -len(late)], "fid"), default=math.inf)
    after = min(_values(ticks, "fid"), default=math.inf)
    if not math.isfinite(before) or not before:
        return Verdict("-", "FID is not known")
    share = 1 - after / before
    fell = f"the best FID fell by {share:.0%} in the last {len(late)} of {len(ticks)} ticks"
    if share > IMPROVING_SHARE:
        return Verdict("improving", f"{fell}: the budget was too small")
    return Verdict("plateaued", fell)


def _exploded(late: Sequence[Tick]) -> str:
    norm = _median(late, "gradient_norm")
    if norm > EXPLODED_NORM:
        penalty = _last(late, "gradient_penalty")
        return f"the critic's slope is {norm:.3g} where 1 is healthy, the penalty {penalty:.3g}"
    return ""


def _dead(late: Sequence[Tick]) -> str:
    norm, wasserstein = _median(late, "gradient_norm"), _median(late, "wasserstein")
    if norm < IDLE_NORM and _median(late, "gradient_penalty") > IDLE_PENALTY and wasserstein <= 0:
        return f"it puts generated above real images ({wasserstein:.2g}), with a slope of {norm:.2g}"
    return ""


def _collapsed(ticks: Sequence[Tick], late: Sequence[Tick]) -> str:
    if max(_values(late, "diversity"), default=1.0) < ONE_IMAGE:
        return f"all images are nearly one (diversity {_last(late, 'diversity'):.1g})"
    for name, varied in (("recall", VARIED_RECALL), ("diversity", VARIED_DIVERSITY)):
        most, now = max(_values(ticks, name), default=0.0), _median(ticks[-2:], name)
        if most > varied and now < COLLAPSED_SHARE * most:
            return f"{name} fell from {most:.2g} to {now:.2g}"
    return ""


def _overfitting(late: Sequence[Tick]) -> str:
    gap, wasserstein = _median(late, "heldout_gap"), _median(late, "wasserstein")
    lowest = min(_values(late, "heldout_gap"), default=0.0)
    wide = gap > OVERFIT_DISTANCE * _median(late, "gradient_norm")
    if lowest > 0 and wide and gap > OVERFIT_SHARE * abs(wasserstein):
        return (
            f"the critic tells training from held-out images by {gap:.2g},"
            f" real from generated ones by {wasserstein:.2g}"
        )
    return ""


def _oscillating(ticks: Sequence[Tick], late: Sequence[Tick]) -> str:
    fids = _values(ticks[-len(late) - 1 :], "fid")
    rises = [b / a - 1 for a, b in itertools.pairwise(fids) if a > 0 and b / a - 1 > OSCILLATING_RISE]
    if len(rises) >= OSCILLATING_TICKS or max(rises, default=0.0) > OSCILLATING_ABOVE:
        times = "once" if len(rises) == 1 else f"{len(rises)} times by over {OSCILLATING_RISE:.0%}, at most"
        return f"late on FID rose {times} by {max(rises):.0%}"
    best, now = (min(_values(some, "fid"), default=math.nan) for some in (ticks, ticks[-2:]))
    if now > (1 + OSCILLATING_ABOVE) * best:
        return f"FID ends at {now:.0f}, {now / best - 1:.0%} above its best"
    return ""


def _values(ticks: Sequence[Tick], name: str) -> list[float]:
    return [tick[name] for tick in ticks if math.isfinite(tick.get(name, math.nan))]


def _median(ticks: Sequence[Tick], name: str) -> float:
    """NaN, with which nothing compares, if the name is not measured."""
    values = _values(ticks, name)
    return statistics.median(values) if values else math.nan


def _last(ticks: Sequence[Tick], name: str) -> float:
    return next(reversed(_values(ticks, name)), math.nan)


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
