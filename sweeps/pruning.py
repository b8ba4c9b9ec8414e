"""Pruners in Optuna's terms: at which ticks a trial is compared, with whom, and what it takes to go on.

None keeps a state but what is in the study, and none goes by the numbers of Optuna's trials: a trial that is
tried again has another number and must be judged as before.
"""

import math
from collections.abc import Sequence

import numpy as np
import optuna
from optuna.pruners import (
    BasePruner,
    HyperbandPruner,
    MedianPruner,
    NopPruner,
    PatientPruner,
    PercentilePruner,
    SuccessiveHalvingPruner,
)
from optuna.trial import FrozenTrial, TrialState

from sweeps.records import order
from sweeps.seeds import derived_seed
from sweeps.space import Space


class _Hyperband(HyperbandPruner):
    """Brackets by label and seed; Optuna's own are by the trial's number and the study's name."""

    def __init__(self, space: Space) -> None:
        super().__init__(
            min_resource=space.first_rung,
            # From it nothing follows but how many brackets there are; of powers the logarithm falls short.
            max_resource=space.base.ticks + 1,
            reduction_factor=space.pruner.reduction_factor,
        )
        self._space = space

    def _get_bracket_id(self, study: optuna.Study, trial: FrozenTrial) -> int:
        return bracket(self._space, trial.user_attrs["label"])


def pruner(space: Space) -> BasePruner:
    """The pruner of a sweep."""
    asked, first = space.pruner, space.first_rung
    match asked.name:
        case "successive_halving":
            return SuccessiveHalvingPruner(min_resource=first, reduction_factor=asked.reduction_factor)
        case "hyperband":
            return _Hyperband(space)
        case "median":
            return MedianPruner(n_startup_trials=asked.n_startup_trials, n_warmup_steps=first)
        case "percentile":
            return PercentilePruner(
                asked.percentile, n_startup_trials=asked.n_startup_trials, n_warmup_steps=first
            )
        case "patient":
            return PatientPruner(None, patience=space.patience - 1)
    return NopPruner()


def value_at_tick(space: Space, *, fid: float, best: float) -> float:
    """What Optuna is told of a tick: the best FID so far, or its own where the pruner looks for progress."""
    return fid if space.pruner.name == "patient" else best


def reason(space: Space, *, tick: int) -> str:
    """Why a trial was pruned at `tick`, for a person."""
    asked, at = space.pruner, f"at {tick * space.base.tick_kimg:g} kimg"
    match asked.name:
        case "hyperband":
            return f"not among the best 1/{asked.reduction_factor} of its bracket {at}"
        case "median":
            return f"worse than the median of the complete trials {at}"
        case "percentile":
            return f"not among the best {asked.percentile:g} % of the complete trials {at}"
        case "patient":
            return f"no better for {space.patience_kimg:g} kimg {at}"
    return f"not among the best 1/{asked.reduction_factor} {at}"


def bracket(space: Space, label: str) -> int:
    """Of hyperband, at how many of the milestones a trial is spared; of few milestones few trials are spared.

    So often as Li et al. 2018 (arXiv 1603.06560) give each bracket trials.
    """
    brackets, factor = len(space.milestones), space.pruner.reduction_factor
    shares = [math.ceil(brackets * factor**halvings / (halvings + 1)) for halvings in range(brackets)][::-1]
    number, _ = order(label)
    drawn = derived_seed(space.sweep.seed, "bracket", number) % sum(shares)
    return next(spared for spared in range(brackets) if drawn < sum(shares[: spared + 1]))


def rungs(space: Space, label: str) -> list[int]:
    """The ticks at which Optuna notes on a trial that it went on, the first as `completed_rung_0`."""
    match space.pruner.name:
        case "successive_halving":
            return space.rungs
        case "hyperband":
            return space.rungs[bracket(space, label) :]
    return []


def without_privilege(trial: FrozenTrial, trials: Sequence[FrozenTrial], space: Space) -> FrozenTrial:
    """A complete baseline that only its privilege carried on, as the pruned trial it would be otherwise.

    Args:
        trial: any.
        trials: all of today, among which it is judged.
        space: of the sweep.
    """
    if not trial.user_attrs.get("baseline") or trial.state != TrialState.COMPLETE:
        return trial
    label = trial.user_attrs["label"]
    for rung in rungs(space, label) or space.rungs:
        mine = trial.intermediate_values.get(rung, math.inf)
        if rung < space.base.ticks and mine > _bar(space, label, rung, trials):
            return optuna.trial.create_trial(
                state=TrialState.PRUNED,
                value=mine,
                params=trial.params,
                distributions=trial.distributions,
                intermediate_values={t: v for t, v in trial.intermediate_values.items() if t <= rung},
            )
    return trial


def _bar(space: Space, label: str, rung: int, trials: Sequence[FrozenTrial]) -> float:
    """The highest FID with which the trial `label` would go on from a rung, by the trials of today."""
    asked = space.pruner
    if asked.name in ("median", "percentile"):
        rivals = [
            one for one in trials if one.state == TrialState.COMPLETE and one.user_attrs["label"] != label
        ]
        if len(rivals) < asked.n_startup_trials:
            return math.inf
    else:
        rivals = [
            one
            for one in trials
            if asked.name != "hyperband" or bracket(space, one.user_attrs["label"]) == bracket(space, label)
        ]
    values = sorted(one.intermediate_values[rung] for one in rivals if rung in one.intermediate_values)
    if not values:
        return math.inf
    if asked.name in ("median", "percentile"):
        return float(np.percentile(values, 50 if asked.name == "median" else asked.percentile))
    return values[max(1, len(values) // asked.reduction_factor) - 1]
