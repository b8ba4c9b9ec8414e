"""What the study says of trials, as plain records."""

import math
from dataclasses import dataclass, field
from pathlib import Path

from sweeps.search import Value
from wgangp.config import TrainConfig

Metrics = dict[str, float]


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
        return min((tick["fid"] for tick in self.ticks.values() if "fid" in tick), default=math.inf)

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
