"""Several trials, and several sweeps, at once."""

import json
from pathlib import Path
from typing import Any

import pytest
from mlflow import MlflowClient

from tests.faults.conftest import ScriptedSweep
from tests.real_sweep import PATIENCE


def most_at_once(ticks: list[dict[str, Any]]) -> int:
    """How many ticks, of any worker, ran at one moment."""
    moments = [(tick["begin"], 1) for tick in ticks] + [(tick["end"], -1) for tick in ticks]
    running = most = 0
    for _, change in sorted(moments):
        running += change
        most = max(most, running)
    return most


@pytest.mark.usefixtures("warm")
def test_a_resume_with_a_backlog_runs_no_more_at_once_than_the_sweep_may(sweep: Any, space: str) -> None:
    # Trials 1 and 2 fail, 3 and 4 are interrupted, 5 and 6 have not been asked for.
    broken = [{"tick": 2, "do": "raise"}]
    sweep.script(seconds=0.5, faults={1: broken, 2: broken})
    arguments = ["--space", space, "--trials", "6", "--set", "sweep.retries=0"]
    status = sweep.run_until(
        lambda line: line.startswith("t004  9"),
        lambda driver: driver.terminate(),
        *(*arguments, "--set", "sweep.max_concurrent=2"),
    )
    assert status == 130 and most_at_once(sweep.ticks()) == 2
    assert list(sweep.outcomes().values()) == ["failed", "failed", "interrupted", "interrupted"]

    before = len(sweep.ticks())
    sweep.script(seconds=0.2)
    assert sweep.run("--resume", "scripted-0001") == 0, sweep.output
    assert most_at_once(sweep.ticks()[before:]) == 2
    assert len(sweep.outcomes()) == 6
    sweep.assert_everything_agrees()


@pytest.mark.usefixtures("warm")
def test_one_at_a_time_is_one_at_a_time_on_resume_too(sweep: Any, space: str) -> None:
    sweep.script(faults={1: [{"tick": 2, "do": "raise"}]})
    arguments = ["--space", space, "--set", "sweep.max_concurrent=1", "--set", "sweep.retries=0"]
    status = sweep.run_until(
        lambda line: line.startswith("t002  9"), lambda driver: driver.terminate(), *arguments
    )
    assert status == 130
    assert list(sweep.outcomes().values()) == ["failed", "interrupted"]

    sweep.script(seconds=0.1)
    assert sweep.run("--resume", "scripted-0001") == 0, sweep.output
    assert most_at_once(sweep.ticks()) == 1
    sweep.assert_everything_agrees()


@pytest.mark.parametrize("store", ["its own", "shared"])
def test_two_sweeps_of_one_space_started_at_once_keep_apart(tmp_path: Path, space: str, store: str) -> None:
    first = ScriptedSweep(tmp_path / "out")
    uri = f"sqlite:///{tmp_path}/shared.db" if store == "shared" else f"sqlite:///{first.out}/mlflow.db"
    if store == "shared":
        first.environment["MLFLOW_TRACKING_URI"] = uri
    first.script(seconds=0.3)
    processes = [first.start("--space", space) for _ in range(2)]
    outputs = [process.communicate(timeout=PATIENCE)[0] for process in processes]

    assert [process.returncode for process in processes] == [0, 0], outputs
    client = MlflowClient(tracking_uri=uri)
    (experiment,) = [found for found in client.search_experiments() if found.name != "Default"]
    assert not client.search_runs(["0"])
    runs = client.search_runs([experiment.experiment_id])
    names = ["scripted-0001", "scripted-0002"]
    assert sorted(run.info.run_name for run in runs) == sorted(
        [*names, *(f"{name}-t00{number}" for name in names for number in (1, 2, 3))]
    )
    assert {run.info.status for run in runs} == {"FINISHED"}
    ids = {run.data.tags["sweep"]: run.data.tags["sweep_id"] for run in runs}
    assert sorted(ids) == names and len({run.data.tags["sweep_id"] for run in runs}) == 2
    for name in names:
        lines = (first.out / name / "outbox" / "lines.jsonl").read_text().splitlines()
        assert all(json.loads(line) for line in lines)
        (parent,) = [run for run in runs if run.info.run_name == name]
        for run in runs:
            if run.data.tags["sweep"] == name and run is not parent:
                assert run.data.tags["mlflow.parentRunId"] == parent.info.run_id
                rows = client.get_metric_history(run.info.run_id, "fid")
                assert sorted(row.step for row in rows) == [9000, 18000, 27000, 36000]
        first.folder = first.out / name
        assert set(first.outcomes().values()) == {"complete"} and len(first.trials()) == 3


def test_a_sweep_that_runs_is_not_resumed_a_second_time(sweep: Any, space: str) -> None:
    sweep.script(seconds=2)
    again = ScriptedSweep.__new__(ScriptedSweep)
    again.__dict__.update(sweep.__dict__)

    def resume(driver: Any) -> None:
        assert again.run("--resume", "scripted-0001") == 2
        (line,) = again.output.splitlines()
        assert line.startswith(f"scripted-0001: is running already: process {driver.pid} on ")

        sweep.script()

    status = sweep.run_until(lambda line: line.startswith("t00"), resume, "--space", space)
    assert status == 0, sweep.output
    sweep.assert_everything_agrees()
