"""Optuna's trials behind the labels: made, taken up again, copied, told.

Optuna changes no trial that has ended. So a failed one is continued by a running copy that takes its place,
and hides it; an interrupted one is simply taken up again.
"""

from typing import Any

import optuna
from optuna.trial import FrozenTrial, TrialState

from sweeps import pruning
from sweeps.attributes import ticks_of
from sweeps.finalists import NextRun
from sweeps.records import Ending, order
from sweeps.sampling import distributions, propose
from sweeps.search import stored
from sweeps.seeds import derived_seed
from sweeps.space import Space


def add_new(study: optuna.Study, space: Space, label: str) -> None:
    """Make the trial of a new label with all that belongs to it in one write."""
    number, _ = order(label)
    attrs: dict[str, Any] = {"label": label}
    state: dict[str, Any] = {}
    if number <= len(space.enqueue):
        baseline = space.enqueue[number - 1]
        params = baseline.params
        attrs |= {"baseline": True, "prune": baseline.prune}
    else:
        known = study.get_trials(deepcopy=False)
        proposal = propose(space, number, [trial for trial in known if not is_finalist(trial)])
        params, state = proposal.params, proposal.state
    _add(study, space, params, attrs, state)


def add_finalist(study: optuna.Study, space: Space, run: NextRun) -> None:
    """Make a finalist's run. Neither sampler nor pruner takes note of it: it has no value at any rung."""
    _, seed = order(run.label)
    attrs = {"label": run.label, "finalist_seed": derived_seed(space.sweep.seed, "finalist", seed)}
    _add(study, space, run.params, attrs | {"finalist_runs": run.of})


def is_finalist(trial: FrozenTrial) -> bool:
    return "finalist_seed" in trial.user_attrs


def _add(
    study: optuna.Study,
    space: Space,
    params: dict[str, Any],
    attrs: dict[str, Any],
    state: dict[str, Any] | None = None,
) -> None:
    searched = distributions(space)
    study.add_trial(
        optuna.trial.create_trial(
            state=TrialState.RUNNING,
            params={field: stored(value) for field, value in params.items()},
            distributions={field: searched[field] for field in params},
            user_attrs=attrs,
            system_attrs=state,
        )
    )


def is_half_recorded(trial: FrozenTrial) -> bool:
    """Whether the driver died within a report: there is a value, or a rung, of a tick that is not there."""
    return bool(set(trial.intermediate_values) - set(ticks_of(trial)))


def add_copy(study: optuna.Study, space: Space, old: FrozenTrial) -> None:
    """Make a running copy of `old` with what was recorded in full; `old` is ended and no longer seen."""
    if old.state == TrialState.RUNNING:  # first, or a death in between would leave it running for good
        study.tell(take_up(study, old), state=TrialState.FAIL)
    recorded = ticks_of(old)
    rungs = pruning.rungs(space, old.user_attrs["label"])
    not_recorded = {f"completed_rung_{index}" for index, rung in enumerate(rungs) if rung not in recorded}
    study.add_trial(
        optuna.trial.create_trial(
            state=TrialState.RUNNING,
            params=old.params,
            distributions=old.distributions,
            intermediate_values={t: value for t, value in old.intermediate_values.items() if t in recorded},
            user_attrs=old.user_attrs | {"retry_of": old.number},
            system_attrs={key: value for key, value in old.system_attrs.items() if key not in not_recorded},
        )
    )


def take_up(study: optuna.Study, trial: FrozenTrial) -> optuna.trial.Trial:
    """A running trial, to be reported to and told, in whichever process it was made."""
    return optuna.trial.Trial(study, trial._trial_id)


def tell(study: optuna.Study, frozen: FrozenTrial, ending: Ending, *, score: float) -> None:
    """End a trial in Optuna's terms."""
    trial = take_up(study, frozen)
    match ending.outcome:
        case "complete":
            study.tell(trial, score)
        case "failed":
            study.tell(trial, state=TrialState.FAIL)
        case "diverged":
            # Optuna ranks pruned trials by how far they came; an infeasible one ranks below them all.
            trial.set_constraint("diverged", 1.0)
            study.tell(trial, state=TrialState.PRUNED)
        case _:
            study.tell(trial, state=TrialState.PRUNED)
