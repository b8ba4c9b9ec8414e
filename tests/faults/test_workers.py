"""Workers that die, at work and idle, that are too large, and what becomes of their trials."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest
from optuna.trial import TrialState

from sweeps import space_file, tuning
from sweeps.sweep import run_sweep
from tests.processes import until
from tests.real_sweep import PATIENCE, Sweep

DIED = "the worker process died (killed, or it crashed)"


def saved(sweep: Any, label: str) -> int:
    """The tick of the newest recorded checkpoint of a trial, 0 if there is none."""
    if not (sweep.folder / "study.log").exists():
        return 0
    trial = sweep.trials().get(label)
    return trial.user_attrs.get("checkpoints", [[None, 0]])[0][1] if trial else 0


def worker_of(sweep: Any, weight: int) -> psutil.Process:
    """The process that did the last tick of a trial."""
    return psutil.Process([tick["pid"] for tick in sweep.ticks() if tick["gp_weight"] == weight][-1])


def attempts(sweep: Any) -> dict[str, int]:
    return {label: len(trial.user_attrs["attempts"]) for label, trial in sweep.trials().items()}


def test_a_worker_killed_at_work_costs_its_trial_a_retry_and_nothing_else(sweep: Any, space: str) -> None:
    sweep.script(seconds=0.7)
    process = sweep.start("--space", space)
    killed = []
    for weight, tick in [(1, 1), (2, 1), (1, 2)]:
        until(lambda weight=weight, tick=tick: saved(sweep, f"t00{weight}") >= tick)
        killed.append(worker_of(sweep, weight))
        killed[-1].kill()
    sweep.output, _ = process.communicate(timeout=PATIENCE)

    assert process.returncode == 1, sweep.output
    assert sweep.outcomes() == {"t001": "failed", "t002": "complete", "t003": "complete"}
    assert attempts(sweep) == {"t001": 2, "t002": 2, "t003": 1}
    sweep.assert_everything_agrees()
    _, runs = sweep.runs()
    assert runs["t001"].data.tags["reason"] == DIED and runs["t001"].info.status == "FAILED"
    assert f"t001 failed: {DIED}" in (sweep.folder / "report.md").read_text()
    assert f"t002: attempt 1 ended: {DIED}; it will be tried again" in sweep.output
    # Each tick was trained once: an attempt goes on from the checkpoint of the one before.
    done = Counter((tick["gp_weight"], tick["tick"]) for tick in sweep.ticks())
    assert {key: done[key] for key in [(2, 1), (2, 4), (3, 1), (3, 4)]} == dict.fromkeys(
        [(2, 1), (2, 4), (3, 1), (3, 4)], 1
    )
    assert not [pid for pid in killed if pid.is_running()]


def test_a_worker_that_dies_idle_costs_no_trial_an_attempt(sweep: Any, space: str) -> None:
    # Trial 2 waits until the others have ended and their worker is dead; then it breaks and needs a worker.
    wait, broken = {"tick": 1, "do": "wait", "times": 1}, {"tick": 2, "do": "raise", "times": 1}
    sweep.script(faults={2: [wait, broken]})
    process = sweep.start("--space", space, "--set", "sweep.max_concurrent=2")
    until(lambda: saved(sweep, "t003") == 4 and sweep.trials()["t003"].state == TrialState.COMPLETE)
    idle = worker_of(sweep, 3)
    assert idle.is_running()
    idle.kill()
    (sweep.cache / "go").touch()
    sweep.output, _ = process.communicate(timeout=PATIENCE)

    assert process.returncode == 0, sweep.output
    assert sweep.fired() == ["2-1-wait-1", "2-2-raise-1"]
    # One retry is allowed: the dead worker, found when trial 2 was tried again, is not its fault.
    said = "t002: attempt 2 ended: the worker had died while it waited for a trial; it will be tried again"
    assert said in sweep.output
    assert attempts(sweep) == {"t001": 1, "t002": 3, "t003": 1}
    assert set(sweep.outcomes().values()) == {"complete"}
    sweep.assert_everything_agrees()


def test_a_start_that_breaks_is_a_fault_like_any_other(sweep: Any, space: str) -> None:
    sweep.script(broken_builds=1, faults={3: [{"tick": 0, "do": "raise", "times": 1}]})
    assert sweep.run("--space", space) == 0, sweep.output

    assert sweep.fired() == ["3-0-raise-1", "build-1"]
    assert sorted(attempts(sweep).values()) == [1, 2, 2]
    assert "attempt 1 ended: RuntimeError: the script wants no trainer; it will be tried" in sweep.output
    assert "t003: attempt 1 ended: RuntimeError: the script says so at length; it will" in sweep.output
    sweep.assert_everything_agrees()


def test_a_worker_that_eats_the_memory_is_ended_by_ray_and_its_trial_goes_on(sweep: Any, space: str) -> None:
    order = {"tick": 2, "do": "allocate", "megabytes": sweep.run_short_of_memory(), "times": 1}
    sweep.script(faults={1: [order]}, seconds=0.3)
    assert sweep.run("--space", space) == 0, sweep.output

    assert sweep.fired() == ["1-2-allocate-1"]
    said = "t001: attempt 1 ended: the worker was ended because memory ran out; it will be tried again"
    assert said in sweep.output
    assert sweep.outcomes() == dict.fromkeys(["t001", "t002", "t003"], "complete")
    assert attempts(sweep)["t001"] in (2, 3)  # Ray may end the idle worker with it, which is no charge
    sweep.assert_everything_agrees()


def test_a_worker_past_its_memory_limit_gives_way_to_a_fresh_one_at_no_charge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, space: str
) -> None:
    monkeypatch.setenv("WGANGP_CACHE", str(tmp_path))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setattr(tuning, "MEMORY_LIMIT", 1)
    four = space_file.load(Path(space), overrides=["sweep.trials=4", "sweep.retries=0"])
    result = run_sweep(four, out=tmp_path / "runs", trainer="tests.scripted_trainer")

    assert result.exit_status == 0
    assert [record.ending.outcome for record in result.records if record.ending] == ["complete"] * 4
    ticks = [json.loads(line) for line in (tmp_path / "ticks.jsonl").read_text().splitlines()]
    workers = {(tick["gp_weight"], tick["pid"]) for tick in ticks}
    assert len({pid for _, pid in workers}) == len(workers) == 4


def test_one_worker_trains_networks_of_two_shapes_in_turn(tmp_path: Path, space: str) -> None:
    (tmp_path / "shapes.yaml").write_text("""
name: shapes
search: {width: {type: categorical, choices: [8, 16]}}
enqueue: [{width: 8}, {width: 16}, {width: 8}, {width: 16}]
train: {dataset: digits, batch_size: 32, budget_kimg: 4, tick_kimg: 2, fid_samples: 500}
pruner: {name: none}
sweep: {trials: 4, retries: 0, max_concurrent: 1}
""")
    sweep = Sweep(tmp_path, name="shapes")
    assert sweep.run("--space", "shapes.yaml") == 0, sweep.output

    assert set(sweep.outcomes().values()) == {"complete"}
    sweep.assert_everything_agrees()
    (state,) = (sweep.folder / "trials" / "001").glob("experiment_state-*.json")
    results = [
        json.loads(metadata)["last_result"] for _, metadata in json.loads(state.read_text())["trial_data"]
    ]
    assert len({result["pid"] for result in results}) == 1 and len(results) == 4
    # The third and the fourth find their networks compiled.
    begun = [trial.user_attrs["tick_1"]["metrics"]["startup_seconds"] for trial in sweep.trials().values()]
    print("seconds before the first tick", begun)
