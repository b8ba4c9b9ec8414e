"""A sweep so far, as the report, its pictures and a notebook see it."""

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sweeps.finalists import winner
from sweeps.folder import SweepFolder
from sweeps.records import TrialRecord, trials_of, verdict
from sweeps.space import Space
from wgangp import files

if TYPE_CHECKING:
    import pandas

Fresh = dict[str, dict[str, float]]
"""By label, what `score_winner` said of the best generator of a trial."""


@dataclass(frozen=True)
class Results:
    """What is known of one sweep.

    Attributes:
        folder: the sweep's.
        space: what it was started with.
        records: all its trials and runs of finalists, in order of asking.
        facts: of the data and features, as `wgangp.trainer.prepare` gives them.
        fresh: of the winner and the finalists; empty if they were not scored.
        ui: the command, or address, that shows the trials in MLflow.
        interruption: what stopped this start before its end; empty if nothing did.
    """

    folder: SweepFolder
    space: Space
    records: list[TrialRecord]
    facts: dict[str, Any]
    fresh: Fresh
    ui: str
    interruption: str = ""

    @property
    def trials(self) -> "pandas.DataFrame":
        """See `frame`."""
        return frame(self.records)

    @property
    def winner(self) -> TrialRecord | None:
        return winner(self.records)

    @property
    def failed(self) -> int:
        """How many trials failed."""
        return sum(1 for record in self.records if record.ending and record.ending.outcome == "failed")

    @property
    def exit_status(self) -> int:
        """0: all ended and one is complete; 1: some failed, or none is complete; 130: interrupted."""
        if self.interruption:
            return 130
        return 1 if self.failed or self.winner is None else 0

    @property
    def kimg(self) -> float:
        """Spent in all."""
        return sum(record.kimg for record in self.records)

    @property
    def core_seconds(self) -> float:
        """Spent in all."""
        return sum(record.core_seconds for record in self.records)

    @property
    def saved(self) -> tuple[float, float]:
        """What pruning saved: kimg, and core-seconds at each pruned trial's own speed."""
        kimg = seconds = 0.0
        for record in self.records:
            if record.ending and record.ending.outcome == "pruned" and record.kimg:
                left = max(0.0, self.space.base.budget_kimg - record.kimg)
                kimg += left
                seconds += left * record.core_seconds / record.kimg
        return kimg, seconds

    @property
    def milestone(self) -> int:
        """The last tick at which trials are compared, or would be, that enough of them reached; 0: none.

        At it trials compare at equal budget, those that were pruned there too.
        """
        reached = [tick for tick in self._compared if len(self.scored_by(tick)) >= ENOUGH]
        return max(reached, default=0)

    @property
    def _compared(self) -> list[int]:
        return [*self.space.milestones, self.space.base.ticks]

    def scored_by(self, tick: int) -> list[TrialRecord]:
        """The trials that were trained up to `tick`, and scored by then."""
        return [
            one
            for one in trials_of(self.records)
            if one.tick >= tick and math.isfinite(one.best_fid_within(tick=tick))
        ]


ENOUGH = 8
"""Of fewer trials no plot over settings, and no importance, says anything."""


def kept_scores(folder: SweepFolder) -> tuple[str, Fresh]:
    """The winner of an earlier start, and what it and the finalists scored on fresh noise; "" of none."""
    path = folder.best / "scores.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    return known.get("trial", ""), known.get("scores", {})


def keep_scores(folder: SweepFolder, winner: str, fresh: Fresh) -> None:
    """For `kept_scores`."""
    files.write(folder.best / "scores.json", json.dumps({"trial": winner, "scores": fresh}).encode())


def frame(records: list[TrialRecord]) -> "pandas.DataFrame":
    """One row for each trial, in order of asking: scores, cost, outcome, and the searched settings.

    Columns: trial, outcome, verdict, best_fid, best_fid_error, kimg, core_seconds, baseline, attempt, reason,
    then the settings by their names. What is not known is NaN.
    """
    import pandas  # slow to import, and needed by few

    rows = [
        {
            "trial": record.label,
            "outcome": record.ending.outcome if record.ending else "running",
            "verdict": verdict(record).word,
            "best_fid": record.best_fid if math.isfinite(record.best_fid) else math.nan,
            "best_fid_error": record.best_fid_error,
            "kimg": record.kimg,
            "core_seconds": record.core_seconds,
            "baseline": record.baseline,
            "attempt": record.attempt,
            "reason": record.ending.reason if record.ending else "",
            **record.params,
        }
        for record in records
    ]
    return pandas.DataFrame(rows)
