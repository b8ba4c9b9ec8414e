"""A worker, called as Ray calls it, with a trainer that follows a script."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sweeps.records import Assignment, TrialFailed, WorkerFull
from sweeps.trial import SweepTrial
from wgangp.config import TrainConfig

TRAINER = "tests.scripted_trainer"
Worker = Callable[..., SweepTrial]


def assignment(label: str = "t001", **changes: Any) -> dict[str, Assignment]:
    config = TrainConfig(budget_kimg=36, tick_kimg=9, gp_weight=7)
    given: dict[str, Any] = {"checkpoints": [], "core_seconds": {}} | changes
    return {"assignment": Assignment(label, 1, config, {"gp_weight": 7}, False, "", **given)}


def checkpoint(folder: Path, tick: int) -> Path:
    folder.mkdir()
    np.save(folder / "tick.npy", tick)
    return folder


@pytest.fixture
def scripted() -> Any:
    import importlib

    return importlib.import_module(TRAINER)


@pytest.fixture
def worker(tmp_path: Path, scripted: Any, monkeypatch: pytest.MonkeyPatch) -> Worker:
    prepared = scripted.prepare(TrainConfig(), cache=tmp_path, say=lambda line: None)
    monkeypatch.setattr("sweeps.trial.ray.get", lambda reference: prepared)

    def start(config: dict[str, Assignment], *, memory_limit: float = 1e12) -> SweepTrial:
        resources = {"strategy": "auto", "cpus": 2, "gpus": 0}
        made = SweepTrial.__new__(SweepTrial)
        made._last_result = None
        shared = {"prepared": None, "trainer": TRAINER, "resources": resources, "roles": {}, "cores": 2}
        made.setup(config, shared | {"memory_limit": memory_limit})
        return made

    return start


def test_each_step_is_a_tick_and_the_last_says_complete(worker: Worker) -> None:
    trial = worker(assignment())
    results = [trial.step() for _ in range(4)]
    assert [result["tick"] for result in results] == [1, 2, 3, 4]
    assert [result["outcome"] for result in results] == [None, None, None, "complete"]
    assert {result["label"] for result in results} == {"t001"}
    spent = [result["metrics"]["core_seconds"] for result in results]
    assert spent == sorted(spent) and spent[0] > 0


def test_the_next_trial_takes_the_worker_over_warm(worker: Worker, scripted: Any) -> None:
    before = scripted.Trainer.built
    trial = worker(assignment())
    trial.step()
    assert trial.reset_config(assignment("t002")) is True
    result = trial.step()
    assert (result["label"], result["tick"]) == ("t002", 1)
    assert scripted.Trainer.built == before + 1


def test_an_attempt_goes_on_from_the_newest_checkpoint_that_holds(worker: Worker, tmp_path: Path) -> None:
    older, newer = checkpoint(tmp_path / "older", 1), checkpoint(tmp_path / "newer", 2)
    spent = {1: 100.0, 2: 200.0}
    result = worker(assignment(checkpoints=[newer, older], core_seconds=spent)).step()
    assert result["tick"] == 3
    assert 200 < result["metrics"]["core_seconds"] < 220

    (newer / "tick.npy").write_bytes(b"half")
    result = worker(assignment(checkpoints=[newer, older], core_seconds=spent)).step()
    assert result["tick"] == 2
    assert 100 < result["metrics"]["core_seconds"] < 120

    (older / "tick.npy").unlink()
    assert worker(assignment(checkpoints=[newer, older], core_seconds=spent)).step()["tick"] == 1


def test_whatever_breaks_comes_back_as_one_line(worker: Worker, tmp_path: Path) -> None:
    (tmp_path / "script.json").write_text(
        json.dumps({"faults": {"7": [{"tick": 1, "do": "raise", "times": 1}]}})
    )
    with pytest.raises(TrialFailed, match=r"^RuntimeError: the script says so at length$"):
        worker(assignment()).step()


def test_a_worker_past_its_memory_limit_gives_way_before_its_next_trial(worker: Worker) -> None:
    trial = worker(assignment(), memory_limit=1)
    assert trial.step()["tick"] == 1  # never during a trial
    trial.reset_config(assignment("t002"))
    with pytest.raises(WorkerFull, match=r"GB used, the limit is 0\.0 GB"):
        trial.step()


def test_pictures_do_not_stay_in_what_ray_keeps(worker: Worker, tmp_path: Path) -> None:
    trial = worker(assignment())
    trial._last_result = trial.step()
    trial.save_checkpoint(str(tmp_path))
    assert "samples" not in trial._last_result and trial._last_result["tick"] == 1
    assert (tmp_path / "tick.npy").exists()
