"""What the study writes on Optuna's trials, read back as records.

label, baseline, prune    what the trial is
finalist_seed      of a finalist's run: its seed, which is not the sweep's
finalist_runs      and how many runs of finalists there are to be in all
attempts                  for each attempt, which of the study's `starts` it was made under
last_error                why the last attempt that died did
tick_1, tick_2, ...       each recorded tick: {metrics, ending: [outcome, reason] or null}
checkpoints               [[path, tick], ...], newest first, two at most
retry_of                  number of the failed Optuna trial this one took the place of

A tick is one write, so that what was measured and how the trial was to end are there together or not at all.
"""

from typing import Any

from optuna.trial import FrozenTrial, TrialState

from sweeps.folder import SweepFolder
from sweeps.records import Ending, TrialRecord
from sweeps.search import restored


def record_of(trial: FrozenTrial, folder: SweepFolder) -> TrialRecord:
    """All that is known of a trial, with paths as they are now."""
    attrs, ticks = trial.user_attrs, ticks_of(trial)
    return TrialRecord(
        label=attrs["label"],
        params={field: restored(value) for field, value in trial.params.items()},
        baseline=attrs.get("baseline", False),
        attempt=len(attrs.get("attempts", [])),
        ending=_ending(trial, ticks),
        last_error=attrs.get("last_error", ""),
        ticks={tick: value["metrics"] for tick, value in ticks.items()},
        checkpoints=[folder.path / path for path, _ in attrs.get("checkpoints", [])],
        checkpoint_tick=_newest(attrs),
        finalist_runs=attrs.get("finalist_runs", 0),
    )


def ticks_of(trial: FrozenTrial) -> dict[int, dict[str, Any]]:
    """What was written of each recorded tick, in order."""
    found = {int(key[5:]): value for key, value in trial.user_attrs.items() if key.startswith("tick_")}
    return dict(sorted(found.items()))


def answer_of(trial: FrozenTrial, tick: int) -> Ending | None:
    """How the trial was to end by the report of `tick`; None: it was to go on, or there is no such tick."""
    return _answer(ticks_of(trial), tick)


def lacks_only_the_tell(trial: FrozenTrial) -> bool:
    """Whether the trial's last tick was answered with an ending and its checkpoint is there."""
    ticks = ticks_of(trial)
    tick = max(ticks, default=0)
    return _newest(trial.user_attrs) == tick and _answer(ticks, tick) is not None


def _newest(attrs: dict[str, Any]) -> int:
    """The tick of the newest checkpoint, 0 without one."""
    return attrs.get("checkpoints", [[None, 0]])[0][1]


def _ending(trial: FrozenTrial, ticks: dict[int, dict[str, Any]]) -> Ending | None:
    if trial.state == TrialState.FAIL:
        return Ending("failed", trial.user_attrs.get("last_error", ""))
    return _answer(ticks, max(ticks, default=0)) if trial.state.is_finished() else None


def _answer(ticks: dict[int, dict[str, Any]], tick: int) -> Ending | None:
    ending = ticks.get(tick, {}).get("ending")
    return Ending(*ending) if ending else None
