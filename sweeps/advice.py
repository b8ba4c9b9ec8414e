"""What to try next, from what a sweep found: each piece of advice with its evidence and what to type."""

import math
from typing import Any

from sweeps.finalists import finalists
from sweeps.ranking import indistinguishable
from sweeps.records import TrialRecord, complete, short, trials_of, verdict
from sweeps.results import Results
from sweeps.search import Choices, Searched
from wgangp.config import TrainConfig

NEAR = 0.05
"""Of a range: a winner so near to its end would perhaps have gone further."""
MANY_DIVERGED = 1 / 3
"""Of the proposed trials: then the search goes where training does not."""
FURTHER = 3
"""Times a budget, or a range's far end, is to grow."""


def advice(results: Results) -> list[str]:
    """What to try next, the most telling first; empty if nothing suggests itself."""
    best = results.winner
    if best is None:
        return []
    found = [*_ends(results, best), *_longer(results, best), *_surer(results), *_steadier(best)]
    return [*found, *_diverged(results), *_more_trials(results, best)]


def _ends(results: Results, best: TrialRecord) -> list[str]:
    """Ranges in which the winner lies at an end that can be moved."""
    found = []
    for field, searched in results.space.search.items():
        value = best.params.get(field)
        if isinstance(searched, Choices) or not isinstance(value, int | float):
            continue
        place = _place(searched, value)
        if place > 1 - NEAR and (high := _further(field, searched, up=True)) is not None:
            found.append(_at_the_end(field, value, "upper", searched.high, f"high={short(high)}"))
        elif place < NEAR and (low := _further(field, searched, up=False)) is not None:
            found.append(_at_the_end(field, value, "lower", searched.low, f"low={short(low)}"))
    return found


def _place(searched: Searched, value: float) -> float:
    """Where a value lies in its range, 0..1."""
    assert not isinstance(searched, Choices)
    low, high = float(searched.low), float(searched.high)
    if searched.log:
        return math.log(value / low) / math.log(high / low)
    return (value - low) / (high - low)


def _further(field: str, searched: Searched, *, up: bool) -> float | None:
    """An end to search up to next; None if the setting itself can go no further."""
    assert not isinstance(searched, Choices)
    low, high = searched.low, searched.high
    wide: float
    if up:
        wide = high * FURTHER if high > 0 else high + (high - low)
    else:
        wide = low / FURTHER if low > 0 else low - (high - low)
    if searched.type == "int":
        wide = math.floor(wide)
    schema: dict[str, Any] = TrainConfig.model_json_schema()["properties"][field]
    if up and wide >= schema.get("exclusiveMaximum", math.inf):
        wide = (high + schema["exclusiveMaximum"]) / 2
    wide = min(schema.get("maximum", math.inf), max(schema.get("minimum", -math.inf), wide))
    return wide if (wide > high if up else wide < low) else None


def _at_the_end(field: str, value: float, which: str, end: float, change: str) -> str:
    return (
        f"{field} {short(value)} lies at the {which} end of what was searched ({short(end)}):"
        f" search further, --set search.{field}.{change}"
    )


def _longer(results: Results, best: TrialRecord) -> list[str]:
    found = verdict(best)
    if found.word != "improving":
        return []
    budget = results.space.base.budget_kimg
    return [
        f"the winner was still improving ({found.evidence.partition(':')[0]}): give trials more,"
        f" --set train.budget_kimg={FURTHER * budget:g}"
    ]


def _surer(results: Results) -> list[str]:
    if results.space.finalists.count or len(complete(results.records)) < 2:
        return []
    close = indistinguishable(results.records, finalists(results.records))
    leaders = complete(results.records)[:2]
    if (leaders[0].label, leaders[1].label) not in close:
        return []
    return [
        f"{leaders[0].label} and {leaders[1].label} cannot be told apart: train the best again from other"
        " seeds, --set finalists.count=3"
    ]


def _steadier(best: TrialRecord) -> list[str]:
    found = verdict(best)
    if found.word == "oscillating" and "ema_decay" not in best.params:
        return [f"the winner wavers ({found.evidence}): score an average, --set train.ema_decay=0.999"]
    return []


def _diverged(results: Results) -> list[str]:
    proposed = [one for one in trials_of(results.records) if not one.baseline and one.ending]
    ends = [one.ending.outcome for one in proposed if one.ending]
    if ends.count("diverged") <= MANY_DIVERGED * max(1, len(ends)):
        return []
    return [f"{ends.count('diverged')} of {len(ends)} proposed trials diverged: lower the rates' upper ends"]


def _more_trials(results: Results, best: TrialRecord) -> list[str]:
    asked = len(trials_of(results.records))
    if best.baseline:
        return [
            f"no proposed setting beat a baseline: more trials, --resume {results.folder.name} --trials"
            f" {2 * asked}"
        ]
    return []
