"""What each choice of a setting came to: for settings that are kinds, not numbers."""

import math
import statistics

from sweeps.records import TrialRecord, short, tenths, trials_of
from sweeps.results import Results
from sweeps.search import Choices, stored


def table(results: Results) -> list[list[str]]:
    """A row for each choice, headings first; only the headings if no setting has choices.

    Medians are over trials at equal budget, the first at which trials are compared; the best FIDs are not.
    """
    tick = results.space.first_rung
    kimg = tick * results.space.base.tick_kimg
    rows = [["setting", "choice", "trials", "best FID", "of", f"median FID at {kimg:g} kimg", "of trials"]]
    for field, searched in results.space.search.items():
        if not isinstance(searched, Choices):
            continue
        for choice in searched.choices:
            with_it = [
                one
                for one in trials_of(results.records)
                if field in one.params and stored(one.params[field]) == stored(choice)
            ]
            rows.append([field, short(choice), str(len(with_it)), *_cells(with_it, tick)])
    return rows


def _cells(trials: list[TrialRecord], tick: int) -> list[str]:
    best = min(trials, key=lambda one: one.best_fid, default=None)
    early = [
        fid for one in trials if math.isfinite(fid := one.best_fid_within(tick=tick)) and one.tick >= tick
    ]
    median = statistics.median(early) if early else math.nan
    label = best.label if best and math.isfinite(best.best_fid) else "-"
    return [tenths(best.best_fid if best else math.nan), label, tenths(median), str(len(early))]
