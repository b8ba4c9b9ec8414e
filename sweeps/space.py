"""A sweep's space: what it tries, on what budget, with which sampler, pruner and machine.

`space_file.load` makes one from a file; everything later reads it.
"""

import itertools
import math
import sys
from dataclasses import dataclass
from typing import Any

from sweeps.resources import Resources
from sweeps.search import Searched, Value
from sweeps.sections import Baseline, Cost, Finalists, Objective, Pruner, Sampler, Study, Sweep
from wgangp.config import NETWORK_FIELDS, TrainConfig
from wgangp.rules import misfits
from wgangp.settings_file import SettingsFile
from wgangp.wording import Key


@dataclass(frozen=True)
class Space:
    """A space file that passed the first gate."""

    name: str
    objective: Objective
    search: dict[str, Searched]
    enqueue: list[Baseline]
    train: dict[str, Value]
    sampler: Sampler
    pruner: Pruner
    sweep: Sweep
    finalists: Finalists
    compare: list[Cost]
    resources: Resources
    study: Study
    source: SettingsFile

    def config(self, params: dict[str, Value], *, init_seed: int) -> TrainConfig:
        """The complete settings of a trial; those that its conditions leave out have their defaults.

        Seeds that the file leaves open follow from the sweep's seed.
        """
        settings: dict[str, Any] = {"init_seed": init_seed} | self.fixed | params
        return TrainConfig(**settings).resolved()

    @property
    def fixed(self) -> dict[str, Value]:
        """Every setting that trials share, defaults written out (a trial has its own init_seed)."""
        defaults = {field: info.default for field, info in TrainConfig.model_fields.items()}
        seeds = {"seed": self.sweep.seed, "evaluation_seed": self.sweep.seed}
        settings = defaults | seeds | self.train
        own = {*self.search, "init_seed"} - self.train.keys()
        return {field: value for field, value in settings.items() if field not in own}

    @property
    def base(self) -> TrainConfig:
        """The fixed settings (budget, ticks, data), searched fields at the first value of their search."""
        first = {field: searched.ends()[0] for field, searched in self.search.items()}
        return self.config(first, init_seed=self.sweep.seed)

    @property
    def variants(self) -> list[TrainConfig]:
        """Other settings trials may be given: of each that networks are built from, its ends or choices."""
        first = {field: searched.ends()[0] for field, searched in self.search.items()}
        return [
            self.config(first | {field: value}, init_seed=self.sweep.seed)
            for field in NETWORK_FIELDS
            if field in self.search
            for value in self.search[field].ends()[1:]
        ]

    @property
    def first_rung(self) -> int:
        """The tick at which the pruner first compares trials."""
        kimg = self.pruner.first_rung_kimg
        return 1 if kimg is None else round(kimg / self.base.tick_kimg)

    @property
    def rungs(self) -> list[int]:
        """The ticks at which trials are compared with each other and pruned."""
        if self.pruner.name in ("none", "patient"):
            return []
        if self.pruner.name in ("median", "percentile"):
            return list(range(self.first_rung, self.base.ticks + 1))
        return self.milestones

    @property
    def patience(self) -> int:
        """Ticks within which a trial must get better under the pruner `patient`."""
        kimg = self.pruner.patience_kimg
        return math.ceil(self.base.ticks / 3) if kimg is None else round(kimg / self.base.tick_kimg)

    @property
    def patience_kimg(self) -> float:
        """The same, in thousands of real images seen."""
        return self.patience * self.base.tick_kimg

    @property
    def pruning(self) -> str:
        """When trials are ended, for a person."""
        rungs = [f"{rung * self.base.tick_kimg:g}" for rung in self.rungs]
        match self.pruner.name:
            case "none":
                return "none is pruned"
            case "patient":
                return f"pruned after {self.patience_kimg:g} kimg without progress"
            case "median" | "percentile":
                return f"compared at every tick from {rungs[0]} kimg on" if rungs else "none is pruned"
        return f"compared at {', '.join(rungs) or 'none'} kimg"

    @property
    def milestones(self) -> list[int]:
        """The ticks at which they would be compared, whether or not any is pruned."""
        ticks, rung = [], self.first_rung
        while rung <= self.base.ticks:
            ticks.append(rung)
            rung *= self.pruner.reduction_factor
        return ticks

    @property
    def expected_kimg(self) -> float:
        """A guess of what a trial takes on average: each rung lets half go on, since it decides early."""
        milestones = self.milestones if self.rungs else []
        ticks = [*(rung for rung in milestones if rung < self.base.ticks), self.base.ticks]
        gaps = [after - before for before, after in zip([0, *ticks], ticks, strict=False)]
        return self.base.tick_kimg * sum(gap / 2**passed for passed, gap in enumerate(gaps))

    def values(self) -> dict[str, Any]:
        """The whole space as plain values, defaults written out: what is frozen and compared on resume."""
        baselines = [
            baseline.params | ({"prune": True} if baseline.prune else {}) for baseline in self.enqueue
        ]
        return {
            "name": self.name,
            "objective": self.objective.model_dump(),
            "search": {
                field: searched.model_dump(exclude_none=True) for field, searched in self.search.items()
            },
            "enqueue": baselines,
            "train": self.fixed,
            "sampler": self.sampler.model_dump(),
            "pruner": self.pruner.model_dump(exclude_none=True),
            "sweep": self.sweep.model_dump(exclude_none=True),
            "finalists": self.finalists.model_dump(),
            "compare": list(self.compare),
            "resources": self.resources.model_dump(),
            "study": self.study.model_dump(exclude_none=True),
        }

    def problems_when_prepared(self, *, train_images: int, cpus: float, gpus: float) -> list[str]:
        """Second gate: what does not fit the data (a number of images) or the cluster (its CPUs and GPUs)."""
        problems = self.misfits(train_images=train_images)
        for key, sentence in self.resources.problems(cpus=cpus, gpus=gpus):
            problems.append(self.source.problem(key, sentence))
        return problems

    def misfits(self, *, train_images: int = sys.maxsize) -> list[str]:
        """What settings of training do not go with each other and the replicas of a trial."""
        problems = []
        searchable = ("batch_size", "accumulation_steps", "generator_norm")
        for values in itertools.product(*map(self._possible, searchable)):
            for clash in misfits(
                self.base.model_dump() | dict(zip(searchable, values, strict=True)),
                replicas=self.resources.replicas,
                asynchronous=self.resources.strategy == "parameter_server",
                train_images=train_images,
            ):
                causes: list[Key] = [
                    ("search" if field in self.search else "train", field) for field in clash.fields
                ]
                problems.append(self.source.problem(causes[0], str(clash), causes=causes))
        return list(dict.fromkeys(problems))

    def _possible(self, field: str) -> list[Any]:
        """The values a setting may take that matter to rules: of a search its ends."""
        return self.search[field].ends() if field in self.search else [getattr(self.base, field)]
