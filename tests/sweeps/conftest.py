"""What the tests of sweeps share: a space of nine ticks, its study on a real journal, curves to play."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from mlflow import MlflowClient
from sqlalchemy import event
from sqlalchemy.engine import Engine

from sweeps import space_file, store, tracking
from sweeps.folder import SweepFolder
from sweeps.outbox import Outbox
from sweeps.records import Ending, Metrics, TrialRecord
from sweeps.results import Results
from sweeps.space import Space
from sweeps.study import SweepStudy
from wgangp import settings_file

SPACE = """\
search:
  gp_weight: {type: float, low: 0.1, high: 100, log: true}
  n_critic: {type: int, low: 1, high: 8}
train: {dataset: digits, tick_kimg: 1, budget_kimg: 9}
pruner: {first_rung_kimg: 1, reduction_factor: 3}
sampler: {n_startup_trials: 3}
sweep: {trials: 6, retries: 1, seed: 0}
"""
BUDGET = 9

FACTS: dict[str, Any] = {
    "features": "digits-lenet",
    "features_sha256": "ab" * 32,
    "features_accuracy": 0.9731,
    "scored_in": "digits-lenet features (accuracy on held-out images 0.973)",
    "trained_on": "mirrored, 2 CPUs, 0 GPUs, 2 replica(s)",
    "data_sha256": "cd" * 32,
    "dataset": "digits",
    "image_size": "8x8x1",
    "train_images": 1617,
    "reference_images": 1617,
    "heldout_images": 180,
}

MakeSpace = Callable[..., Space]
OpenStudy = Callable[..., SweepStudy]
Send = Callable[..., tuple[int, str | None]]


@pytest.fixture(autouse=True, scope="session")
def no_waiting_for_the_disk() -> Iterator[None]:
    """Journals and databases are synced at every write, against a power cut, which no test makes."""

    def without_sync(connection: Any, _: Any) -> None:
        connection.execute("PRAGMA synchronous = OFF")

    event.listen(Engine, "connect", without_sync)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda file: None)
        yield
    event.remove(Engine, "connect", without_sync)


@pytest.fixture(scope="session")
def make_space() -> MakeSpace:
    """Makes the space of nine ticks, compared at 1, 3 and 9, with these overrides."""

    def make_space(*overrides: str) -> Space:
        file = settings_file.parse(SPACE, name="gp.yaml", overrides=overrides)
        return space_file.check(file, default_name="gp")

    return make_space


@pytest.fixture
def folder(tmp_path: Path) -> SweepFolder:
    path = tmp_path / "runs" / "gp-0001"
    path.mkdir(parents=True)
    return SweepFolder(path)


@pytest.fixture
def open_study(folder: SweepFolder, make_space: MakeSpace) -> OpenStudy:
    """Opens the study in `folder`, as each start of a sweep does."""

    def open_study(*overrides: str, trials: int | None = None) -> SweepStudy:
        return SweepStudy(folder, make_space(*overrides), sweep_id="gp-0001-abcd", trials=trials)

    return open_study


@pytest.fixture(scope="session")
def measured() -> Callable[..., Metrics]:
    """Makes the metrics of a tick: 1 kimg and 10 core-seconds each."""

    def measured(fid: float, tick: int, **more: float) -> Metrics:
        return {"fid": fid, "core_seconds": 10.0 * tick, "images_seen": 1000 * tick} | more

    return measured


@pytest.fixture(scope="session")
def play(measured: Callable[..., Metrics]) -> Callable[..., Ending | None]:
    """Reports a curve of FIDs for a trial until it is to end; the answer to the last report."""

    def play(study: SweepStudy, label: str, *curve: float, first: int = 1) -> Ending | None:
        answer = None
        for tick, fid in enumerate(curve, start=first):
            said = Ending("complete") if tick == BUDGET else None
            answer = study.report(label, tick=tick, metrics=measured(fid, tick), ending=said)
            if answer:
                break
        return answer

    return play


@pytest.fixture
def save(folder: SweepFolder) -> Callable[..., Path]:
    """Saves a checkpoint as Ray does and records it in the study."""

    def save(study: SweepStudy, label: str, tick: int, *, start: int = 1) -> Path:
        path = folder.trials / f"{start:03d}" / label / f"checkpoint_{tick:06d}"
        path.mkdir(parents=True, exist_ok=True)
        study.add_checkpoint(label, path=path, tick=tick)
        return path

    return save


@pytest.fixture(scope="session")
def make_record(measured: Callable[..., Metrics]) -> Callable[..., TrialRecord]:
    """Makes the record of a trial from its outcome and its FIDs, `seconds` of a core per tick."""

    def make_record(
        label: str, outcome: str, fids: Sequence[float], *, seconds: float = 10, **changes: Any
    ) -> TrialRecord:
        return TrialRecord(
            **{
                "label": label,
                "params": {"gp_weight": 0.7612, "n_critic": 3},
                "baseline": False,
                "attempt": 1,
                "ending": Ending(outcome) if outcome else None,
                "last_error": "",
                "ticks": {
                    tick: measured(fid, tick, core_seconds=seconds * tick)
                    for tick, fid in enumerate(fids, start=1)
                },
                "checkpoints": [],
            }
            | changes
        )

    return make_record


@pytest.fixture
def records(make_record: Callable[..., TrialRecord]) -> list[TrialRecord]:
    """A cheap and a dear baseline, a winner in between, and trials without a place."""
    return [
        make_record("t001", "complete", [400, 300, 200, 100], seconds=10, baseline=True),
        make_record("t002", "complete", [90, 80, 70, 60], seconds=40, baseline=True),
        make_record(
            "t003", "complete", [120, 50, 25, 30], seconds=20, params={"gp_weight": 0.5, "n_critic": 1}
        ),
        make_record("t004", "pruned", [10]),
        make_record(
            "t005",
            "diverged",
            [],
            ticks={1: {"core_seconds": 10, "images_seen": 1000}},
            ending=Ending("diverged", "fid is not finite"),
        ),
        make_record("t006", "failed", [], ending=Ending("failed", "killed")),
        make_record("t007", "", [500]),
    ]


@pytest.fixture
def make_results(folder: SweepFolder, make_space: MakeSpace) -> Callable[..., Results]:
    """Makes the results of a sweep in `folder` of the space of nine ticks with these overrides."""

    def make_results(records: list[TrialRecord], *overrides: str, **changes: Any) -> Results:
        space = make_space(*overrides)
        whole = {"facts": FACTS, "fresh": {}, "ui": "mlflow ui", "folder": folder} | changes
        return Results(space=space, records=records, **whole)

    return make_results


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with MLflow's tables: making them takes seconds, copying them none."""
    path = tmp_path_factory.mktemp("mlflow") / "mlflow.db"
    MlflowClient(f"sqlite:///{path}").search_experiments()
    return path


@pytest.fixture
def uri(folder: SweepFolder, empty_database: Path) -> str:
    shutil.copy(empty_database, folder.out / "mlflow.db")
    return store.tracking_uri(folder.out)


@pytest.fixture
def outbox(folder: SweepFolder) -> Outbox:
    return Outbox(folder.outbox)


@pytest.fixture
def send(folder: SweepFolder, outbox: Outbox, uri: str) -> Send:
    """Sends what waits, as one start of a sweep does; how many lines are left, and the trouble."""

    def send(
        uri: str = uri, *, patience: float = 30, sweep_id: str = "gp-0001-abcd"
    ) -> tuple[int, str | None]:
        tracker = tracking.Tracker(folder, outbox, sweep_id=sweep_id, experiment="gp", uri=uri)
        tracker.start()
        return tracker.finish(patience=patience), tracker.trouble

    return send
