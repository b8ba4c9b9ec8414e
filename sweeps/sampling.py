"""A space in Optuna's terms: distributions, the sampler of one trial, the pruner."""

import hashlib
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.storages import InMemoryStorage
from optuna.trial import FrozenTrial, TrialState

from sweeps.attributes import ticks_of
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
    baseline that only its privilege saved from the pruner is shown as the pruned trial it would have been;
    complete, it would rank above all pruned ones, and the sampler would imitate it.
    """
    study = optuna.create_study(
        direction=space.objective.direction, storage=InMemoryStorage(), sampler=_sampler(space, number)
    )
    study.add_trials(
        _as_measured(trial) for trial in sorted(trials, key=lambda t: int(t.user_attrs["label"][1:]))
    )
    return study.ask(distributions(space)).params


def _as_measured(trial: FrozenTrial) -> FrozenTrial:
    cut = min((tick for tick, value in ticks_of(trial).items() if value["prunable"]), default=None)
    if cut is None or trial.state != TrialState.COMPLETE:
        return trial
    values = {tick: value for tick, value in trial.intermediate_values.items() if tick <= cut}
    return optuna.trial.create_trial(
        state=TrialState.PRUNED,
        value=values[cut],
        params=trial.params,
        distributions=trial.distributions,
        intermediate_values=values,
    )


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
