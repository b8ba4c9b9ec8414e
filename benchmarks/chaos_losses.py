"""What a sweep lost: its study, MLflow, files and the trainer's notes, read from outside and compared.

`benchmarks/chaos.py` calls it at the end, its test on folders in which something was destroyed on purpose.
"""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import optuna
from mlflow import MlflowClient
from mlflow.entities import Run
from optuna.trial import FrozenTrial

from tests.real_sweep import outcome

OF_ATTEMPTS = ("core_seconds", "startup_seconds")
"""Metrics of which a tick trained again has other values, so that only their steps are compared."""


@dataclass(frozen=True)
class Row:
    """A line of the table: how many were found, and how many there have to be, exactly or at least."""

    what: str
    found: int
    wanted: int | None = None
    which: list[str] = field(default_factory=list)
    least: int | None = None

    @property
    def lost(self) -> bool:
        exactly = self.found if self.wanted is None else self.wanted
        return self.found != exactly or self.found < (self.least or 0)

    def __str__(self) -> str:
        goal = self.wanted if self.least is None else self.least
        lost = f"  LOST {', '.join(self.which[:5])}" if self.lost else ""
        return f"  {self.what:<58} {self.found:>6} {'' if goal is None else f'of {goal}':<7}{lost}".rstrip()


def check(out: Path, *, trials: int) -> list[Row]:
    """The table of the one sweep under `out`, which was to have so many trials."""
    (folder,) = (path.parent for path in out.glob("*/space.yaml"))
    everything = _trials(folder)
    replaced = {trial.user_attrs.get("retry_of") for trial in everything}
    current = [trial for trial in everything if trial.number not in replaced]
    by_label = {trial.user_attrs["label"]: trial for trial in current}
    return [
        *_study_rows(current, everything, trials=trials),
        *_trained_rows(by_label, out),
        *_mlflow_rows(by_label, out, trials=trials),
        *_disk_rows(by_label, folder),
    ]


def _counted(what: str, which: list[str]) -> Row:
    return Row(what, len(which), 0, which)


def _trials(folder: Path) -> list[FrozenTrial]:
    journal = optuna.storages.journal.JournalFileBackend(str(folder / "study.log"))
    storage = optuna.storages.JournalStorage(journal)
    (study,) = storage.get_all_studies()
    return storage.get_all_trials(study._study_id)


def _ticks(trial: FrozenTrial) -> dict[int, dict[str, float]]:
    """What the study says was measured at each tick."""
    attrs = trial.user_attrs
    return {int(key[5:]): attrs[key]["metrics"] for key in attrs if key.startswith("tick_")}


def _study_rows(current: list[FrozenTrial], everything: list[FrozenTrial], *, trials: int) -> Iterator[Row]:
    labels = Counter(trial.user_attrs["label"] for trial in current)
    wanted = {f"t{number:03d}" for number in range(1, trials + 1)}
    yield Row("trials in the study", len(current), trials)
    wrong = [label for label in wanted | labels.keys() if labels[label] != (label in wanted)]
    yield _counted("  labels missing, twice or unknown", sorted(wrong))
    running = [trial.user_attrs["label"] for trial in everything if not trial.state.is_finished()]
    yield _counted("  still running", running)
    outcomes = Counter(outcome(trial) for trial in current)
    for name in ("complete", "pruned"):
        yield Row(f"  {name}", outcomes.pop(name, 0))
    yield _counted("  ended as something else", [f"{count} {name}" for name, count in outcomes.items()])
    yield Row("Optuna trials that a retry took the place of", len(everything) - len(current))
    yield Row("attempts after the first", sum(len(trial.user_attrs["attempts"]) - 1 for trial in current))
    yield Row("ticks in the study", sum(len(_ticks(trial)) for trial in current))
    gaps = [
        trial.user_attrs["label"]
        for trial in current
        if not _ticks(trial) or sorted(_ticks(trial)) != list(range(1, max(_ticks(trial)) + 1))
    ]
    yield _counted("  trials that lack some", gaps)


def _trained_rows(by_label: dict[str, FrozenTrial], out: Path) -> Iterator[Row]:
    """The trainer notes gp_weight and tick of all that it trains; each trial has its own gp_weight."""
    notes = [json.loads(line) for line in (out / "cache" / "ticks.jsonl").read_text().splitlines()]
    trained = Counter((note["gp_weight"], note["tick"]) for note in notes)
    recorded = {
        (trial.params["gp_weight"], tick): label
        for label, trial in by_label.items()
        for tick in _ticks(trial)
    }
    yield _counted("ticks trained, not recorded", [str(one) for one in trained.keys() - recorded.keys()])
    yield _counted("ticks recorded, never trained", [str(one) for one in recorded.keys() - trained.keys()])
    again = Counter(
        {
            label: sum(trained[trial.params["gp_weight"], tick] - 1 for tick in _ticks(trial))
            for label, trial in by_label.items()
        }
    )
    yield Row("ticks trained again", again.total())
    too_many = [
        label for label, count in again.items() if count > len(by_label[label].user_attrs["attempts"]) - 1
    ]
    yield _counted("  trials with more than one per further attempt", too_many)


