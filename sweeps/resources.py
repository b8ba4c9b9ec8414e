"""What each trial trains on: the section `resources` of a space file, held against the cluster."""

from collections.abc import Iterator
from typing import Any, Literal

from pydantic import Field, ValidationInfo, field_validator

from sweeps.search import Section
from wgangp.strategies import missing, replica_count
from wgangp.wording import Key, count

SEVERAL_WORKERS = ("auto", "multi_worker", "parameter_server")
"""The strategies under which more than one process trains a trial."""


class Resources(Section):
    """Of one trial. When several processes train it, a gang, `cpus` and `gpus` are those of each worker."""

    strategy: Literal["auto", "one_device", "mirrored", "multi_worker", "parameter_server", "tpu"] = "auto"
    workers: int = Field(1, ge=1, le=1000, validate_default=True)
    cpus: float = Field(1, gt=0)
    gpus: float = Field(0, ge=0)
    placement: Literal["together", "split"] = "together"

    @field_validator("workers")
    @classmethod
    def _go_with_the_strategy(cls, workers: int, info: ValidationInfo) -> int:
        strategy = info.data.get("strategy", "auto")
        if workers > 1 and strategy not in SEVERAL_WORKERS:
            raise ValueError(
                f"must be 1 under strategy {strategy}, got {workers};"
                f" several go with {', '.join(SEVERAL_WORKERS[:-1])} or {SEVERAL_WORKERS[-1]}"
            )
        if workers < 2 and strategy == "multi_worker":
            raise ValueError(f"must be at least 2 under strategy multi_worker, got {workers}; or use auto")
        return workers

    @field_validator("cpus")
    @classmethod
    def _whole_in_a_gang(cls, cpus: float, info: ValidationInfo) -> float:
        if _is_gang(info.data) and cpus != int(cpus):
            raise ValueError(f"must be a whole number for each worker of a trial, got {cpus:g}")
        return cpus

    @field_validator("gpus")
    @classmethod
    def _shareable(cls, gpus: float, info: ValidationInfo) -> float:
        if _is_gang(info.data) and gpus != int(gpus):
            raise ValueError(f"must be a whole number for each worker of a trial, got {gpus:g}")
        if gpus > 1 and gpus != int(gpus):
            raise ValueError(f"must be a fraction of one GPU or a whole number of GPUs, got {gpus:g}")
        return gpus

    @field_validator("placement")
    @classmethod
    def _on_two_devices(cls, placement: str, info: ValidationInfo) -> str:
        """Held against what was read well: what was not is reported by itself."""
        strategy, workers = info.data.get("strategy", "auto"), info.data.get("workers", 1)
        cpus, gpus = info.data.get("cpus", 2), info.data.get("gpus", 0)
        if placement == "together":
            return placement
        if strategy not in ("auto", "one_device"):
            raise ValueError(f"must be together under strategy {strategy}, got split; or use one_device")
        if workers > 1:
            raise ValueError(f"must be together with {workers} workers, got split; or use one worker")
        if gpus != 2 and (gpus or cpus < 2):
            raise ValueError(
                f"must be together with {cpus:g} CPUs and {gpus:g} GPUs, got split;"
                " for that give a trial 2 GPUs, or no GPU and at least 2 CPUs"
            )
        return placement

    @property
    def roles(self) -> dict[str, int]:
        """How many processes of each role train a trial together, the leading one first; empty: one alone."""
        if self.strategy == "parameter_server":
            return {"chief": 1, "ps": 1, "worker": self.workers}
        return {"worker": self.workers} if self.workers > 1 else {}

    @property
    def of_each(self) -> dict[str, Any]:
        """What each trainer of a trial is told."""
        return {
            "strategy": self.strategy,
            "cpus": self._whole_cpus,
            "gpus": self.gpus,
            "placement": self.placement,
        }

    @property
    def _whole_cpus(self) -> int:
        """A share of a CPU is used through one thread, as a whole one is."""
        return max(1, int(self.cpus))

    @property
    def cores(self) -> int:
        """What a second of training costs in core-seconds."""
        return self._whole_cpus * self.workers

    @property
    def most_trials(self) -> int | None:
        """How many trials may train at once, whatever the cluster has: a TPU is not divided."""
        return 1 if self.strategy == "tpu" else None

    @property
    def bundles(self) -> list[dict[str, float]]:
        """What Ray sets aside for a trial: its own actor's share first, which is nothing in a gang."""
        share = {"CPU": self.cpus} | ({"GPU": self.gpus} if self.gpus else {})
        return [{}, *[share] * self.workers] if self.roles else [share]

    @property
    def all_cpus(self) -> float:
        """Of all workers of a trial. A chief and a parameter server work while the workers wait."""
        return self.cpus * self.workers

    @property
    def all_gpus(self) -> float:
        return self.gpus * self.workers

    @property
    def replicas(self) -> int:
        """Copies of the networks that train in step within one trial."""
        if self.placement == "split":
            return 1
        gpus = -int(-self.gpus // 1)
        return replica_count(self.strategy, cpus=self._whole_cpus, gpus=gpus, workers=self.workers)

    def problems(self, *, cpus: float, gpus: float) -> Iterator[tuple[Key, str]]:
        """What a cluster with these CPUs and GPUs lacks for a single trial, as keys and sentences."""
        if lacking := missing(self.strategy):
            yield ("resources", "strategy"), lacking.removeprefix("strategy: ")
        for name, each, wanted, there in (
            ("cpus", self.cpus, self.all_cpus, cpus),
            ("gpus", self.gpus, self.all_gpus, gpus),
        ):
            if wanted <= there:
                continue
            most = f"at most the {there:g} {name.upper()[:-1]}s of this cluster"
            if self.workers == 1:
                yield ("resources", name), f"must be {most}, got {wanted:g}"
            else:
                got = f"{name} x workers = {each:g} x {self.workers} = {wanted:g}"
                yield ("resources", name), f"must be {most} for all workers together, got {got}"

    @property
    def effective_strategy(self) -> str:
        """What `auto` comes to."""
        if self.strategy != "auto":
            return self.strategy
        if self.workers > 1:
            return "multi_worker"
        return "mirrored" if self.gpus > 1 and self.placement == "together" else "one_device"

    def __str__(self) -> str:
        """For a person, and the record of each trial."""
        workers = f"{count(self.workers, 'worker')} of " if self.roles else ""
        each = f"{self.effective_strategy}, {workers}{self.cpus:g} CPUs, {self.gpus:g} GPUs"
        if self.strategy == "parameter_server":
            return f"{each} beside a chief and a parameter server: gradients are stale, no resume is exact"
        apart = ", generator and critic apart" if self.placement == "split" else ""
        return f"{each}{apart}, {self.replicas} replica(s)"


def _is_gang(values: dict[str, Any]) -> bool:
    return values.get("workers", 1) > 1 or values.get("strategy") == "parameter_server"
