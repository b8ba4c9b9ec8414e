"""What is recorded of a sweep, and when: a Tune callback on the driver that writes the outbox."""

import math
from typing import Any

from ray.tune import Callback

from sweeps import shared_view, wall
from sweeps.finalists import leader
from sweeps.outbox import Outbox
from sweeps.records import Ending, TrialRecord, order, trials_of, verdict
from sweeps.study import SweepStudy

STATUS = {"failed": "FAILED", "interrupted": "KILLED"}
"""Outcome -> MLflow's status; every other outcome is FINISHED."""


class Recorder(Callback):
    """Appends a line for each start, tick and end of a trial, and for the sweep's best so far."""

    def __init__(self, study: SweepStudy, outbox: Outbox, *, under: str, tags: dict[str, Any]) -> None:
        """In words the versions and commit this start's attempts are made under; the tags of every trial."""
        self._study, self._outbox = study, outbox
        self._under, self._tags = under, tags
        self._hung = wall.ticks(study.space)
        # What has ended with an answer does not change any more, so counting on is enough.
        self._answered = 0
        self._best: TrialRecord | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {}

    def begin_sweep(self, *, tags: dict[str, Any], files: list[str]) -> None:
        """A start of the sweep; trials that ended while nobody could write it down are caught up with."""
        view = shared_view.tags(self._study.space, sweep=self._study.folder.first_name)
        self._outbox.append(tags=tags, files=files, status="RUNNING", experiment_tags=view)
        records = self._study.records()
        self._count(records)
        for record in records:
            if record.ending and self._outbox.outcomes.get(record.label) != record.ending.outcome:
                self._end(record, record.ending)

    def end_sweep(
        self,
        outcome: str,
        *,
        tags: dict[str, Any],
        best: TrialRecord | None,
        files: list[str],
        model: dict[str, Any] | None = None,
    ) -> None:
        """The end of a start: complete, failed or interrupted. Live trials are interrupted with it.

        Args:
            outcome: in a word.
            tags: of the sweep's run.
            best: the winner, which finalists may have made another than the best so far.
            files: in the sweep's folder, to lie with its run.
            model: the winner's, to be registered; None or empty: there is none.
        """
        for record in self._study.records():
            if record.ending is None:
                self._end(record, Ending("interrupted"))
        tags = tags | (_best(best) if best else {})
        registered: dict[str, Any] = {"model": model} if model else {}
        self._outbox.append(tags=tags, files=files, status=STATUS.get(outcome, "FINISHED"), **registered)

    def on_trial_start(self, iteration: int, trials: list, trial: Any, **info: Any) -> None:
        assignment = trial.config["assignment"]
        config = assignment.config.model_dump()
        attempt = assignment.attempt
        tags = self._tags | {
            "attempt": attempt,
            f"attempt_{attempt}": self._under,
            "baseline": assignment.baseline,
        }
        if assignment.finalist_of:
            tags["finalist_of"] = assignment.finalist_of
        self._outbox.append(trial=assignment.label, params=config, tags=tags, status="RUNNING")

    def on_trial_result(self, iteration: int, trials: list, trial: Any, result: dict, **info: Any) -> None:
        label, tick, samples = result["label"], result["tick"], result.pop("samples")
        if tick in self._hung and not trial.config["assignment"].finalist_of:
            wall.keep(self._study.folder, label, tick, samples)
        self._outbox.append(
            trial=label,
            tick=tick,
            time=result["measured_ms"],
            step=result["metrics"]["images_seen"],
            mark=self._mark(trial, tick),
            metrics={name: value for name, value in result["metrics"].items() if math.isfinite(value)},
            samples=samples,
        )

    def _mark(self, trial: Any, tick: int) -> int:
        """In images: a tick ends with a whole generator step, but pictures are compared at one step."""
        return round(1000 * tick * trial.config["assignment"].config.tick_kimg)

    def on_trial_complete(self, iteration: int, trials: list, trial: Any, **info: Any) -> None:
        self._ended(trial)

    def on_trial_error(self, iteration: int, trials: list, trial: Any, **info: Any) -> None:
        self._ended(trial)

    def _ended(self, trial: Any) -> None:
        record = self._study.record(trial.config["assignment"].label)
        if record.ending:
            self._count([record])
            self._end(record, record.ending)
        else:
            reason = f"attempt {record.attempt} failed, to be tried again: {record.last_error}"
            self._outbox.append(trial=record.label, tags={"reason": reason})

    def _end(self, record: TrialRecord, ending: Ending) -> None:
        # The sweep's line goes first: a trial whose own line is there is not looked at again.
        if self._best and ending.outcome not in STATUS and not record.finalist_of:
            self._outbox.append(
                tick=self._answered,
                step=self._answered,
                metrics={"best_fid": self._best.best_fid},
                tags=_best(self._best),
            )
        found = verdict(record)
        tags = {"outcome": ending.outcome, "reason": ending.reason}
        if found.word != "-":
            tags |= {"verdict": found.word, "evidence": found.evidence}
        self._outbox.append(trial=record.label, tags=tags, status=STATUS.get(ending.outcome, "FINISHED"))

    def _count(self, records: list[TrialRecord]) -> None:
        """Take note of trials that ended; of equals the one asked first is the best."""
        records = trials_of(records)
        self._answered += sum(1 for one in records if one.ending and one.ending.outcome not in STATUS)
        known = [self._best] if self._best else []
        self._best = leader(sorted([*known, *records], key=lambda one: order(one.label)))


def _best(record: TrialRecord) -> dict[str, Any]:
    """The tags that name the best trial and its settings."""
    settings = {f"best_{name}": value for name, value in record.params.items()}
    return {"best_trial": record.label} | settings
