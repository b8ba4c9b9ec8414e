"""What the study says of trials, as plain records."""

import math
from dataclasses import dataclass, field
from pathlib import Path

from sweeps.search import Value
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

    @property
    def number(self) -> int:
        """Its place in the order of asking: 1, 2, ..."""
        return int(self.label[1:])

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


def winner(records: list[TrialRecord]) -> TrialRecord | None:
    """The complete trial with the lowest best FID; None if no trial is complete."""
    complete = [record for record in records if record.ending and record.ending.outcome == "complete"]
    return min(complete, key=lambda record: record.best_fid, default=None)


def short(value: Value) -> str:
    """A setting's value with three digits."""
    return f"{value:.3g}" if isinstance(value, float) else str(value)
