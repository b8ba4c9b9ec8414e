"""A space in Optuna's terms: distributions, the sampler of one trial, the pruner."""

import copy
import hashlib
import math
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.storages import InMemoryStorage
from optuna.trial import FrozenTrial, TrialState

from sweeps.records import order
from sweeps.search import FloatRange, IntRange, Searched
from sweeps.space import Space


def derived_seed(*parts: object) -> int:
    """A seed that follows from `parts`: the first 31 bits of the SHA-256 of `part:part:...`."""
    digest = hashlib.sha256(":".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def distributions(space: Space) -> dict[str, BaseDistribution]:
    """What is searched, in Optuna's words."""
    return {field: _distribution(searched) for field, searched in space.search.items()}


def propose(space: Space, number: int, trials: list[FrozenTrial]) -> dict[str, Any]:
    """Settings for trial `number` from the current trials of the study.

    The sampler is made anew each time and sees the trials in order of their labels, in a study in memory:
    what it offers follows from the seed and from what was measured, not from interruptions or retries. A
    complete baseline that only its privilege carried over a rung is shown as the pruned trial it would be
    among today's trials; complete, it would rank above all pruned ones, and the sampler would imitate it.
    """
    study = optuna.create_study(
        direction=space.objective.direction, storage=InMemoryStorage(), sampler=_sampler(space, number)
    )
    if space.sampler.name != "random":  # which looks at no trial
        in_order = sorted(trials, key=lambda trial: order(trial.user_attrs["label"]))
        study.add_trials(_bare(_without_privilege(trial, in_order, space)) for trial in in_order)
    return study.ask(distributions(space)).params


def _bare(trial: FrozenTrial) -> FrozenTrial:
    """With no attribute of ours but the label: no sampler reads them, and long trials are slow to copy."""
    bare = copy.copy(trial)
    bare.user_attrs = {name: trial.user_attrs[name] for name in ("label",) if name in trial.user_attrs}
    return bare


def _without_privilege(trial: FrozenTrial, trials: list[FrozenTrial], space: Space) -> FrozenTrial:
    if not trial.user_attrs.get("baseline") or trial.state != TrialState.COMPLETE:
        return trial
    for rung in space.rungs:
        values = sorted(t.intermediate_values[rung] for t in trials if rung in t.intermediate_values)
        kept = values[: max(1, len(values) // space.pruner.reduction_factor)]
        if rung < space.base.ticks and trial.intermediate_values.get(rung, math.inf) > kept[-1]:
            return optuna.trial.create_trial(
                state=TrialState.PRUNED,
                value=trial.intermediate_values[rung],
                params=trial.params,
                distributions=trial.distributions,
                intermediate_values={t: v for t, v in trial.intermediate_values.items() if t <= rung},
            )
    return trial


def pruner(space: Space) -> optuna.pruners.BasePruner:
    """The pruner; it keeps no state but what is in the study."""
    if space.pruner.name == "none":
        return optuna.pruners.NopPruner()
    return optuna.pruners.SuccessiveHalvingPruner(
        min_resource=space.first_rung, reduction_factor=space.pruner.reduction_factor
    )


def _distribution(searched: Searched) -> BaseDistribution:
    if isinstance(searched, FloatRange):
        return FloatDistribution(searched.low, searched.high, log=searched.log, step=searched.step)
    if isinstance(searched, IntRange):
        return IntDistribution(searched.low, searched.high, log=searched.log, step=searched.step or 1)
    return CategoricalDistribution(searched.choices)


def _sampler(space: Space, number: int) -> optuna.samplers.BaseSampler:
    seed = derived_seed(space.sweep.seed, "sampler", number)
    if space.sampler.name == "random":
        return optuna.samplers.RandomSampler(seed=seed)
    return optuna.samplers.TPESampler(seed=seed, n_startup_trials=space.sampler.n_startup_trials)
