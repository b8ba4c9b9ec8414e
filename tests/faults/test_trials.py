"""Trials that break, and what becomes of the others."""

from typing import Any


def test_an_exception_costs_one_trial_and_resume_retries_it_from_its_checkpoint(
    sweep: Any, space: str
) -> None:
    sweep.script(
        faults={
            1: [{"tick": 3, "do": "raise", "times": 1}],
            2: [{"tick": 2, "do": "raise", "times": 2}],
        }
    )
    assert sweep.run("--space", space) == 1, sweep.output
    assert sweep.fired() == ["1-3-raise-1", "2-2-raise-1", "2-2-raise-2"]
    assert sweep.outcomes() == {"t001": "complete", "t002": "failed", "t003": "complete"}
    sweep.assert_everything_agrees()
    _, runs = sweep.runs()
    assert runs["t002"].info.status == "FAILED"
    assert runs["t002"].data.tags["reason"] == "RuntimeError: the script says so at length"
    assert (
        "t002 failed: RuntimeError: the script says so at length" in (sweep.folder / "report.md").read_text()
    )

    done = len(sweep.ticks())
    assert sweep.run("--resume", "scripted-0001") == 0, sweep.output
    sweep.assert_everything_agrees()
    again = sweep.ticks()[done:]
    assert [(tick["gp_weight"], tick["tick"]) for tick in again] == [(2, 2), (2, 3), (2, 4)]
    after, runs_after = sweep.runs()
    assert runs_after["t002"].info.run_id == runs["t002"].info.run_id
    assert {run.info.status for run in (after, *runs_after.values())} == {"FINISHED"}
    assert sweep.trials()["t002"].value == sweep.trials()["t001"].value
