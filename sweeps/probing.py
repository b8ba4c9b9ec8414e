"""`--check`: the cheapest and the dearest settings of a space, tried for seconds; what the sweep will cost.

A setting that cannot run, as memory does not suffice, is found here and not in the seventh trial.
"""

import importlib
import resource
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import ray

from sweeps import conditions
from sweeps.failures import in_one_line
from sweeps.preparation import Ready
from sweeps.progress import View
from sweeps.records import TrialFailed, short
from sweeps.scheduling import describe
from sweeps.search import Choices, Value
from sweeps.space import Space
from wgangp.config import TrainConfig
from wgangp.errors import UserError

if TYPE_CHECKING:
    from wgangp.measuring import Speed

DEARER = {"width": "high", "latent_size": "high", "n_critic": "low", "batch_size": "low"}
"""The end of a range at which a real image costs more: with few critic steps more generator steps are due."""
KINDS = ("architecture", "penalty", "precision")
"""Choices whose cost nobody knows beforehand: each is tried."""
MOST = 6
"""Settings tried; each costs the time to compile it, some seconds."""
PATIENCE = 120.0
"""Seconds after which a setting is known to be a slow one, and left."""
_LEAVE = 0.1
"""Share of the memory that is free which a trial on trial does not get, for the machine to live on."""


@dataclass(frozen=True)
class Corner:
    """Settings at ends of the search, those that cost something named."""

    params: dict[str, Value]
    named: str


def corners(space: Space) -> list[Corner]:
    """The cheapest setting, the dearest of every kind, also with the largest batches, then the others."""
    cheapest, dearest = (
        {field: _end(space, field, cheap=cheap) for field in space.search} for cheap in (True, False)
    )
    dear = [dearest]
    if "batch_size" in space.search:
        dear.append(dearest | {"batch_size": max(space.search["batch_size"].ends(), key=_number)})
    kinds: list[dict[str, Value]] = [{}]
    for field in KINDS:
        if field in space.search:
            kinds = [kind | {field: choice} for kind in kinds for choice in space.search[field].ends()]
    most_telling_first = [
        cheapest | kinds[0],
        *(end | kind for end in dear for kind in kinds),
        *(cheapest | kind for kind in kinds[1:]),
    ]
    found: dict[str, Corner] = {}
    for values in most_telling_first:
        params = conditions.given(space.search, values)
        named = [field for field in (*DEARER, *KINDS) if field in params]
        words = ", ".join(f"{field} {short(params[field])}" for field in named) or "the fixed settings"
        found.setdefault(words, Corner(params, words))
    return list(found.values())


def _end(space: Space, field: str, *, cheap: bool) -> Value:
    searched = space.search[field]
    values = searched.ends()
    if isinstance(searched, Choices) and not all(isinstance(value, int | float) for value in values):
        return values[0]
    dear_is_high = DEARER.get(field, "high") == "high"
    return max(values, key=_number) if dear_is_high != cheap else min(values, key=_number)


def _number(value: Value) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


class Probe:
    """One process with the resources of a trial, which may die."""

    def __init__(self, trainer: str, prepared: Any, resources: dict[str, Any]) -> None:
        # TensorFlow says that it has no memory; a machine without memory says nothing any more.
        free = psutil.virtual_memory().available
        limit = psutil.Process().memory_info().data + int(free * (1 - _LEAVE))
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
        self._module = importlib.import_module(trainer)
        self._trainer = self._module.Trainer(prepared, **resources)

    def measure(self, config: TrainConfig) -> "Speed":
        """See `wgangp.measuring.measure`."""
        with in_one_line():
            return self._module.measure(self._trainer, config)


