"""Trials of several processes: everything here is marked `multi_process`."""

from pathlib import Path

import pytest

from tests.faults.conftest import SPACE, ScriptedSweep


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
