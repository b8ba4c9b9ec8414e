"""The record of a sweep: which trials exist, what they were given, what they scored, how they ended.

Everything is kept in one Optuna study. A trial is known by its label (t001, t002, ...) for life, however
many attempts it takes; the Optuna trials behind a label are this module's business. Only the driver
calls it, from one thread.

A tick is recorded by one write, the last of its report; what comes before it may be repeated after a crash.
"""

import logging
import math
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import optuna
from optuna.trial import FrozenTrial, TrialState

from sweeps.attributes import answer_of, record_of, ticks_of
from sweeps.folder import SweepFolder
from sweeps.records import Assignment, Ending, Metrics, TrialRecord
from sweeps.sampling import derived_seed, distributions, propose, pruner
from sweeps.space import Space
from sweeps.storage import open_storage
from wgangp.config import TrainConfig
from wgangp.errors import UserError

log = logging.getLogger(__name__)
optuna.logging.set_verbosity(optuna.logging.WARNING)


class SweepStudy:
    """The study of one sweep, opened by the process that holds the sweep's lock."""

    def __init__(
        self, folder: SweepFolder, space: Space, *, sweep_id: str, trials: int | None = None
    ) -> None:
        """Open the study, making it if it is not there. `trials` extends the sweep to that many in all."""
        self.folder, self.space = folder, space
        self._study = optuna.create_study(
            storage=open_storage(folder.journal, url=space.study.storage),
            study_name=sweep_id,
            direction=space.objective.direction,
            load_if_exists=True,
            sampler=optuna.samplers.RandomSampler(),
            pruner=pruner(space),
        )
        self._live: dict[str, optuna.trial.Trial] = {}
        self._failures: dict[str, int] = {}
        self.trials_wanted = self._extended(trials)
        self._backlog = self._unfinished()

    # What to run ------------------------------------------------------------------------------------

    def ask(self) -> Assignment | None:
        """The next attempt to run: interrupted and failed trials first, then new ones. None: nothing now."""
        if self._backlog:
            label = self._backlog.pop(0)
            trial = self._attach(label)
        elif len(self._current()) < self.trials_wanted:
            label = f"t{len(self._current()) + 1:03d}"
            trial = self._new(label)
        else:
            return None
        self._live[label] = trial
        attempt = trial.user_attrs.get("attempt", 0) + 1
        trial.set_user_attr("attempt", attempt)
        record = self.record(label)
        return Assignment(
            label=label,
            attempt=attempt,
            config=self.config(record),
            params=record.params,
            baseline=record.baseline,
            checkpoints=record.checkpoints,
            core_seconds={tick: metrics["core_seconds"] for tick, metrics in record.ticks.items()},
        )

    @property
    def live(self) -> list[str]:
        """Labels whose attempts are running now."""
        return list(self._live)

    def config(self, record: TrialRecord) -> TrainConfig:
        """The complete settings of a trial; initial weights follow from the sweep's seed and the label."""
        return self.space.config(
            record.params, init_seed=derived_seed(self.space.sweep.seed, "init", record.label)
        )

    # What happened ----------------------------------------------------------------------------------

    def report(self, label: str, *, tick: int, metrics: Metrics, ending: Ending | None) -> Ending | None:
        """Record a tick; answer how the trial is to end, or None to go on.

        `ending` is what the trainer says (complete, diverged). A tick that was recorded before is not
        recorded again: the answer is the one given then.
        """
        trial, frozen = self._live[label], self._frozen(label)
        record = record_of(frozen, self.folder)
        if tick <= record.tick:
            return answer_of(frozen, tick)
        finite = {name: value for name, value in metrics.items() if math.isfinite(value)}
        best = min(record.best_fid, finite.get("fid", math.inf))
        if math.isfinite(best):
            trial.report(best, tick)
            # Asked for baselines too: their values on the rungs are what others are measured against.
            if ending is None and trial.should_prune() and self._may_prune(trial):
                factor = self.space.pruner.reduction_factor
                ending = Ending("pruned", f"not among the best 1/{factor} at tick {tick}")
        answer = [ending.outcome, ending.reason] if ending else None
        trial.set_user_attr(f"tick_{tick}", {"metrics": finite, "ending": answer})
        return ending

    def add_checkpoint(self, label: str, *, path: Path, tick: int) -> None:
        """Record a checkpoint and delete what is no longer needed: the newest two stay."""
        trial = self._live[label]
        relative = str(path.relative_to(self.folder.path))
        before = [entry for entry in trial.user_attrs.get("checkpoints", []) if entry[0] != relative]
        trial.set_user_attr("checkpoints", [[relative, tick], *before[:1]])
        for dropped, _ in before[1:]:
            shutil.rmtree(self.folder.path / dropped, ignore_errors=True)

    def drop_unrecorded_checkpoints(self) -> None:
        """Delete what was being saved as an attempt died; nothing may be running."""
        recorded = {path for record in self.records() for path in record.checkpoints}
        for path in self.folder.trials.glob("*/t*/checkpoint_*"):
            if path not in recorded:
                shutil.rmtree(path, ignore_errors=True)

    def end(self, label: str) -> Ending:
        """Tell Optuna how the trial ended, by what its last report was answered with."""
        ending = self._tell(self._frozen(label))
        del self._live[label]
        return ending

    def fail(self, label: str, *, reason: str, charged: bool = True) -> Ending | None:
        """An attempt died. None: it will be handed out again; else the trial has failed for this start.

        `charged`: whether it counts against `retries`.
        """
        self._failures[label] = self._failures.get(label, 0) + charged
        trial = self._live.pop(label)
        log.warning("%s: attempt %d: %s", label, trial.user_attrs["attempt"], reason)
        trial.set_user_attr("last_error", reason)
        if self._failures[label] <= self.space.sweep.retries:
            self._backlog.append(label)
            return None
        self._study.tell(trial, state=TrialState.FAIL)
        return Ending("failed", reason)

    # What is known ----------------------------------------------------------------------------------

    def record(self, label: str) -> TrialRecord:
        return record_of(self._frozen(label), self.folder)

    def records(self) -> list[TrialRecord]:
        """All trials in order of asking."""
        records = [record_of(trial, self.folder) for trial in self._current()]
        return sorted(records, key=lambda record: int(record.label[1:]))

    def final_records(self) -> list[TrialRecord]:
        """All trials as they stand when nothing runs any more: those without an ending are interrupted."""
        return [
            record if record.ending else replace(record, ending=Ending("interrupted"))
            for record in self.records()
        ]

    # Optuna's trials behind the labels --------------------------------------------------------------

    def _current(self) -> list[FrozenTrial]:
        return self._study.get_trials(deepcopy=False)

    def _frozen(self, label: str) -> FrozenTrial:
        return next(trial for trial in self._current() if trial.user_attrs["label"] == label)

    def _extended(self, trials: int | None) -> int:
        """How many trials are wanted in all; that only grows."""
        known = self._study.user_attrs.get("trials")
        before = known or self.space.sweep.trials
        trials = before if trials is None else trials
        if trials < before:
            raise UserError(f"--trials: must be at least the {before} trials of this sweep, got {trials}.")
        if trials != known:
            self._study.set_user_attr("trials", trials)
        return trials

    def _unfinished(self) -> list[str]:
        """Labels a start has to take up; those that lack nothing but the tell are told now."""
        labels = []
        for trial in self._current():
            if trial.state in (TrialState.RUNNING, TrialState.FAIL):
                label = trial.user_attrs["label"]
                newest = trial.user_attrs.get("checkpoints", [[None, 0]])[0][1]
                if newest == max(ticks_of(trial), default=0) and answer_of(trial, newest):
                    self._attach(label)
                    self._tell(self._frozen(label))
                else:
                    labels.append(label)
        return sorted(labels, key=lambda label: int(label[1:]))

    def _attach(self, label: str) -> optuna.trial.Trial:
        trial = self._frozen(label)
        half_recorded = set(trial.intermediate_values) - set(ticks_of(trial))
        if trial.state == TrialState.FAIL or half_recorded:
            self._clone(trial)
            if trial.state == TrialState.RUNNING:
                self._study.tell(self._reattached(trial), state=TrialState.FAIL)
            trial = self._frozen(label)
        return self._reattached(trial)

    def _reattached(self, trial: FrozenTrial) -> optuna.trial.Trial:
        return optuna.trial.Trial(self._study, trial._trial_id)

    def _clone(self, old: FrozenTrial) -> None:
        """A running copy of `old` with what was recorded in full; `old` is hidden from then on."""
        recorded = ticks_of(old)
        system = {
            f"completed_rung_{index}": old.system_attrs[f"completed_rung_{index}"]
            for index, rung in enumerate(self.space.rungs)
            if rung in recorded and f"completed_rung_{index}" in old.system_attrs
        }
        self._study.add_trial(
            optuna.trial.create_trial(
                state=TrialState.RUNNING,
                params=old.params,
                distributions=old.distributions,
                intermediate_values={
                    tick: v for tick, v in old.intermediate_values.items() if tick in recorded
                },
                user_attrs=old.user_attrs | {"retry_of": old.number},
                system_attrs=system,
            )
        )

    def _new(self, label: str) -> optuna.trial.Trial:
        """Make a trial with all that belongs to it in one write."""
        number = int(label[1:])
        attrs: dict[str, Any] = {"label": label}
        if number <= len(self.space.enqueue):
            baseline = self.space.enqueue[number - 1]
            params = baseline.params
            attrs |= {"baseline": True, "prune": baseline.prune}
        else:
            params = propose(self.space, number, self._current())
        self._study.add_trial(
            optuna.trial.create_trial(
                state=TrialState.RUNNING,
                params=params,
                distributions=distributions(self.space),
                user_attrs=attrs,
            )
        )
        return self._reattached(self._frozen(label))

    def _tell(self, frozen: FrozenTrial) -> Ending:
        record = record_of(frozen, self.folder)
        ending = answer_of(frozen, record.tick)
        assert ending is not None, f"{record.label} stopped without an ending"
        trial = self._reattached(frozen)
        if ending.outcome == "complete":
            self._study.tell(trial, record.best_fid)
        else:
            if ending.outcome == "diverged":
                # Optuna ranks pruned trials by how far they came; an infeasible one ranks below them all.
                trial.set_constraint("diverged", 1.0)
            self._study.tell(trial, state=TrialState.PRUNED)
        return ending

    def _may_prune(self, trial: optuna.trial.Trial) -> bool:
        return not trial.user_attrs.get("baseline") or bool(trial.user_attrs.get("prune"))