def plan_lines(space: Space, ready: Ready, *, out: Path, view: View) -> list[str]:
    """What a trial and the sweep will take, by seconds of training at the corners of the space.

    Raises:
        UserError: a corner cannot run, or the disk has no room for the checkpoints.
    """
    if space.resources.roles:
        return ["  time and disk are not measured beforehand for trials in several processes"]
    speeds: list[tuple[Corner, Speed]] = []
    unknown, problems = [], []
    probe: Any = None
    found = corners(space)
    for corner in found[:MOST]:
        view.say(f"trying {corner.named}")
        probe = probe or _probe(space, ready)
        config = space.config(corner.params, init_seed=space.sweep.seed)
        try:
            speeds.append((corner, ready.wait(probe.measure.remote(config), patience=PATIENCE)))
            continue
        except TimeoutError:
            unknown.append(f"  {corner.named}: a step and two evaluations take over {duration(PATIENCE)}")
        except ray.exceptions.RayError as error:
            problems.append(
                f"{space.source.name}: a trial with {corner.named} cannot run here: {_why(error)}."
                " Narrow the search, or give a trial more."
            )
        ray.kill(probe)
        probe = None
    if probe is not None:
        ray.kill(probe)
    if problems:
        raise UserError(*problems)
    if left := found[MOST:]:
        unknown.append(f"  not tried: {left[0].named}" + (f" and {len(left) - 1} more" if left[1:] else ""))
    if not speeds:
        return unknown
    times = _time_lines(space, speeds, capacity=ready.capacity)
    return [*unknown, *times, _disk_line(space, speeds, out=out)]


def _probe(space: Space, ready: Ready) -> Any:
    resources = space.resources
    share: dict[str, Any] = {"num_cpus": resources.cpus} | (
        {"num_gpus": resources.gpus} if resources.gpus else {}
    )
    remote: Any = ray.remote(Probe).options(**share)
    return remote.remote(ready.trainer, ready.prepared, resources.of_each)


def _why(error: Exception) -> str:
    cause = getattr(error, "cause", None)
    words = str(cause) if isinstance(cause, TrialFailed) else describe(error)
    if "ResourceExhausted" in words or "MemoryError" in words or "bad_alloc" in words:
        return f"memory does not suffice ({words[:120]})"
    return words[:300]


def _time_lines(space: Space, speeds: list[tuple[Corner, "Speed"]], *, capacity: int) -> Iterator[str]:
    seconds = {corner.named: trial_seconds(space, speed) for corner, speed in speeds}
    by_cost = sorted(speeds, key=lambda each: seconds[each[0].named])
    for corner, speed in by_cost if len(by_cost) < 3 else (by_cost[0], by_cost[-1]):
        yield (
            f"  {corner.named}: {speed.images_per_second:,.0f} images/s,"
            f" {duration(seconds[corner.named])} for {space.base.budget_kimg:g} kimg"
        )
    ends = [sweep_seconds(space, speed, capacity=capacity) for _, speed in (by_cost[0], by_cost[-1])]
    low, high = map(duration, ends)
    yield f"  the sweep: {low if low == high else f'{low} to {high}'}, as trials are cheap or dear"


def trial_seconds(space: Space, speed: "Speed", kimg: float | None = None) -> float:
    """Of a trial that trains `kimg`, by default to the end of its budget."""
    kimg = space.base.budget_kimg if kimg is None else kimg
    return kimg * 1000 / speed.images_per_second + kimg / space.base.tick_kimg * speed.evaluation_seconds


def sweep_seconds(space: Space, speed: "Speed", *, capacity: int) -> float:
    """Of all trials and finalists' runs, were they all as this one, `capacity` at once."""
    trials = space.sweep.trials
    whole = sum(1 for baseline in space.enqueue if not baseline.prune)
    runs = min(space.finalists.count, trials) * space.finalists.seeds
    kimg = (whole + runs) * space.base.budget_kimg + (trials - whole) * space.expected_kimg
    return speed.startup_seconds + trial_seconds(space, speed, kimg) / capacity


def _disk_line(space: Space, speeds: list[tuple[Corner, "Speed"]], *, out: Path) -> str:
    each = max(speed.checkpoint_bytes for _, speed in speeds)
    needed = 2 * each * (space.sweep.trials + space.finalists.count * space.finalists.seeds)
    place = next(path for path in (out.absolute(), *out.absolute().parents) if path.exists())
    free = shutil.disk_usage(place).free
    said = f"checkpoints of at most {size(each)}, two for each trial: {size(needed)}; {size(free)} are free"
    if needed > free:
        raise UserError(f"--out {out}: {said}. Free some space, or take fewer trials.")
    return f"  {said}"


def size(count: float) -> str:
    """Bytes for a person."""
    for unit, least in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= least:
            return f"{count / least:.1f} {unit}"
    return f"{count:.0f} bytes"


def duration(seconds: float) -> str:
    """Seconds for a person."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes / 60:.1f} h"
