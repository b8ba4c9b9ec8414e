"""Three real sweeps: to the end, interrupted and resumed, with a worker killed."""

import csv
import json
import os
import shlex
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest
from optuna.trial import TrialState
from PIL import Image

from wgangp.settings_file import read

SERVED = """
import mlflow, numpy
generator = mlflow.pyfunc.load_model("models:/digits@best")
images = generator.predict(numpy.random.default_rng(0).normal(size=(3, 128)).astype("float32"))
print(images.shape, images.dtype, bool(images.std() > 0.1))
"""


def test_a_sweep_runs_to_the_end_and_everything_agrees(sweep: Any, space: str) -> None:
    assert sweep.run("--space", space) == 0, sweep.output
    trials, (parent, runs) = sweep.trials(), sweep.runs()

    sweep.assert_everything_agrees()
    ended = sweep.outcomes()
    assert list(ended) == [f"t{number:03d}" for number in range(1, 9)]
    assert ended["t001"] == "complete" and trials["t001"].user_attrs["baseline"]
    assert runs["t001"].data.tags["baseline"] == "True"
    assert Counter(ended.values())["pruned"] >= 1
    for label, trial in trials.items():
        expected = TrialState.COMPLETE if ended[label] == "complete" else TrialState.PRUNED
        assert trial.state == expected
        assert runs[label].info.status == "FINISHED"

    best = min((t for t in trials.values() if t.state == TrialState.COMPLETE), key=lambda t: t.value)
    label = best.user_attrs["label"]
    assert parent.info.status == "FINISHED"
    assert parent.data.tags["best_trial"] == label
    assert parent.data.metrics["best_fid"] == best.value
    assert parent.data.tags["git_commit"] and parent.data.tags["version_tensorflow"]
    winner = read(sweep.folder / "best.yaml").values
    assert winner["from"]["trial"] == label
    assert {name: winner[name] for name in best.params} == best.params
    assert label in (sweep.folder / "report.md").read_text()
    scores = json.loads((sweep.folder / "best" / "scores.json").read_text())["scores"][label]
    # Fresh noise is another draw of the same generator: close to the score, and not the same.
    assert scores["fid_fresh"] != best.value
    assert abs(scores["fid_fresh"] - best.value) < 3 + 0.5 * best.value
    assert scores["fid_at_infinity"] < scores["fid_fresh"] + 3 * scores["fid_standard_error"]
    tags = runs[label].data.tags
    assert tags["features_sha256"] == parent.data.tags["features_sha256"] == winner["from"]["features_sha256"]
    said = {run.data.tags.get("verdict") for run in runs.values()}
    assert said & {"improving", "plateaued", "oscillating"}
    assert {"fid_standard_error", "recall", "diversity"} <= runs[label].data.metrics.keys()

    version = sweep.client().get_model_version_by_alias("digits", "best")
    assert version.tags["trial"] == label
    drawn = subprocess.run(
        [sys.executable, "-c", SERVED],
        env={**os.environ, "MLFLOW_TRACKING_URI": f"sqlite:///{sweep.out / 'mlflow.db'}"},
        cwd=sweep.out,
        check=True,
        capture_output=True,
        text=True,
    )
    assert drawn.stdout.splitlines()[-1] == "(3, 8, 8, 1) float32 True"
    (draw,) = [line for line in sweep.output.splitlines() if line.startswith("Draw from the winner: ")]
    command = shlex.split(draw.removeprefix("Draw from the winner: "))
    subprocess.run([*command, "--out", "drawn.png"], cwd=sweep.out, check=True, capture_output=True)
    assert Image.open(sweep.out / "drawn.png").size == (8 * 8, 8 * 8)

    (train,) = [line for line in sweep.output.splitlines() if line.startswith("Train the winner: ")]
    command = shlex.split(train.removeprefix("Train the winner: "))
    subprocess.run([*command, "--set", "budget_kimg=6"], cwd=sweep.out, check=True, capture_output=True)
    with (sweep.out / "runs" / "train-0001" / "metrics.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert int(row["images_seen"]) == best.user_attrs["tick_1"]["metrics"]["images_seen"]
    assert 0 < float(row["fid"]) < 1000

    (state,) = (sweep.folder / "trials" / "001").glob("experiment_state-*.json")
    workers = Counter(
        json.loads(metadata)["last_result"]["pid"] if "last_result" in metadata else None
        for _, metadata in json.loads(state.read_text())["trial_data"]
    )
    assert max(workers.values()) > 1, "no worker took a second trial"
    assert sweep.facts["tensorflow"] is False
    assert sweep.facts["peak_bytes"] < 600e6


def test_an_interrupted_sweep_goes_on_where_it_stopped(sweep: Any, space: str) -> None:
    def third_tick(line: str) -> bool:
        return line.startswith(("t001  18", "t002  18"))

    status = sweep.run_until(third_tick, lambda driver: driver.terminate(), "--space", space)
    assert status == 130, sweep.output
    assert f"--resume {sweep.folder}" in sweep.output
    before = sweep.trials()
    parent, runs = sweep.runs()
    assert parent.info.status == "KILLED"
    live = [label for label, trial in before.items() if trial.state == TrialState.RUNNING]
    assert live and {runs[label].info.status for label in live} == {"KILLED"}
    assert {runs[label].data.tags["outcome"] for label in live} == {"interrupted"}

    assert sweep.run("--resume", "digits-0001") == 0, sweep.output
    sweep.assert_everything_agrees()
    after = sweep.trials()
    assert len(after) == 8
    for label in live:
        assert after[label].number == before[label].number
        assert len(after[label].user_attrs["attempts"]) == 2
        done = [key for key in before[label].user_attrs if key.startswith("tick_")]
        assert {key: after[label].user_attrs[key] for key in done} == {
            key: before[label].user_attrs[key] for key in done
        }
    parent_after, runs_after = sweep.runs()
    assert parent_after.info.run_id == parent.info.run_id
    assert {label: runs_after[label].info.run_id for label in runs} == {
        label: run.info.run_id for label, run in runs.items()
    }
    assert {run.info.status for run in (parent_after, *runs_after.values())} == {"FINISHED"}


def test_a_killed_worker_costs_one_trial_and_resume_mends_it(
    sweep: Any, space: str, kill_worker: Any
) -> None:
    options = ["--space", space, "--set", "sweep.retries=0", "--trials", "4"]
    status = sweep.run_until(lambda line: line.startswith("t001  6"), kill_worker, *options)
    assert status == 1, sweep.output
    ended = sweep.outcomes()
    (failed,) = [label for label, outcome in ended.items() if outcome == "failed"]
    assert len(ended) == 4
    assert sweep.trials()[failed].state == TrialState.FAIL
    _, runs = sweep.runs()
    assert runs[failed].info.status == "FAILED"
    assert "died" in runs[failed].data.tags["reason"]
    sweep.assert_everything_agrees()

    others = {label: runs[label].info.end_time for label in runs if label != failed}
    assert sweep.run("--resume", "digits-0001") == 0, sweep.output
    assert "failed" not in sweep.outcomes().values()
    sweep.assert_everything_agrees()
    _, runs_after = sweep.runs()
    assert runs_after[failed].info.run_id == runs[failed].info.run_id
    assert {label: runs_after[label].info.end_time for label in others} == others


def test_trials_train_mirrored_whatever_tf_config_is_inherited(
    sweep: Any, space: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = {
        "cluster": {"worker": ["127.0.0.1:9", "127.0.0.1:10"]},
        "task": {"type": "worker", "index": 1},
    }
    monkeypatch.setenv("TF_CONFIG", json.dumps(elsewhere))
    resources = ["--set", "resources.strategy=mirrored", "--set", "resources.cpus=2"]
    budget = ["--trials", "2", "--set", "train.budget_kimg=12"]
    assert sweep.run("--space", space, *resources, *budget) == 0, sweep.output
    assert "2 replica(s)" in sweep.output
    sweep.assert_everything_agrees()
