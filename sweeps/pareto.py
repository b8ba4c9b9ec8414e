"""FID against cost: which trials nobody beats for what they cost."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sweeps.records import TrialRecord, tenths, trials_of
from sweeps.sections import Cost


@dataclass(frozen=True)
class Point:
    """A trial at one of its ticks.

    Attributes:
        trial: at whose tick.
        tick: which.
        cost: up to there.
        fid: the best up to there.
    """

    trial: TrialRecord
    tick: int
    cost: float
    fid: float


def front(records: list[TrialRecord], cost: Cost) -> list[Point]:
    """Points that no cheaper one equals or beats, the cheapest first; of each stretch of a trial the last.

    Args:
        records: all trials of the sweep; runs of finalists are no trials, they come after the choice.
        cost: the metric of a tick that counts what was spent.
    """
    points = [
        Point(record, tick, metrics[cost], record.best_fid_within(tick=tick))
        for record in trials_of(records)
        for tick, metrics in record.ticks.items()
        if "fid" in metrics
    ]
    best, found = math.inf, list[Point]()
    for point in sorted(points, key=lambda point: (point.cost, point.fid)):
        if point.fid < best:
            best = point.fid
            if found and found[-1].trial is point.trial:
                found.pop()
            found.append(point)
    return found


def table(records: list[TrialRecord], costs: Sequence[Cost], *, tick_kimg: float) -> list[list[str]]:
    """The fronts of all `costs` as a table, headings first."""
    rows = [["for", "best FID", "trial", "kimg", "settings"]]
    for cost in costs:
        for point in front(records, cost):
            what = cost.replace("_", "-")
            cells = [f"{point.cost:.0f} {what}", tenths(point.fid), point.trial.label]
            rows.append([*cells, f"{point.tick * tick_kimg:g}", point.trial.settings])
    return rows
