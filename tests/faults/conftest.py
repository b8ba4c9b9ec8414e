"""Faults injected from outside into real sweeps of a scripted trainer."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.faults.warm import Driver, Starter, ray_cluster
from tests.real_sweep import Sweep

SPACE = Path(__file__).with_name("scripted.yaml")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.fault)


class ScriptedSweep(Sweep):
    """A sweep of `scripted.yaml`; its cache holds the script and the trainer's notes.

    Attributes:
        starter: forks the drivers; None: each is a command of its own.
    """

    def __init__(self, out: Path, *, name: str = "scripted", trainer: str = "tests.scripted_trainer") -> None:
        super().__init__(out, name=name, trainer=trainer)
        self.cache = out / "cache"
        self.cache.mkdir(parents=True)
        self.environment["WGANGP_CACHE"] = str(self.cache)
        self.starter: Starter | None = None

    def start(self, *arguments: str) -> subprocess.Popen | Driver:
        if not self.starter:
            return super().start(*arguments)
        self.facts_file = self.out.with_name(f"{self.out.name}-facts.json")
        command = [str(self.facts_file), self.trainer, *arguments, "--out", str(self.out)]
        return self.starter.start(command, folder=self.out, environment=self.environment)

    def script(
        self, *, seconds: float = 0, faults: dict[int, list[dict[str, Any]]] | None = None, **other: Any
    ) -> None:
        """What the trainer is to do: seconds of each tick, faults by gp_weight, and `other` orders."""
        orders = {"seconds": seconds, "faults": faults or {}} | other
        (self.cache / "script.json").write_text(json.dumps(orders))

    def run_short_of_memory(self) -> int:
        """Have Ray end workers before all that is free now is taken; as many megabytes as are too many."""
        memory = psutil.virtual_memory()
        room = min(5e9, 0.4 * memory.available)
        used = memory.total - memory.available
        self.environment |= {
            "RAY_memory_monitor_refresh_ms": "100",
            "RAY_memory_usage_threshold": f"{(used + room) / memory.total:.3f}",
        }
        return int(1.5 * room / 1e6)

    def fired(self) -> list[str]:
        """Faults that happened, as `<gp_weight>-<tick>-<do>-<count>`."""
        return sorted(path.name for path in (self.cache / "fired").glob("*"))

    def ticks(self) -> list[dict[str, Any]]:
        """Every tick that any attempt finished: pid, gp_weight, tick, begin, end."""
        path = self.cache / "ticks.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture
def sweep(tmp_path: Path) -> ScriptedSweep:
    return ScriptedSweep(tmp_path)


@pytest.fixture(scope="session")
def starter() -> Starter:
    return Starter()


@pytest.fixture(scope="session")
def cluster() -> Iterator[dict[str, str]]:
    with ray_cluster() as environment:
        yield environment


@pytest.fixture
def warm(sweep: ScriptedSweep, starter: Starter, cluster: dict[str, str]) -> None:
    """The drivers of `sweep` start fast: for tests that neither end Ray nor need one with settings."""
    sweep.starter = starter
    sweep.environment |= cluster


@pytest.fixture
def space() -> str:
    return str(SPACE)