def _mlflow_rows(by_label: dict[str, FrozenTrial], out: Path, *, trials: int) -> Iterator[Row]:
    client = MlflowClient(tracking_uri=f"sqlite:///{out / 'mlflow.db'}")
    runs = list(_runs(client))
    children = [run for run in runs if "trial" in run.data.tags]
    yield Row("runs of the sweep in MLflow", len(runs) - len(children), 1)
    yield Row("runs of trials in MLflow", len(children), trials)
    labels = Counter(run.data.tags["trial"] for run in children)
    wrong = [label for label in by_label.keys() | labels.keys() if labels[label] != (label in by_label)]
    yield _counted("  trials without exactly one", sorted(wrong))
    yield _counted("  not FINISHED", [str(r.info.run_name) for r in runs if r.info.status != "FINISHED"])
    known = [
        (run, by_label[run.data.tags["trial"]]) for run in children if run.data.tags["trial"] in by_label
    ]
    differ = [str(run.info.run_name) for run, trial in known if _said(run) != _known(trial)]
    yield _counted("  outcome, attempts or parameters not those of the study", differ)
    rows, wrong = 0, []
    for run, trial in known:
        count, names = _metrics_differ(client, run, _ticks(trial))
        rows += count
        wrong += [f"{run.info.run_name} {name}" for name in names]
    yield Row("metric rows in MLflow", rows)
    yield _counted("  curves with a step missing, twice or another value", wrong)
    wrong = [str(run.info.run_name) for run, trial in known if not _has_its_pictures(client, run, trial)]
    yield _counted("  trials with a picture missing or twice", wrong)
    for run in runs:
        if run not in children:
            yield from _best_rows(client, run, by_label)


def _runs(client: MlflowClient) -> Iterator[Run]:
    experiments = [found.experiment_id for found in client.search_experiments()]
    page = client.search_runs(experiments, max_results=1000)
    yield from page
    while page.token:
        page = client.search_runs(experiments, max_results=1000, page_token=page.token)
        yield from page


def _said(run: Run) -> tuple:
    params = {name: run.data.params.get(name) for name in ("gp_weight", "generator_lr")}
    return run.data.tags.get("outcome"), run.data.tags.get("attempt"), params


def _known(trial: FrozenTrial) -> tuple:
    params = {name: str(value) for name, value in trial.params.items()}
    return outcome(trial), str(len(trial.user_attrs["attempts"])), params


def _metrics_differ(
    client: MlflowClient, run: Run, ticks: dict[int, dict[str, float]]
) -> tuple[int, list[str]]:
    """How many rows there are, and the metrics whose rows are not those of the study."""
    count, names = 0, []
    for name in sorted({name for metrics in ticks.values() for name in metrics} | run.data.metrics.keys()):
        found = sorted((row.step, row.value) for row in client.get_metric_history(run.info.run_id, name))
        wanted = sorted(
            (metrics["images_seen"], metrics[name]) for metrics in ticks.values() if name in metrics
        )
        if name in OF_ATTEMPTS:
            found, wanted = [(step, 0) for step, _ in found], [(step, 0) for step, _ in wanted]
        count += len(found)
        if found != wanted:
            names.append(name)
    return count, names


def _has_its_pictures(client: MlflowClient, run: Run, trial: FrozenTrial) -> bool:
    paths = [file.path for file in client.list_artifacts(run.info.run_id, "images")]
    steps = sorted(int(path.split("+step+")[1].split("+")[0]) for path in paths if path.endswith(".png"))
    return steps == sorted(int(metrics["images_seen"]) for metrics in _ticks(trial).values())


def _best_rows(client: MlflowClient, sweep: Run, by_label: dict[str, FrozenTrial]) -> Iterator[Row]:
    rows = client.get_metric_history(sweep.info.run_id, "best_fid")
    twice = [str(step) for step, count in Counter(row.step for row in rows).items() if count > 1]
    yield _counted("  steps of the sweep's best FID that are there twice", twice)
    best = min(trial.value for trial in by_label.values() if outcome(trial) == "complete")
    last = max(rows, key=lambda row: row.step).value if rows else None
    wrong = [] if last == sweep.data.metrics.get("best_fid") == best else [f"{last}, not {best}"]
    yield _counted("  the sweep's best FID is not the winner's", wrong)


def _disk_rows(by_label: dict[str, FrozenTrial], folder: Path) -> Iterator[Row]:
    there = {str(path.relative_to(folder)) for path in folder.glob("trials/*/*/checkpoint_*")}
    recorded = {
        label: [path for path, _ in trial.user_attrs.get("checkpoints", [])]
        for label, trial in by_label.items()
    }
    known = {path for paths in recorded.values() for path in paths}
    yield Row("checkpoints on disk", len(there))
    yield _counted("  missing", sorted(known - there))
    yield _counted("  that nobody knows", sorted(there - known))
    too_many = [label for label, paths in recorded.items() if not 1 <= len(paths) <= 2]
    yield _counted("  trials with none, or with more than two", too_many)
    outbox = folder / "outbox"
    yield Row("records still to be sent to MLflow", unsent(folder), 0)
    yield _counted("  pictures still to be sent", [path.name for path in outbox.glob("*.png")])
    refused = outbox / "refused.jsonl"
    yield _counted("  records MLflow refused", refused.read_text().splitlines() if refused.exists() else [])
    yield _counted("locks left behind", [path.name for path in folder.glob("study.log.lock*")])


def unsent(folder: Path) -> int:
    """Lines of the outbox behind its mark."""
    mark = folder / "outbox" / "sent"
    content = (folder / "outbox" / "lines.jsonl").read_bytes()
    return content[int(mark.read_text()) if mark.exists() else 0 :].count(b"\n")
