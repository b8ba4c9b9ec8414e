"""Trials of several processes: everything here is marked `multi_process`."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.conftest import SPACE, ScriptedSweep
from tests.real_cluster import RunningCluster, running_cluster


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.multi_process)


@pytest.fixture
def sweep(tmp_path: Path) -> ScriptedSweep:
    return ScriptedSweep(tmp_path)


@pytest.fixture
def space() -> str:
    return str(SPACE)


@pytest.fixture
def four_cpus() -> Iterator[RunningCluster]:
    """A cluster that runs already and says that it has four, whatever there are."""
    with (
        tempfile.TemporaryDirectory(prefix="f-", dir="/tmp") as folder,
        running_cluster(Path(folder), cpus=4, token=False) as running,
    ):
        yield running
