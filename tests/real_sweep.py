"""Real sweeps, started as a user starts them and looked at from outside; for all tests that run one."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import optuna
import psutil
from mlflow import MlflowClient
from mlflow.entities import Run
from optuna.trial import FrozenTrial, TrialState

from sweeps.search import restored

HERE = Path(__file__).resolve().parent
ONCE = ("fid", "critic_loss", "generator_loss", "wasserstein", "heldout_gap", "gradient_norm")
"""Metrics that must be in MLflow just as the study has them, each tick once."""
PATIENCE = 240
"""Seconds after which a sweep of the tests hangs."""


def outcome(trial: FrozenTrial) -> str:
    """How the study says a trial ended."""
    if trial.state == TrialState.FAIL:
        return "failed"
    last = max((int(key[5:]) for key in trial.user_attrs if key.startswith("tick_")), default=0)
    ending = trial.user_attrs[f"tick_{last}"]["ending"] if last else None
    return ending[0] if ending else "interrupted"


class Sweep:
    """One sweep folder under `out`, and the processes that work on it.

    Attributes:
        trainer: the module that trains.
        environment: variables of the processes, None for one that is to be absent.
        within: a command that starts them, such as `unshare`.
        output: what the last process printed.
    """

    def __init__(self, out: Path, *, name: str = "digits", trainer: str = "wgangp.trainer") -> None:
        self.out = out
        self.folder = out / f"{name}-0001"
        self.trainer = trainer
        self.environment: dict[str, str | None] = {"MLFLOW_TRACKING_URI": None}
        self.within: list[str] = []
        self.output = ""

    def start(self, *arguments: str) -> subprocess.Popen:
        """Start the command line, as the leader of a process group of its own."""
        self.facts_file = self.out.with_name(f"{self.out.name}-facts.json")
        command = [*self.within, sys.executable, str(HERE / "driver.py"), str(self.facts_file), self.trainer]
        environment = os.environ | self.environment
        return subprocess.Popen(
            [*command, *arguments, "--out", str(self.out)],
            cwd=self.out,
            env={key: value for key, value in environment.items() if value is not None},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def run(self, *arguments: str) -> int:
        """Run to the end; the exit status."""
        process = self.start(*arguments)
        self.output, _ = process.communicate(timeout=PATIENCE)
        return process.returncode

    def run_until(
        self, seen: Callable[[str], bool], then: Callable[[psutil.Process], Any], *arguments: str
    ) -> int:
        """Run; at the first line that `seen` accepts call `then` with the process; the exit status."""
        process = self.start(*arguments)
        assert process.stdout is not None
        self.output, done = "", False
        for line in process.stdout:
            self.output += line
            if not done and seen(line):
                then(psutil.Process(process.pid))
                done = True
        assert done, f"the moment never came:\n{self.output}"
        return process.wait(timeout=PATIENCE)

    @property
    def facts(self) -> dict[str, Any]:
        return json.loads(self.facts_file.read_text())

    def trials(self) -> dict[str, FrozenTrial]:
        """Optuna's current trial of each label, read from the journal."""
        storage = self._storage()
        (study,) = storage.get_all_studies()
        trials = storage.get_all_trials(study._study_id)
        replaced = {trial.user_attrs.get("retry_of") for trial in trials}
        assert all(trial.state.is_finished() for trial in trials if trial.number in replaced)
        return {t.user_attrs["label"]: t for t in trials if t.number not in replaced}

    def _storage(self) -> optuna.storages.BaseStorage:
        journal = optuna.storages.journal.JournalFileBackend(str(self.folder / "study.log"))
        return optuna.storages.JournalStorage(journal)

    def outcomes(self) -> dict[str, str]:
        return {label: outcome(trial) for label, trial in self.trials().items()}

    def client(self) -> MlflowClient:
        return MlflowClient(tracking_uri=f"sqlite:///{self.out / 'mlflow.db'}")

    def runs(self) -> tuple[Run, dict[str, Run]]:
        """The parent run, and the child run of each label."""
        client = self.client()
        (experiment,) = [found for found in client.search_experiments() if found.name != "Default"]
        found = client.search_runs([experiment.experiment_id], max_results=1000)
        assert not client.search_runs(["0"])
        (parent,) = [run for run in found if "trial" not in run.data.tags]
        children = [run for run in found if "trial" in run.data.tags]
        assert all(run.data.tags["mlflow.parentRunId"] == parent.info.run_id for run in children)
        by_label = {run.data.tags["trial"]: run for run in children}
        assert len(by_label) == len(children)
        return parent, by_label

    def assert_everything_agrees(self) -> None:
        """Study, MLflow and disk tell the same of every trial, each value once."""
        client = self.client()
        trials, (_, runs) = self.trials(), self.runs()
        assert trials.keys() == runs.keys()
        for label, trial in trials.items():
            attrs, run = trial.user_attrs, runs[label]
            ticks = {
                int(key[5:]): value["metrics"] for key, value in attrs.items() if key.startswith("tick_")
            }
            assert list(ticks) == list(range(1, len(ticks) + 1))
            for name in (name for name in ONCE if name in ticks.get(1, {})):
                rows = [(row.step, row.value) for row in client.get_metric_history(run.info.run_id, name)]
                # What is not finite, in a tick that diverged, is recorded nowhere.
                known = [(tick["images_seen"], tick[name]) for tick in ticks.values() if name in tick]
                assert sorted(rows) == known, (label, name)
            kimg = float(run.data.params["tick_kimg"])
            files = [file.path for file in client.list_artifacts(run.info.run_id, "images")]
            for ending in (".png", "+compressed.webp"):  # what MLflow shows large, and small
                pictures = [path.split("+step+")[1].split("+")[0] for path in files if path.endswith(ending)]
                assert sorted(map(int, pictures)) == [round(kimg * 1000 * tick) for tick in ticks]
            assert not ticks or run.data.tags["mlflow.loggedImages"] == "True"  # or they are not shown
            assert run.data.tags["outcome"] == outcome(trial)
            assert run.data.tags["attempt"] == str(len(attrs["attempts"]))
            assert {name: run.data.params[name] for name in trial.params} == {
                name: str(restored(value)) for name, value in trial.params.items()
            }
            places = (self.folder / "trials").glob(f"*/{label}*/checkpoint_*")
            checkpoints = [path for path in places if re.fullmatch(rf"{label}(-\d+)?", path.parent.name)]
            assert {str(path.relative_to(self.folder)) for path in checkpoints} == {
                path for path, _ in attrs.get("checkpoints", [])
            }
            assert len(checkpoints) <= 2

    def assert_nothing_is_open(self, *, trials: int, finalists: Sequence[str] = ()) -> None:
        """A sweep that came to its end has the trials and runs that were asked for, all of them ended.

        `finalists`: the labels of their runs.
        """
        storage = self._storage()
        (study,) = storage.get_all_studies()
        everything = storage.get_all_trials(study._study_id)
        assert [trial.number for trial in everything if not trial.state.is_finished()] == []
        labels = [f"t{number:03d}" for number in range(1, trials + 1)]
        parent, runs = self.runs()
        assert sorted(self.trials()) == sorted(runs) == sorted([*labels, *finalists])
        assert {run.info.status for run in (parent, *runs.values())} == {"FINISHED"}
        best = self.client().get_metric_history(parent.info.run_id, "best_fid")
        assert len({row.step for row in best}) == len(best)
        asked = [trial for label, trial in self.trials().items() if label in labels]
        complete = [trial.value for trial in asked if trial.state == TrialState.COMPLETE]
        assert parent.data.metrics["best_fid"] == min(complete)
        outbox = self.folder / "outbox"
        assert int((outbox / "sent").read_text()) == (outbox / "lines.jsonl").stat().st_size
        assert not list(outbox.glob("*.png"))
        assert not list(self.folder.glob("study.log.lock"))
