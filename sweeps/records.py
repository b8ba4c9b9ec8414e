"""What the study says of trials, as plain records.

A trial is known by its label, t001, t002, ... in order of asking. A setting that is trained again from other
seeds as a finalist has runs t007-s1, t007-s2, ...; each is recorded as a trial is.
"""

import math
from dataclasses import dataclass, field
from pathlib import Path

from sweeps.search import Value
from wgangp import convergence
from wgangp.config import TrainConfig

Metrics = dict[str, float]


class TrialFailed(Exception):
    """Why an attempt died, as one line: the driver cannot load exceptions of TensorFlow's own types."""


class WorkerFull(Exception):
    """A worker's process has grown past its memory limit; a fresh one is to take the trial."""


@dataclass(frozen=True)
class Ending:
    """How a trial ended: an outcome (complete, pruned, diverged, failed, interrupted) and why."""

    outcome: str
    reason: str = ""


@dataclass(frozen=True)
class Assignment:
    """One attempt at a trial, handed to a worker."""

    label: str
    attempt: int
    config: TrainConfig
    params: dict[str, Value]
    baseline: bool
    finalist_of: str
    """The trial whose setting this run trains again from another seed; empty if it is no such run."""
    checkpoints: list[Path]
    core_seconds: dict[int, float]
    """Core-seconds spent up to each recorded tick, from which an attempt that resumes goes on counting."""


@dataclass(frozen=True)
class TrialRecord:
    """All that is known of one trial, in every state."""

    label: str
    params: dict[str, Value]
    baseline: bool
    attempt: int
    ending: Ending | None
    """None while it runs or waits to be tried again."""
    last_error: str
    """Why the last attempt that died did; empty if none has."""
    ticks: dict[int, Metrics] = field(repr=False)
    checkpoints: list[Path] = field(repr=False)
    """Newest first."""
    checkpoint_tick: int = 0
    """Of the newest checkpoint; 0 if there is none."""
    finalist_runs: int = 0
    """Of a finalist's run: how many runs of finalists there are to be in all."""

    @property
    def finalist_of(self) -> str:
        """The trial whose setting this run trains again from another seed; empty if it is no such run."""
        trial, dash, _ = self.label.partition("-s")
        return trial if dash else ""

    @property
    def tick(self) -> int:
        """The last recorded tick, 0 before the first."""
        return max(self.ticks, default=0)

    @property
    def last(self) -> Metrics:
        return self.ticks[self.tick] if self.ticks else {}

    @property
    def best_fid(self) -> float:
        """The lowest FID so far, infinite before the first."""
        return self.best_fid_within()

    @property
    def best_fid_error(self) -> float:
        """Standard error of the best FID over the draw of generated images; NaN if it is not known."""
        scored = [metrics for metrics in self.ticks.values() if "fid" in metrics]
        best = min(scored, key=lambda metrics: metrics["fid"], default={})
        return best.get("fid_standard_error", math.nan)

    def best_fid_within(self, *, tick: float = math.inf, core_seconds: float = math.inf) -> float:
        """The lowest FID up to `tick` and `core_seconds`, infinite if there is none."""
        fids = [
            metrics["fid"]
            for number, metrics in self.ticks.items()
            if number <= tick and metrics["core_seconds"] <= core_seconds and "fid" in metrics
        ]
        return min(fids, default=math.inf)

    @property
    def settings(self) -> str:
        """The searched settings, short: `gp_weight 0.76, n_critic 3`."""
        return ", ".join(f"{name} {short(value)}" for name, value in self.params.items())

    @property
    def core_seconds(self) -> float:
        return self.last.get("core_seconds", 0.0)

    @property
    def kimg(self) -> float:
        return self.last.get("images_seen", 0) / 1000


def order(label: str) -> tuple[int, int]:
    """Where a label stands in the order of asking; a finalist's run after its trial: t007-s2 is (7, 2)."""
    trial, _, seed = label.partition("-s")
    return int(trial[1:]), int(seed or 0)


def trials_of(records: list[TrialRecord]) -> list[TrialRecord]:
    """Without the runs of finalists."""
    return [record for record in records if not record.finalist_of]


def complete(records: list[TrialRecord]) -> list[TrialRecord]:
    """Trials that were trained to the end, the best first; of equals the one asked first."""
    found = [one for one in trials_of(records) if one.ending and one.ending.outcome == "complete"]
    return sorted(found, key=lambda record: record.best_fid)


def verdict(record: TrialRecord) -> convergence.Verdict:
    """What its curves say so far."""
    diverged = record.ending.reason if record.ending and record.ending.outcome == "diverged" else ""
    return convergence.verdict(list(record.ticks.values()), diverged=diverged)


def tenths(value: float) -> str:
    """A score with one digit; a dash if it is not known."""
    return f"{value:.1f}" if math.isfinite(value) else "-"


def short(value: Value) -> str:
    """A setting's value with three digits."""
    return f"{value:.3g}" if isinstance(value, float) else str(value)
