"""What settings did, as interactive plots of optuna.visualization and as importances.

Importances and the plots over settings compare trials at equal budget: all that reached one tick, by their
best FID up to it, so that pruned trials count as much as complete ones.
"""

import math
from dataclasses import dataclass
from typing import Any

import optuna
from optuna.trial import FrozenTrial, TrialState

from sweeps.records import TrialRecord, trials_of
from sweeps.results import Results
from sweeps.sampling import distributions
from sweeps.search import stored

RATES = ("critic_lr", "generator_lr")


@dataclass(frozen=True)
class Plot:
    """A figure of plotly with its title, and what it shows in a sentence."""

    title: str
    shows: str
    figure: Any


@dataclass(frozen=True)
class Importances:
    """How much each setting mattered, as shares that add up to 1, the most important first.

    Attributes:
        shares: by setting.
        kimg: the budget at which trials were compared.
        trials: how many.
    """

    shares: dict[str, float]
    kimg: float
    trials: int


def importances(results: Results) -> Importances | None:
    """By PED-ANOVA, Optuna's own; None if fewer than `ENOUGH` trials reached any rung, or one is searched."""
    tick = results.milestone
    if not tick or len(results.space.search) < 2:
        return None
    study = _at_equal_budget(results, tick)
    shares = optuna.importance.get_param_importances(study)
    trials = len(results.scored_by(tick))
    return Importances(shares, tick * results.space.base.tick_kimg, trials)


def plots(results: Results) -> list[Plot]:
    """All there is to draw of a sweep; fewer while it has few trials."""
    visual = optuna.visualization
    whole = _whole(results)
    found = []
    if any(trial.intermediate_values for trial in whole.trials):
        curves = visual.plot_intermediate_values(whole)
        curves.update_layout(xaxis_title="tick", yaxis_title="best FID so far", yaxis_type="log")
        found.append(Plot("Curves", "the best FID so far of each trial, tick by tick", curves))
    if any(trial.state == TrialState.COMPLETE for trial in whole.trials):
        history = visual.plot_optimization_history(whole, target_name="best FID")
        history.update_layout(yaxis_type="log")
        found.append(Plot("History", "complete trials in the order they were asked for", history))
    if not results.milestone:
        return found
    study, at = _at_equal_budget(results, results.milestone), f"{_kimg(results):g} kimg"
    name = f"best FID at {at}"
    shares = importances(results)
    searched = list(shares.shares) if shares else list(results.space.search)
    pair = list(RATES) if set(RATES) <= set(searched) else searched[:2]
    found.append(
        Plot(
            "Parallel coordinates",
            f"a line for each trial, by its FID at {at}; drag along an axis to choose",
            visual.plot_parallel_coordinate(study, target_name=name),
        )
    )
    if shares:
        figure = visual.plot_param_importances(study, target_name=name)
        found.append(Plot("Importances", f"what mattered for the FID at {at}", figure))
    slices = visual.plot_slice(study, target_name=name)
    found.append(Plot("Slices", f"each setting alone against the FID at {at}", slices))
    if len(pair) == 2:
        contour = visual.plot_contour(study, params=pair, target_name=name)
        found.append(Plot("Contour", f"{' and '.join(pair)}: where the FID at {at} is low", contour))
        rank = visual.plot_rank(study, params=pair, target_name=name)
        found.append(Plot("Rank", f"the same by rank at {at}", rank))
    return found


def _kimg(results: Results) -> float:
    return results.milestone * results.space.base.tick_kimg


def _at_equal_budget(results: Results, tick: int) -> optuna.Study:
    """A study in memory in which every trial that reached `tick` is complete with its FID up to there."""
    study = optuna.create_study(direction=results.space.objective.direction)
    for record in results.scored_by(tick):
        study.add_trial(_trial(results, record, value=record.best_fid_within(tick=tick)))
    return study


def _whole(results: Results) -> optuna.Study:
    """A study in memory with all trials that were scored, and their best FID tick by tick."""
    study = optuna.create_study(direction=results.space.objective.direction)
    for record in trials_of(results.records):
        complete = record.ending is not None and record.ending.outcome == "complete"
        if not math.isfinite(record.best_fid):
            continue
        curve = {tick: record.best_fid_within(tick=tick) for tick in record.ticks}
        study.add_trial(
            _trial(
                results,
                record,
                value=record.best_fid if complete else None,
                curve={tick: fid for tick, fid in curve.items() if math.isfinite(fid)},
            )
        )
    return study


def _trial(
    results: Results, record: TrialRecord, *, value: float | None, curve: dict[int, float] | None = None
) -> FrozenTrial:
    searched = distributions(results.space)
    return optuna.trial.create_trial(
        state=TrialState.PRUNED if value is None else TrialState.COMPLETE,
        value=value,
        params={field: stored(setting) for field, setting in record.params.items()},
        distributions={field: searched[field] for field in record.params},
        intermediate_values=curve or {},
        user_attrs={"label": record.label},
    )
