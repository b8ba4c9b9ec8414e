"""Real sweeps with the real trainer on 8x8 digits."""

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.real_sweep import HERE, Sweep


@pytest.fixture
def kill_worker() -> Callable[[psutil.Process], None]:
    """Kills one training process of a driver with -9."""

    def kill(driver: psutil.Process) -> None:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            for child in driver.children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    if "SweepTrial" in " ".join(child.cmdline()):
                        child.kill()
                        return
        raise AssertionError("no worker is training")

    return kill


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Features are made once for all sweeps of the tests."""
    path = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WGANGP_CACHE", str(path))
        yield path


@pytest.fixture
def sweep(tmp_path: Path, cache: Path) -> Sweep:
    return Sweep(tmp_path)


@pytest.fixture
def space() -> str:
    return str(HERE / "digits.yaml")
