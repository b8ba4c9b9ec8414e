"""A space in Optuna's terms: distributions, the sampler of one trial, the pruner."""

import hashlib

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from sweeps.search import FloatRange, IntRange, Searched
from sweeps.space import Space


def derived_seed(*parts: object) -> int:
    """A seed that follows from `parts`: the first 31 bits of the SHA-256 of `part:part:...`."""
    digest = hashlib.sha256(":".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def distribution(searched: Searched) -> BaseDistribution:
    if isinstance(searched, FloatRange):
        return FloatDistribution(searched.low, searched.high, log=searched.log, step=searched.step)
    if isinstance(searched, IntRange):
        return IntDistribution(searched.low, searched.high, log=searched.log, step=searched.step or 1)
    return CategoricalDistribution(searched.choices)


def sampler(space: Space, number: int) -> optuna.samplers.BaseSampler:
    """The sampler of trial `number`: what it offers depends on seed and study, not on interruptions."""
    seed = derived_seed(space.sweep.seed, "sampler", number)
    if space.sampler.name == "random":
        return optuna.samplers.RandomSampler(seed=seed)
    return optuna.samplers.TPESampler(seed=seed, n_startup_trials=space.sampler.n_startup_trials)


def pruner(space: Space) -> optuna.pruners.BasePruner:
    if space.pruner.name == "none":
        return optuna.pruners.NopPruner()
    return optuna.pruners.SuccessiveHalvingPruner(
        min_resource=space.first_rung, reduction_factor=space.pruner.reduction_factor
    )
