"""What the study writes on Optuna's trials, read back as records.

label, baseline, prune    what the trial is
attempt, last_error       how often it was started, why the last attempt that died did
tick_1, tick_2, ...       each recorded tick: {metrics, ending: [outcome, reason] or null}
checkpoints               [[path, tick], ...], newest first, two at most
retry_of                  number of the failed Optuna trial this one took the place of

A tick is one write, so that what was measured and how the trial was to end are there together or not at all.
"""

import re
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from sweeps.folder import SweepFolder
from sweeps.records import Ending, TrialRecord


def record_of(trial: FrozenTrial, folder: SweepFolder) -> TrialRecord:
    """All that is known of a trial, with paths as they are now."""
    attrs = trial.user_attrs
    return TrialRecord(
        label=attrs["label"],
        params=trial.params,
        baseline=attrs.get("baseline", False),
        attempt=attrs.get("attempt", 0),
        ending=_ending(trial),
        last_error=attrs.get("last_error", ""),
        ticks={tick: value["metrics"] for tick, value in ticks_of(trial).items()},
        checkpoints=[folder.path / path for path, _ in attrs.get("checkpoints", [])],
    )


def ticks_of(trial: FrozenTrial) -> dict[int, dict[str, Any]]:
    """What was written of each recorded tick, in order."""
    found = {int(key[5:]): value for key, value in trial.user_attrs.items() if re.fullmatch(r"tick_\d+", key)}
    return dict(sorted(found.items()))


def answer_of(trial: FrozenTrial, tick: int) -> Ending | None:
    """How the trial was to end by the report of `tick`; None: it was to go on, or there is no such tick."""
    ending = ticks_of(trial).get(tick, {}).get("ending")
    return Ending(*ending) if ending else None


def _ending(trial: FrozenTrial) -> Ending | None:
    if trial.state == TrialState.FAIL:
        return Ending("failed", trial.user_attrs.get("last_error", ""))
    return answer_of(trial, max(ticks_of(trial), default=0)) if trial.state.is_finished() else None
