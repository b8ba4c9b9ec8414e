"""What the study writes on Optuna's trials, read back as records.

label, baseline, prune    what the trial is
attempt, last_error       how often it was started, why the last attempt that died did
tick_1, tick_2, ...       the metrics of each recorded tick
ending                    [outcome, reason, tick]
checkpoints               [[path, tick], ...], newest first, two at most
retry_of                  number of the failed Optuna trial this one took the place of
"""

import re
from typing import Any

from optuna.trial import FrozenTrial

from sweeps.folder import SweepFolder
from sweeps.records import Ending, Metrics, TrialRecord


def record_of(trial: FrozenTrial, folder: SweepFolder) -> TrialRecord:
    """All that is known of a trial; paths in it are relative to the sweep's folder."""
    attrs = trial.user_attrs
    return TrialRecord(
        label=attrs["label"],
        params=trial.params,
        baseline=attrs.get("baseline", False),
        attempt=attrs.get("attempt", 0),
        ending=ending_of(attrs),
        last_error=attrs.get("last_error", ""),
        ticks=ticks_of(attrs),
        checkpoints=[folder.path / path for path, _ in attrs.get("checkpoints", [])],
    )


def ending_of(attrs: dict[str, Any]) -> Ending | None:
    """The ending, once it counts: a report writes it before its tick."""
    outcome, reason, tick = attrs.get("ending", ("", "", None))
    recorded = outcome == "failed" or f"tick_{tick}" in attrs
    return Ending(outcome, reason) if outcome and recorded else None


def ticks_of(attrs: dict[str, Any]) -> dict[int, Metrics]:
    """The metrics of each recorded tick."""
    return {int(key[5:]): value for key, value in attrs.items() if re.fullmatch(r"tick_\d+", key)}
