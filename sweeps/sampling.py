"""A space in Optuna's terms: distributions, and the sampler that proposes one trial."""

import copy
from dataclasses import dataclass
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.storages import InMemoryStorage
from optuna.trial import FrozenTrial

from sweeps import conditions
from sweeps.pruning import without_privilege
from sweeps.records import order
from sweeps.search import FloatRange, IntRange, Searched, Value, restored, stored
from sweeps.seeds import derived_seed
from sweeps.space import Space


@dataclass(frozen=True)
class Proposal:
    """What a sampler offers for one trial.

    Attributes:
        params: the searched settings that apply.
        state: what the sampler asks Optuna to keep with the trial, for those that come after.
    """

    params: dict[str, Value]
    state: dict[str, Any]


def distributions(space: Space) -> dict[str, BaseDistribution]:
    """What is searched, in Optuna's words."""
    return {field: _distribution(searched) for field, searched in space.search.items()}


def propose(space: Space, number: int, trials: list[FrozenTrial]) -> Proposal:
    """Settings for trial `number` from the current trials of the study.

    The sampler is made anew each time and sees the trials in order of their labels, in a study in memory:
    what it offers follows from the seed and from what was measured, not from interruptions or retries. A
    complete baseline that only its privilege carried over a rung is shown as the pruned trial it would be
    among today's trials; complete, it would rank above all pruned ones, and the sampler would imitate it.
    """
    study = optuna.create_study(
        direction=space.objective.direction, storage=InMemoryStorage(), sampler=_sampler(space, number)
    )
    if space.sampler.name == "qmc":  # a sequence that looks at no trial: go along it, to its number
        study.add_trial(_of_all_settings(space))
        for _ in range(number - len(space.enqueue) - 1):
            study.ask(distributions(space))
    elif space.sampler.name != "random":
        in_order = sorted(trials, key=lambda trial: order(trial.user_attrs["label"]))
        study.add_trials(_bare(without_privilege(trial, in_order, space)) for trial in in_order)
    asked = study.ask()
    params: dict[str, Value] = {}
    for field in conditions.in_order(space.search):
        if conditions.applies(space.search[field], params):
            params[field] = restored(_suggested(asked, field, distributions(space)[field]))
    return Proposal(params, study.get_trials(deepcopy=False)[-1].system_attrs)


def _suggested(trial: optuna.trial.Trial, field: str, among: BaseDistribution) -> Any:
    match among:
        case FloatDistribution():
            return trial.suggest_float(field, among.low, among.high, log=among.log, step=among.step)
        case IntDistribution():
            return trial.suggest_int(field, among.low, among.high, log=among.log, step=among.step)
        case CategoricalDistribution():
            return trial.suggest_categorical(field, among.choices)
    raise TypeError(among)


def _of_all_settings(space: Space) -> FrozenTrial:
    """A trial that has all that is searched: from it a sequence takes its dimensions, conditions or not."""
    first = {field: stored(searched.ends()[0]) for field, searched in space.search.items()}
    return optuna.trial.create_trial(value=0, params=first, distributions=distributions(space))


def _bare(trial: FrozenTrial) -> FrozenTrial:
    """With no attribute of ours but the label: no sampler reads them, and long trials are slow to copy."""
    bare = copy.copy(trial)
    bare.user_attrs = {name: trial.user_attrs[name] for name in ("label",) if name in trial.user_attrs}
    return bare


def _distribution(searched: Searched) -> BaseDistribution:
    if isinstance(searched, FloatRange):
        return FloatDistribution(searched.low, searched.high, log=searched.log, step=searched.step)
    if isinstance(searched, IntRange):
        return IntDistribution(searched.low, searched.high, log=searched.log, step=searched.step or 1)
    return CategoricalDistribution([stored(choice) for choice in searched.choices])


def _sampler(space: Space, number: int) -> optuna.samplers.BaseSampler:
    """The sampler that proposes trial `number`.

    qmc and cmaes go by the seed of the sweep: all points are of one sequence, of one search.
    """
    seed, own = space.sweep.seed, derived_seed(space.sweep.seed, "sampler", number)
    startup, alone = space.sampler.n_startup_trials, optuna.samplers.RandomSampler(seed=own)
    match space.sampler.name:
        case "tpe":
            return optuna.samplers.TPESampler(seed=own, n_startup_trials=startup)
        case "qmc":
            return optuna.samplers.QMCSampler(
                scramble=True, seed=seed, independent_sampler=alone, warn_independent_sampling=False
            )
        case "gp":
            return optuna.samplers.GPSampler(seed=own, n_startup_trials=startup, independent_sampler=alone)
        case "cmaes":
            return optuna.samplers.CmaEsSampler(
                seed=seed,
                n_startup_trials=startup,
                independent_sampler=alone,
                warn_independent_sampling=False,
                # Else those that pruners end by the dozen would teach it nothing.
                consider_pruned_trials=space.pruner.name in ("successive_halving", "hyperband"),
            )
    return alone
