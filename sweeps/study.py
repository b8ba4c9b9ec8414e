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

import optuna
from optuna.trial import FrozenTrial, TrialState

from sweeps import charter, finalists, lineage, pruning
from sweeps.attributes import answer_of, lacks_only_the_tell, record_of
from sweeps.folder import SweepFolder
from sweeps.records import Assignment, Ending, Metrics, TrialRecord, order, trials_of
from sweeps.seeds import derived_seed
from sweeps.space import Space
from sweeps.storage import open_storage
from wgangp.config import TrainConfig

log = logging.getLogger(__name__)


class SweepStudy:
    """The study of one sweep, opened by the process that holds the sweep's lock."""

    def __init__(
        self,
        folder: SweepFolder,
        space: Space,
        *,
        sweep_id: str,
        trials: int | None = None,
        under: dict[str, str] | None = None,
        scored_with: dict[str, str] | None = None,
    ) -> None:
        """Open the study, making it if it is not there.

        Args:
            folder: the sweep's, whose lock the caller holds.
            space: what it was started with.
            sweep_id: the study's name.
            trials: extends the sweep to that many in all.
            under: versions and commit of this start, recorded with every attempt it makes.
            scored_with: digests of data and features, which later starts are held to.

        Raises:
            UserError: it was scored with something else, or had more trials; nothing is changed.
        """
        self.folder, self.space = folder, space
        storage = open_storage(folder.journal, url=space.study.storage, mend=True)
        # Not by `load_if_exists`, which writes to the journal each time.
        if sweep_id not in optuna.get_all_study_names(storage):
            optuna.create_study(storage=storage, study_name=sweep_id, direction=space.objective.direction)
        sampler = optuna.samplers.RandomSampler()  # never asked: `sampling` proposes
        self._study = optuna.load_study(
            study_name=sweep_id, storage=storage, sampler=sampler, pruner=pruning.pruner(space)
        )
        charter.hold_to(self._study, scored_with or {}, sweep=folder.name)
        charter.note_space(self._study, space)
        self._live: dict[str, optuna.trial.Trial] = {}
        self._failures: dict[str, int] = {}
        self.trials_wanted = charter.trials_wanted(self._study, space, extended_to=trials)
        self._start, self.conditions_before = charter.begin(self._study, under or {})
        self._backlog = self._unfinished()

    # What to run ------------------------------------------------------------------------------------

    def ask(self) -> Assignment | None:
        """The next attempt to run: interrupted and failed trials first, then new ones. None: nothing now."""
        if self._backlog:
            label = self._backlog.pop(0)
        elif (asked := len(trials_of(self.records()))) < self.trials_wanted:
            label = f"t{asked + 1:03d}"
            lineage.add_new(self._study, self.space, label)
        elif run := finalists.next_run(self.records(), self.space.finalists):
            label = run.label
            lineage.add_finalist(self._study, self.space, run)
        else:
            return None
        trial = self._live[label] = self._take_up(label)
        trial.set_user_attr("attempts", [*trial.user_attrs.get("attempts", []), self._start])
        record = self.record(label)
        return Assignment(
            label=label,
            attempt=record.attempt,
            config=self.config(record),
            params=record.params,
            baseline=record.baseline,
            finalist_of=record.finalist_of,
            checkpoints=record.checkpoints,
            core_seconds={tick: metrics["core_seconds"] for tick, metrics in record.ticks.items()},
        )

    @property
    def live(self) -> list[str]:
        """Labels whose attempts are running now."""
        return list(self._live)

    def config(self, record: TrialRecord) -> TrainConfig:
        """The complete settings of a trial; initial weights follow from the sweep's seed and the label.

        Of a finalist's run data order and noise follow from its own seed, evaluation from the sweep's.
        """
        init_seed = derived_seed(self.space.sweep.seed, "init", record.label)
        config = self.space.config(record.params, init_seed=init_seed)
        if not record.finalist_of:
            return config
        seed = self._frozen(record.label).user_attrs["finalist_seed"]
        return config.model_copy(update={"seed": seed, "init_seed": init_seed})

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
        if math.isfinite(best) and not record.finalist_of:
            value = pruning.value_at_tick(self.space, fid=finite.get("fid", math.inf), best=best)
            if math.isfinite(value):
                trial.report(value, tick)
            # Asked for baselines too: their values on the rungs are what others are measured against.
            if ending is None and trial.should_prune() and self._may_prune(trial):
                ending = Ending("pruned", pruning.reason(self.space, tick=tick))
        answer = [ending.outcome, ending.reason] if ending else None
        trial.set_user_attr(f"tick_{tick}", {"metrics": finite, "ending": answer})
        return ending

    def add_checkpoint(self, label: str, *, path: Path, tick: int) -> None:
        """Record a checkpoint and delete what is no longer needed: the newest two stay."""
        trial = self._live[label]
        relative = str(path.relative_to(self.folder.path))
        known = [entry for entry in trial.user_attrs.get("checkpoints", []) if entry[0] != relative]
        # One of the same tick or later did not hold, or this tick would not have been trained again.
        before = [entry for entry in known if entry[1] < tick]
        trial.set_user_attr("checkpoints", [[relative, tick], *before[:1]])
        for dropped, _ in known:
            if dropped not in [kept for kept, _ in before[:1]]:
                shutil.rmtree(self.folder.path / dropped, ignore_errors=True)

    def drop_unrecorded_checkpoints(self) -> None:
        """Delete what was being saved as an attempt died; nothing may be running."""
        recorded = {path for record in self.records() for path in record.checkpoints}
        for path in self.folder.trials.glob("*/t*/checkpoint_*"):
            if path not in recorded:
                shutil.rmtree(path, ignore_errors=True)

    def end(self, label: str) -> Ending:
        """Tell Optuna how the trial ended, by what its last report was answered with."""
        ending = self._tell(label)
        del self._live[label]
        return ending

    def fail(self, label: str, *, reason: str, charged: bool = True) -> Ending | None:
        """An attempt died. None: it will be handed out again; else the trial has failed for this start.

        `charged`: whether it counts against `retries`.
        """
        frozen = self._frozen(label)
        if lacks_only_the_tell(frozen):  # it died when its work was done
            return self.end(label)
        self._failures[label] = self._failures.get(label, 0) + charged
        self._live.pop(label).set_user_attr("last_error", reason)
        attempt = len(frozen.user_attrs["attempts"])
        again = self._failures[label] <= self.space.sweep.retries
        what_next = "it will be tried again" if again else "it has failed"
        log.warning("%s: attempt %d ended: %s; %s", label, attempt, reason, what_next)
        if again:
            self._backlog.append(label)
            return None
        lineage.tell(self._study, frozen, Ending("failed"), score=math.inf)
        return Ending("failed", reason)

    # What is known ----------------------------------------------------------------------------------

    def record(self, label: str) -> TrialRecord:
        return record_of(self._frozen(label), self.folder)

    def records(self) -> list[TrialRecord]:
        """All trials in order of asking."""
        return sorted(
            (record_of(trial, self.folder) for trial in self._current()),
            key=lambda record: order(record.label),
        )

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
        """Labels a start has to take up; those that lack nothing but the tell are told now."""
        labels = []
        for trial in self._current():
            if trial.state in (TrialState.RUNNING, TrialState.FAIL):
                label = trial.user_attrs["label"]
                if lacks_only_the_tell(trial):
                    self._take_up(label)
                    self._tell(label)
                else:
                    labels.append(label)
        return sorted(labels, key=order)

    def _take_up(self, label: str) -> optuna.trial.Trial:
        trial = self._frozen(label)
        if trial.state == TrialState.FAIL or lineage.is_half_recorded(trial):
            lineage.add_copy(self._study, self.space, trial)
        return lineage.take_up(self._study, self._frozen(label))

    def _tell(self, label: str) -> Ending:
        frozen = self._frozen(label)
        record = record_of(frozen, self.folder)
        ending = answer_of(frozen, record.tick)
        assert ending is not None, f"{label} stopped without an ending"
        lineage.tell(self._study, frozen, ending, score=record.best_fid)
        return ending

    def _may_prune(self, trial: optuna.trial.Trial) -> bool:
        return not trial.user_attrs.get("baseline") or bool(trial.user_attrs.get("prune"))
