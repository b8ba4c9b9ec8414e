"""Trials that break, and what becomes of the others."""

from typing import Any

import pytest
from optuna.trial import TrialState

pytestmark = pytest.mark.usefixtures("warm")


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


def test_a_diverged_trial_ends_at_its_tick_is_not_retried_and_an_exploded_penalty_goes_on(
    sweep: Any, space: str
) -> None:
    sweep.script(faults={1: [{"tick": 2, "do": "diverge"}], 2: [{"tick": 1, "do": "explode"}]})
    assert sweep.run("--space", space) == 0, sweep.output
    assert sweep.fired() == ["1-2-diverge-1", "2-1-explode-1"]
    assert sweep.outcomes() == {"t001": "diverged", "t002": "complete", "t003": "complete"}
    diverged = sweep.trials()["t001"]
    assert diverged.state == TrialState.PRUNED and diverged.constraints == {"diverged": 1.0}
    assert "critic_loss" not in diverged.user_attrs["tick_2"]["metrics"]
    parent, runs = sweep.runs()
    assert runs["t001"].info.status == "FINISHED"
    assert runs["t001"].data.tags["reason"] == "critic_loss is not finite"
    assert runs["t002"].data.metrics["gradient_penalty"] == 1e12
    assert parent.data.tags["best_trial"] in ("t002", "t003")
    assert "t001 diverged: critic_loss is not finite" in (sweep.folder / "report.md").read_text()

    done = len(sweep.ticks())
    assert sweep.run("--resume", "scripted-0001") == 0, sweep.output
    assert len(sweep.ticks()) == done


def test_when_all_diverge_that_is_one_line(sweep: Any, space: str) -> None:
    sweep.script(faults={weight: [{"tick": 1, "do": "diverge"}] for weight in (1, 2, 3)})
    assert sweep.run("--space", space) == 1, sweep.output
    assert "Traceback" not in sweep.output and "--resume" not in sweep.output
    (said,) = [line for line in sweep.output.splitlines() if "no winner" in line]
    assert said == (
        "All 3 trials diverged (t001: critic_loss is not finite), so there is no winner."
        " Start a new sweep with lower learning rates."
    )
