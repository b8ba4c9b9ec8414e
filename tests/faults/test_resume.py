"""What `--resume` goes on with: the same trials, offers and pruning, and nothing that was changed."""

from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.faults.conftest import ScriptedSweep
from tests.processes import until

pytestmark = pytest.mark.usefixtures("warm")

HALVED = """
name: scripted
search:
  gp_weight: {type: float, low: 1, high: 1000, step: 1}
  generator_lr: {type: float, low: 1e-4, high: 1e-2, log: true}
enqueue: [{gp_weight: 1, generator_lr: 0.001}]
train: {budget_kimg: 36, tick_kimg: 9}
sampler: {name: tpe, n_startup_trials: 3}
pruner: {name: successive_halving, first_rung_kimg: 9, reduction_factor: 2}
sweep: {trials: 9, retries: 1, seed: 0, max_concurrent: 1}
"""


@pytest.fixture(scope="session")
def halved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("space") / "scripted.yaml"
    path.write_text(HALVED)
    return path


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, halved: Path) -> dict[str, Any]:
    """What an uninterrupted sweep, one trial at a time, comes to."""
    sweep = ScriptedSweep(tmp_path_factory.mktemp("undisturbed"))
    assert sweep.run("--space", str(halved)) == 0, sweep.output
    told = story(sweep)
    assert {outcome for _, outcome, _ in told.values()} == {"complete", "pruned"}
    return told


def story(sweep: ScriptedSweep) -> dict[str, Any]:
    """Of each trial: its settings, how it ended, its best FID at each tick."""
    outcomes = sweep.outcomes()
    return {
        label: (trial.params, outcomes[label], trial.intermediate_values)
        for label, trial in sweep.trials().items()
    }


def test_the_same_trials_are_offered_and_pruned_however_often_a_sweep_is_stopped(
    sweep: ScriptedSweep, halved: Path, undisturbed: dict[str, Any]
) -> None:
    sweep.script(seconds=0.1)
    arguments = ["--space", str(halved)]
    for line, stop, status in (
        ("t002  9.0", "terminate", 130),
        ("t004  9.0", "kill", -9),
        ("t006  9.0", "kill", -9),
        ("t009  9.0", "terminate", 130),
    ):

        def reached(said: str, line: str = line) -> bool:
            return said.startswith(line)

        def end(driver: Any, stop: str = stop) -> None:
            getattr(driver, stop)()

        assert sweep.run_until(reached, end, *arguments) == status, sweep.output
        arguments = ["--resume", "scripted-0001"]
    assert sweep.run(*arguments) == 0, sweep.output
    assert story(sweep) == undisturbed
    sweep.assert_everything_agrees()
    sweep.assert_nothing_is_open(trials=9)


def test_a_finished_sweep_grows_as_if_it_had_been_larger_from_the_start(
    sweep: ScriptedSweep, halved: Path, undisturbed: dict[str, Any]
) -> None:
    assert sweep.run("--space", str(halved), "--trials", "5") == 0, sweep.output
    first = sweep.trials()
    assert len(first) == 5

    assert sweep.run("--resume", "scripted-0001", "--trials", "9") == 0, sweep.output
    assert story(sweep) == undisturbed
    assert {label: trial.datetime_complete for label, trial in sweep.trials().items() if label in first} == {
        label: trial.datetime_complete for label, trial in first.items()
    }
    sweep.assert_everything_agrees()
    sweep.assert_nothing_is_open(trials=9)

    assert sweep.run("--resume", "scripted-0001") == 0, sweep.output
    assert (len(sweep.trials()), len(sweep.ticks())) == (
        9,
        sum(len(values) for _, _, values in undisturbed.values()),
    )
    assert sweep.run("--resume", "scripted-0001", "--trials", "8") == 2
    assert sweep.output == "--trials: must be at least the 9 trials of this sweep, got 8; it only grows.\n"


def test_what_was_changed_is_refused_key_by_key_before_anything_starts(
    sweep: ScriptedSweep, halved: Path, tmp_path: Path
) -> None:
    assert sweep.run("--space", str(halved), "--trials", "2") == 0, sweep.output
    changed = tmp_path / "changed.yaml"
    changed.write_text(HALVED.replace("budget_kimg: 36", "budget_kimg: 72").replace("1e-2, log", "1, log"))
    last = "Start a new sweep to change settings; only --trials can grow."

    assert sweep.run("--resume", "scripted-0001", "--space", str(changed)) == 2
    assert sweep.output.splitlines() == [
        "changed.yaml:5: search.generator_lr.high: must be 0.01 as the sweep was started with, got 1.0",
        "changed.yaml:7: train.budget_kimg: must be 36 as the sweep was started with, got 72",
        last,
    ]
    frozen = sweep.folder / "space.yaml"
    kept = frozen.read_text()
    frozen.write_text(kept.replace("budget_kimg: 36", "budget_kimg: 72"))
    assert frozen.read_text() != kept
    for more in (["--check"], ["--check", "--offline"], []):
        assert sweep.run("--resume", "scripted-0001", *more) == 2
        said, also = sweep.output.splitlines()
        assert said.startswith("space.yaml:")
        assert "train.budget_kimg: must be 36 as the sweep was started with, got 72" in said
        assert also == last
    frozen.write_text(kept)
    assert sweep.run("--resume", "scripted-0001", "--space", str(halved), "--trials", "3") == 0, sweep.output
    assert len(sweep.trials()) == 3


def test_check_tells_what_resume_would_do_and_changes_nothing(sweep: ScriptedSweep, space: str) -> None:
    sweep.script(seconds=0.3, faults={1: [{"tick": 2, "do": "raise", "times": 2}]})
    status = sweep.run_until(
        lambda line: line.startswith("t003  9.0"),
        lambda driver: driver.kill(),
        *("--space", space, "--trials", "5", "--set", "sweep.max_concurrent=1"),
    )
    assert status == -9
    workers = {tick["pid"] for tick in sweep.ticks()}
    until(lambda: not any(map(psutil.pid_exists, workers)))  # one may still save a checkpoint
    before = {path: path.stat().st_mtime_ns for path in sweep.folder.rglob("*")}

    assert sweep.run("--resume") == 0
    state = "scripted-0001  interrupted: 2 of 5 trials ended, 1 failed, 1 interrupted, best FID 100.0 (t002)"
    assert sweep.output.splitlines() == [state.replace("2 of 5", "1 of 5")]
    assert sweep.run("--resume", "scripted-0001", "--check", "--offline") == 0
    plan = sweep.output.splitlines()
    assert plan[0] == "  scripted-0001: 1 of 5 trials ended"
    assert plan[1].startswith(
        "  t001 failed (RuntimeError: the script says so at length): goes on after 9 kimg"
    )
    assert plan[2].startswith("  t003 interrupted: ")
    assert plan[3] == "  2 trials still to be proposed"
    assert {path: path.stat().st_mtime_ns for path in sweep.folder.rglob("*")} == before
    assert sweep.run("--resume", "scripted-0001", "--check") == 0, sweep.output
    assert all(line in sweep.output for line in plan)
    assert {path: path.stat().st_mtime_ns for path in sweep.folder.rglob("*")} == before

    assert sweep.run("--resume", "scripted-0001") == 0, sweep.output
    assert sweep.run("--resume") == 0
    assert sweep.output == "scripted-0001  complete: 5 of 5 trials ended, best FID 100.0 (t001)\n"
    assert sweep.run("--resume", "scripted-0001", "--check", "--offline") == 0
    assert sweep.output.splitlines()[-1] == "  nothing is left to do; --trials N extends it"
