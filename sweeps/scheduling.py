"""Ray Tune asks, the study answers: a Searcher and a TrialScheduler that only pass things on.

Tune is never told to retry: a trial that fails goes back to the study, which hands it out again, from its
last checkpoint, as the next free worker asks. That is the same path for every kind of failure, and the one
`--resume` takes.
"""

import logging
from pathlib import Path
from typing import Any

from ray import cloudpickle
from ray.tune.experiment import Trial
from ray.tune.schedulers import FIFOScheduler, TrialScheduler
from ray.tune.search import Searcher

from sweeps import disk
from sweeps.interrupt import Interrupted
from sweeps.records import Ending, TrialFailed, WorkerFull
from sweeps.study import SweepStudy

log = logging.getLogger(__name__)

DIED_IDLE = "the worker had died while it waited for a trial"


class StudySearcher(Searcher):
    """Hands out the study's assignments and tells it how they ended."""

    def __init__(self, study: SweepStudy) -> None:
        super().__init__(metric=None, mode=None)
        self._study = study
        self._labels: dict[str, str] = {}
        self.errors: dict[str, str] = {}
        """Why the attempt of a Ray trial id died, noted by the scheduler, which is told first."""

    def suggest(self, trial_id: str) -> Any:
        """Settings for one Ray trial; None while others may still come back; FINISHED at the end."""
        assignment = self._study.ask()
        if assignment is None:
            return None if self._study.live else Searcher.FINISHED
        self._labels[trial_id] = assignment.label
        return {"assignment": assignment}

    def on_trial_complete(self, trial_id: str, result: dict | None = None, error: bool = False) -> None:
        """The attempt is over, its last checkpoint saved."""
        label = self._labels.pop(trial_id)
        if error:
            reason = self.errors.pop(trial_id, "the worker could not be started")
            free = (WorkerFull.__name__, DIED_IDLE)
            self._study.fail(label, reason=reason, charged=not reason.startswith(free))
        else:
            self._study.end(label)

    # Tune saves searchers beside its own state, which is never read back: the study is the record.
    def save(self, checkpoint_path: str) -> None: ...

    def restore(self, checkpoint_path: str) -> None: ...

    def __getstate__(self) -> dict[str, Any]:
        return {}


class StudyScheduler(FIFOScheduler):
    """Reports each tick to the study and stops the trial when the study says how it ends."""

    def __init__(self, study: SweepStudy, searcher: StudySearcher) -> None:
        super().__init__()
        self._study, self._searcher = study, searcher

    def on_trial_result(self, tune_controller: Any, trial: Trial, result: dict[str, Any]) -> str:
        for notice in result["notices"]:
            log.warning("%s: %s", result["label"], notice)
        said = Ending(result["outcome"], result["reason"]) if result["outcome"] else None
        ending = self._study.report(
            result["label"],
            tick=result["tick"],
            metrics={
                key.removeprefix("metrics/"): result[key] for key in result if key.startswith("metrics/")
            },
            ending=said,
        )
        return TrialScheduler.STOP if ending else TrialScheduler.CONTINUE

    def on_trial_error(self, tune_controller: Any, trial: Trial) -> None:
        error = _load(trial.pickled_error_file)
        if disk.is_full(error):
            raise Interrupted(disk.WORDS)
        # A worker that dies between two trials is found dead by the next, which has not begun.
        idle = trial in getattr(tune_controller, "_resetting_trials", ())
        self._searcher.errors[trial.trial_id] = DIED_IDLE if idle else describe(error)

    def __getstate__(self) -> dict[str, Any]:
        return {}


def _load(pickled_error: str | None) -> BaseException | None:
    """What ended an attempt, from the file in which Ray keeps it."""
    return cloudpickle.loads(Path(pickled_error).read_bytes()) if pickled_error else None


def describe(error: BaseException | None) -> str:
    """One line for a person about what ended an attempt."""
    if error is None:
        return "the worker could not be started"
    cause = getattr(error, "cause", None)
    if cause is not None:
        return str(cause) if isinstance(cause, TrialFailed) else f"{type(cause).__name__}: {cause}"
    name = type(error).__name__
    words = {
        "OutOfMemoryError": "the worker was ended because memory ran out",
        "EndedForMemory": "the worker was ended because memory ran out",
        "ActorDiedError": "the worker process died (killed, or it crashed)",
    }
    return words.get(name, " ".join(f"{name}: {error}".split())[:500])
