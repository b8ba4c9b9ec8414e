"""Real Ray, Optuna and MLflow with a scripted trainer: what happens to trials that break."""

import json
from pathlib import Path

import pytest
from mlflow import MlflowClient

from sweeps import space_file
from sweeps.sweep import resume_sweep, run_sweep

TRAINER = "tests.scripted_trainer"
SPACE = """
name: scripted
search: {gp_weight: {type: categorical, choices: [1, 2, 3, 4]}}
enqueue: [{gp_weight: 1}, {gp_weight: 2}, {gp_weight: 3}]
train: {budget_kimg: 36, tick_kimg: 9, generator_lr: 0.01}
pruner: {name: none}
sweep: {trials: 3, retries: 1, seed: 0}
"""
FAULTS = {
    "1": [{"tick": 3, "do": "raise", "times": 1}],
    "2": [{"tick": 2, "do": "raise", "times": 2}],
}


def test_a_broken_trial_is_tried_again_from_its_checkpoint_then_fails_alone_and_resume_retries_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WGANGP_CACHE", str(tmp_path))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    # Trial 1 breaks once and is retried; trial 2 breaks as often as retries allow and once more.
    (tmp_path / "script.json").write_text(json.dumps({"faults": FAULTS}))
    (tmp_path / "scripted.yaml").write_text(SPACE)
    space = space_file.load(tmp_path / "scripted.yaml")

    result = run_sweep(space, out=tmp_path / "runs", trainer=TRAINER)
    records = {record.label: record for record in result.records}
    outcomes = {label: record.ending.outcome for label, record in records.items() if record.ending}
    assert outcomes == {"t001": "complete", "t002": "failed", "t003": "complete"}
    assert {label: record.attempt for label, record in records.items()} == {"t001": 2, "t002": 2, "t003": 1}
    assert records["t002"].last_error == "RuntimeError: the script says so at length"
    assert list(records["t002"].ticks) == [1]
    assert result.exit_status == 1

    result = resume_sweep(result.folder, trainer=TRAINER)
    records = {record.label: record for record in result.records}
    assert {label: record.attempt for label, record in records.items()} == {"t001": 2, "t002": 3, "t003": 1}
    assert result.exit_status == 0

    client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path / 'runs' / 'mlflow.db'}")
    (experiment,) = [found for found in client.search_experiments() if found.name == "scripted"]
    runs = client.search_runs([experiment.experiment_id])
    assert len(runs) == 4 and {run.info.status for run in runs} == {"FINISHED"}
    for run in runs:
        if "trial" in run.data.tags:
            steps = [row.step for row in client.get_metric_history(run.info.run_id, "fid")]
            assert sorted(steps) == [9000, 18000, 27000, 36000]
