"""Gangs of the real trainer: collectives of TensorFlow between processes, one of which is killed."""

import re
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.processes import alive, controllers, members, of_sweep, until
from tests.real_sweep import HERE, PATIENCE, Sweep

SPACE = str(HERE / "digits.yaml")
GARBAGE = "{cluster: {worker: [nowhere:1"
FAILOVER = 60
"""Seconds from a kill until its gang is gone and the user is told; training again takes what it takes."""


@pytest.fixture
def real(tmp_path: Path) -> Any:
    sweep: Any = Sweep(tmp_path)
    sweep.cache = tmp_path / "cache"
    sweep.environment |= {"WGANGP_CACHE": str(sweep.cache), "TF_CONFIG": GARBAGE}
    return sweep


def has_tensorflow(process: psutil.Process) -> bool:
    return any("libtensorflow" in each.path for each in process.memory_maps())


@pytest.mark.parametrize("strategy", ["auto", "parameter_server"])
def test_a_killed_worker_fails_its_gang_over_and_every_trial_completes(real: Any, strategy: str) -> None:
    two = ["--set", "resources.workers=2", "--set", f"resources.strategy={strategy}"]
    process = real.start("--space", SPACE, "--trials", "3", *two, "--set", "train.tick_kimg=3")
    killed, ended, again = 0.0, 0.0, 0.0
    for line in process.stdout:
        real.output += line
        if line.startswith("t001") and not killed:
            gang = members(real)
            assert len(gang) == {"auto": 2, "parameter_server": 4}[strategy]
            assert all(has_tensorflow(member) for member in gang)
            until(lambda: len(controllers(real)) == 1, seconds=10)  # its title changes as it works
            assert [has_tensorflow(controller) for controller in controllers(real)] == [False]
            gang[-1].kill()
            killed = time.monotonic()
            until(lambda gang=gang: not alive(gang), seconds=FAILOVER)
            print(f"{time.monotonic() - killed:.1f} s from the kill until the gang was gone")
        ended = ended or (time.monotonic() if "t001: attempt 1 ended" in line else 0)
        again = again or (time.monotonic() if ended and line.startswith("t001") else 0)
    print(f"{ended - killed:.1f} s until that was told, {again - killed:.1f} s until the next tick")

    assert process.wait(timeout=PATIENCE) == 0, real.output
    assert re.search(r"t001: attempt 1 ended: .*: the process died \(killed, or it crashed\);", real.output)
    assert 0 < ended - killed < FAILOVER
    assert again > ended
    assert real.output.count("TF_CONFIG is ignored") == 1
    assert not real.facts["tensorflow"]
    attempts = [len(trial.user_attrs["attempts"]) for trial in real.trials().values()]
    assert attempts == [2, 1, 1] and real.outcomes()["t001"] == "complete"
    real.assert_everything_agrees()
    real.assert_nothing_is_open(trials=3)
    until(lambda: not of_sweep(real, ""), seconds=10)


def test_no_member_outlives_a_driver_that_is_killed_and_its_trial_goes_on(real: Any) -> None:
    two = ["--set", "resources.workers=2", "--set", "train.tick_kimg=3"]
    gang: list[psutil.Process] = []

    def kill(driver: psutil.Process) -> None:
        gang.extend(members(real))
        driver.kill()

    real.run_until(lambda line: line.startswith("t001"), kill, "--space", SPACE, "--trials", "2", *two)
    assert len(gang) == 2
    print(f"{until(lambda: not of_sweep(real, 'ray::'), seconds=20):.1f} s until no process was left")
    assert real.run("--resume", "digits-0001") == 0, real.output
    attempts = [len(trial.user_attrs["attempts"]) for trial in real.trials().values()]
    assert attempts == [2, 1]
    real.assert_everything_agrees()
    real.assert_nothing_is_open(trials=2)
