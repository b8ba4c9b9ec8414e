"""The sections of a space file besides `search`, `train` and `resources`, and one entry of `enqueue`."""

import re
from typing import Any, Literal

from pydantic import Field, field_validator

from sweeps.search import Section, Value
from wgangp.config import Seed
from wgangp.wording import show


class Objective(Section):
    metric: Literal["fid"] = "fid"
    direction: Literal["minimize"] = "minimize"


class Sampler(Section):
    """What proposes settings; `n_startup_trials` are random first, of tpe, gp and cmaes."""

    name: Literal["tpe", "random", "qmc", "gp", "cmaes"] = "tpe"
    n_startup_trials: int = Field(10, ge=1, le=100_000)


class Pruner(Section):
    """What ends trials early.

    Attributes:
        first_rung_kimg: before it none is ended (default: a tick); of all but patient.
        reduction_factor: one of so many goes on; of successive_halving and hyperband.
        n_startup_trials: so many are complete before any is ended; of median and percentile.
        percentile: of complete trials, with whose score one goes on; of percentile.
        patience_kimg: within which a trial must get better (default: a third of the budget); of patient.
    """

    name: Literal["successive_halving", "hyperband", "median", "percentile", "patient", "none"] = (
        "successive_halving"
    )
    first_rung_kimg: float | None = Field(None, gt=0)
    reduction_factor: int = Field(3, ge=2, le=100)
    n_startup_trials: int = Field(4, ge=1, le=100_000)
    percentile: float = Field(50.0, gt=0, lt=100)
    patience_kimg: float | None = Field(None, gt=0)

    @field_validator("name", mode="before")
    @classmethod
    def _sound(cls, name: Any) -> Any:
        if name == "wilcoxon":
            raise ValueError(
                "must not be wilcoxon, which compares scores on the same problem instances, and ticks are no"
                " instances: each depends on the one before; take median"
            )
        return name


class Sweep(Section):
    trials: int = Field(16, ge=1, le=100_000)
    retries: int = Field(2, ge=0, le=100)
    seed: Seed = 0
    max_concurrent: int | None = Field(None, ge=1)


class Finalists(Section):
    """The best settings trained again from other seeds, after the trials; the best on average wins."""

    count: int = Field(0, ge=0, le=100)
    seeds: int = Field(3, ge=2, le=100)

    def __str__(self) -> str:
        return f"the best {self.count} again from {self.seeds} other seeds"


Cost = Literal["core_seconds"]
"""What a trial costs, to be weighed against its score in the report."""


class Study(Section):
    storage: str | None = None

    @field_validator("storage")
    @classmethod
    def _database(cls, storage: str | None) -> str | None:
        if storage is not None and not re.fullmatch(r"[a-z][a-z0-9+]*://.+", storage):
            raise ValueError(f"must be a database such as sqlite:////home/me/study.db, got {show(storage)}")
        return storage


class Baseline(Section):
    """A setting the user compares with: tried first, and never pruned unless it asks to be."""

    params: dict[str, Value]
    prune: bool = False
