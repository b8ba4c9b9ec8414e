"""The record of a sweep: which trials exist, what they were given, what they scored, how they ended.

Everything is kept in one Optuna study. A trial is known by its label (t001, t002, ...) for life, however
many attempts it takes; the Optuna trials behind a label are this module's business. Only the driver
calls it, from one thread.

A tick counts as recorded once its `tick_n` attribute is written, which is the last write of a report. What
comes before it may be repeated after a crash.
"""

import logging
import math
import shutil
from dataclasses import replace
from pathlib import Path

import optuna
from optuna.trial import FrozenTrial, TrialState

from sweeps.attributes import ending_of, record_of, ticks_of
from sweeps.folder import SweepFolder
from sweeps.records import Assignment, Ending, Metrics, TrialRecord
from sweeps.sampling import derived_seed, distribution, pruner, sampler
from sweeps.space import Space
from sweeps.storage import open_storage
from wgangp.config import TrainConfig

log = logging.getLogger(__name__)
optuna.logging.set_verbosity(optuna.logging.WARNING)


class SweepStudy:
    """The study of one sweep, opened by the process that holds the sweep's lock."""

    def __init__(
        self, folder: SweepFolder, space: Space, *, sweep_id: str, trials: int | None = None
    ) -> None:
        """Open the study, making it if it is not there. `trials` extends the sweep to that many in all."""
        self.folder, self.space = folder, space
        self._distributions = {name: distribution(searched) for name, searched in space.search.items()}
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
        attrs = self._study.user_attrs
        wanted = trials or attrs.get("trials", space.sweep.trials)
        if wanted != attrs.get("trials"):
            self._study.set_user_attr("trials", wanted)
        self.trials_wanted = max(wanted, len(self._current()))
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
        trial = self._live[label]
        record = self.record(label)
        if tick <= record.tick:
            return ending_of(trial.user_attrs) if tick == record.tick else None
        finite = {name: value for name, value in metrics.items() if math.isfinite(value)}
        best = min(record.best_fid, finite.get("fid", math.inf))
        if math.isfinite(best):
            trial.report(best, tick)
        if ending is None and math.isfinite(best) and trial.should_prune() and self._may_prune(trial):
            factor = self.space.pruner.reduction_factor
            ending = Ending("pruned", f"not among the best 1/{factor} at tick {tick}")
        if ending is not None:
            trial.set_user_attr("ending", [ending.outcome, ending.reason, tick])
        trial.set_user_attr(f"tick_{tick}", finite)
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
        """Tell Optuna how the trial ended, by the ending its last report was answered with."""
        trial = self._live.pop(label)
        ending = ending_of(trial.user_attrs)
        assert ending is not None, f"{label} stopped without an ending"
        self._tell(trial, ending)
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
        trial.set_user_attr("ending", ["failed", reason, self.record(label).tick])
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

    def _unfinished(self) -> list[str]:
        """Labels a start has to take up; a trial whose ending was recorded and only not told is told now."""
        labels = []
        for trial in self._current():
            record = record_of(trial, self.folder)
            if trial.state == TrialState.FAIL:
                labels.append(record.label)
            elif trial.state == TrialState.RUNNING:
                ending = ending_of(trial.user_attrs)
                if ending and trial.user_attrs.get("checkpoints", [[None, 0]])[0][1] == record.tick:
                    self._tell(self._reattached(trial), ending)
                else:
                    labels.append(record.label)
        return sorted(labels, key=lambda label: int(label[1:]))

    def _attach(self, label: str) -> optuna.trial.Trial:
        trial = self._frozen(label)
        half_recorded = set(trial.intermediate_values) - set(ticks_of(trial.user_attrs))
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
        recorded = ticks_of(old.user_attrs)
        attrs = {key: value for key, value in old.user_attrs.items() if key != "ending"}
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
                user_attrs=attrs | {"retry_of": old.number},
                system_attrs=system,
            )
        )

    def _new(self, label: str) -> optuna.trial.Trial:
        number = int(label[1:])
        if number <= len(self.space.enqueue):
            baseline = self.space.enqueue[number - 1]
            attrs = {"label": label, "baseline": True, "prune": baseline.prune}
            self._study.add_trial(
                optuna.trial.create_trial(
                    state=TrialState.RUNNING,
                    params=baseline.params,
                    distributions=self._distributions,
                    user_attrs=attrs,
                )
            )
            return self._reattached(self._frozen(label))
        self._study.sampler = sampler(self.space, number)
        try:
            trial = self._study.ask(self._distributions)
        finally:
            self._study.sampler = optuna.samplers.RandomSampler()
        trial.set_user_attr("label", label)
        return trial

    def _tell(self, trial: optuna.trial.Trial, ending: Ending) -> None:
        if ending.outcome == "complete":
            best = self.record(trial.user_attrs["label"]).best_fid
            self._study.tell(trial, best)
        elif ending.outcome == "failed":
            self._study.tell(trial, state=TrialState.FAIL)
        else:
            if ending.outcome == "diverged":
                # Optuna ranks pruned trials by how far they came; an infeasible one ranks below them all.
                trial.set_constraint("diverged", 1.0)
            self._study.tell(trial, state=TrialState.PRUNED)

    def _may_prune(self, trial: optuna.trial.Trial) -> bool:
        return not trial.user_attrs.get("baseline") or bool(trial.user_attrs.get("prune"))
