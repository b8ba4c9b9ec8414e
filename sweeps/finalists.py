"""The best settings, trained again from other seeds: whose turn it is, what came out, who wins.

A trial's best FID is the luck of its initial weights too, and the lowest of many is luck above all. So the
best settings are trained again, the same seeds for each, and compared by their mean.
"""

import math
import statistics
from dataclasses import dataclass

from sweeps.records import TrialRecord, complete, trials_of
from sweeps.search import Value
from sweeps.sections import Finalists


@dataclass(frozen=True)
class NextRun:
    """A finalist's run that has not been asked for."""

    label: str
    params: dict[str, Value]
    of: int
    """Runs of finalists in all."""


@dataclass(frozen=True)
class Finalist:
    """A setting and its runs from other seeds."""

    trial: TrialRecord
    runs: list[TrialRecord]

    @property
    def fids(self) -> list[float]:
        """The best FID of each run. The trial's own is left out: it was chosen for being low."""
        return [run.best_fid for run in self.runs]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.fids)

    @property
    def spread(self) -> float:
        """Standard deviation over the seeds; NaN of a single run."""
        return statistics.stdev(self.fids) if len(self.runs) > 1 else math.nan


def finalists(records: list[TrialRecord]) -> list[Finalist]:
    """By mean, the best first. Empty until all runs there are to be have ended with an answer."""
    runs: dict[str, list[TrialRecord]] = {}
    for record in records:
        if record.finalist_of:
            runs.setdefault(record.finalist_of, []).append(record)
    every = [run for of_one in runs.values() for run in of_one]
    ended = all(run.ending and run.ending.outcome in ("complete", "diverged") for run in every)
    asked = len(every) >= max((run.finalist_runs for run in every), default=0)
    if not ended or not asked or len({len(of_one) for of_one in runs.values()}) != 1:
        return []
    found = [Finalist(record, runs[record.label]) for record in records if record.label in runs]
    return sorted(found, key=lambda finalist: finalist.mean)


def leader(records: list[TrialRecord]) -> TrialRecord | None:
    """The complete trial with the lowest best FID; None if no trial is complete."""
    return next(iter(complete(records)), None)


def winner(records: list[TrialRecord]) -> TrialRecord | None:
    """The trial whose setting is the best on average over the finalists' seeds; without these the leader."""
    return next((finalist.trial for finalist in finalists(records)), None) or leader(records)


def next_run(records: list[TrialRecord], asked: Finalists) -> NextRun | None:
    """The next run from another seed, once every trial has ended; None: there is none now."""
    ended = all(trial.ending for trial in trials_of(records))
    return next(iter(missing_runs(records, asked)), None) if ended else None


def missing_runs(records: list[TrialRecord], asked: Finalists) -> list[NextRun]:
    """The runs of the best trials so far that have not been asked for, in order: by seed, then by FID."""
    best = complete(records)[: asked.count]
    seeds, known = range(1, asked.seeds + 1), {record.label for record in records}
    of = len(best) * len(seeds)
    runs = [NextRun(f"{one.label}-s{seed}", one.params, of) for seed in seeds for one in best]
    return [run for run in runs if run.label not in known]
