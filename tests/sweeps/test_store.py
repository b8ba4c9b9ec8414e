"""Which store a sweep is recorded in: named, beside it, remembered, gone; and addresses after a move."""

import contextlib
import shutil
import sqlite3
from pathlib import Path

import pytest
from mlflow import MlflowClient

from sweeps import store
from sweeps.folder import SweepFolder
from wgangp.errors import UserError


def test_runs_are_recorded_in_a_database_under_out_by_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.chdir(tmp_path)

    assert store.tracking_uri(Path("runs")) == f"sqlite:///{tmp_path.resolve()}/runs/mlflow.db"


@pytest.mark.parametrize(
    "uri",
    [
        "sqlite:////data/mlflow.db",
        "postgresql+psycopg2://host/db",
        "http://localhost:5000",
        "https://mlflow.org",
        "databricks://profile",
    ],
)
def test_databases_and_servers_are_taken_as_they_are(
    uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)

    assert store.tracking_uri(tmp_path) == uri


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("sqlite:///mlflow.db", "sqlite:///{here}/mlflow.db"),
        ("sqlite:///./in/mlflow.db", "sqlite:///{here}/in/mlflow.db"),
        ("sqlite:///../mlflow.db", "sqlite:///{above}/mlflow.db"),
    ],
)
def test_a_database_named_from_here_is_the_same_from_everywhere(
    given: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", given)
    here = tmp_path.resolve()

    uri = store.tracking_uri(Path("runs"))
    assert uri == expected.format(here=here, above=here.parent)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    monkeypatch.chdir("/")
    assert store.tracking_uri(Path("runs")) == uri


@pytest.mark.parametrize("uri", ["./mlruns", "mlruns", "file:///data/mlruns", "file:mlruns", "ftp://host/x"])
def test_stores_mlflow_no_longer_writes_are_refused_in_one_line(
    uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)

    with pytest.raises(UserError) as caught:
        store.tracking_uri(tmp_path)
    assert caught.value.problems == (
        "MLFLOW_TRACKING_URI: must be a database (sqlite:///...) or a server (http://...), "
        f"got '{uri}'. Unset it to use {tmp_path / 'mlflow.db'}.",
    )


def test_the_command_that_shows_the_runs_starts_mlflow_or_is_the_servers_address() -> None:
    assert store.ui_command("/bin/python", "sqlite:////x/mlflow.db") == [
        *("/bin/python", "-m", "mlflow", "ui"),
        *("--backend-store-uri", "sqlite:////x/mlflow.db"),
    ]
    assert store.ui_command("/bin/python", "http://localhost:5000") == ["http://localhost:5000"]


@pytest.fixture
def no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)


def database(path: Path, *, of: str = "") -> str:
    """A tracking database that knows a sweep, as far as `store` looks; its address."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE tags (key TEXT, value TEXT)")
        connection.execute("INSERT INTO tags VALUES ('sweep_id', ?)", (of,))
    return f"sqlite:///{path}"


def started(folder: SweepFolder, uri: str, *, sent: bool = True) -> str:
    """Give the sweep an id and a store that it remembers; the id."""
    store.remember(folder, uri)
    folder.outbox.mkdir()
    if sent:
        (folder.outbox / "sent").write_text("9")
    return folder.identify()


@pytest.mark.usefixtures("no_variable")
def test_a_new_sweep_is_recorded_beside_its_folder(folder: SweepFolder) -> None:
    assert store.store_of(folder) == f"sqlite:///{folder.out}/mlflow.db"


@pytest.mark.usefixtures("no_variable")
def test_a_moved_sweep_prefers_the_database_that_moved_along(folder: SweepFolder, tmp_path: Path) -> None:
    old = tmp_path / "old" / "mlflow.db"
    at_the_old_place = SweepFolder(old.parent / folder.name)
    at_the_old_place.path.mkdir(parents=True)
    started(at_the_old_place, f"sqlite:///{old}")
    shutil.copytree(at_the_old_place.path, folder.path, dirs_exist_ok=True)
    database(old, of=folder.sweep_id)
    assert store.store_of(folder) == f"sqlite:///{old}"
    beside = database(folder.out / "mlflow.db", of="of others")
    assert store.store_of(folder) == f"sqlite:///{old}"
    (folder.out / "mlflow.db").unlink()
    database(folder.out / "mlflow.db", of=folder.sweep_id)
    assert store.store_of(folder) == beside


def test_a_store_named_by_hand_is_preferred_to_one_left_behind(
    folder: SweepFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://host:5000")
    sweep_id = started(folder, "http://host:5000")
    database(folder.out / "mlflow.db", of=sweep_id)
    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    assert store.store_of(folder) == "http://host:5000"
    named = f"sqlite:///{tmp_path}/named.db"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", named)
    assert store.store_of(folder) == named


@pytest.mark.usefixtures("no_variable")
@pytest.mark.parametrize("others", [False, True], ids=["no database", "one of others"])
def test_a_store_that_is_gone_is_named_in_one_line(folder: SweepFolder, others: bool, tmp_path: Path) -> None:
    started(folder, f"sqlite:///{tmp_path}/old/mlflow.db")
    if others:
        database(folder.out / "mlflow.db", of="of others")

    with pytest.raises(UserError) as caught:
        store.store_of(folder)
    assert caught.value.problems == (
        f"gp-0001: was recorded in sqlite:///{tmp_path}/old/mlflow.db, which is gone. Bring it back, or name"
        f" a store to which all is sent again but the pictures sent before: MLFLOW_TRACKING_URI=sqlite:///{folder.out}/mlflow.db",
    )


@pytest.mark.usefixtures("no_variable")
def test_a_database_made_anew_at_the_same_place_is_not_taken_for_the_old_one(folder: SweepFolder) -> None:
    beside = database(folder.out / "mlflow.db", of="of others")
    started(folder, beside)

    with pytest.raises(UserError, match=r"which does not know it any more\. Bring it back, or name"):
        store.store_of(folder)


@pytest.mark.usefixtures("no_variable")
def test_a_sweep_of_which_nothing_was_sent_needs_no_old_store(folder: SweepFolder, tmp_path: Path) -> None:
    started(folder, f"sqlite:///{tmp_path}/old/mlflow.db", sent=False)
    beside = f"sqlite:///{folder.out}/mlflow.db"
    assert store.store_of(folder) == beside
    assert database(folder.out / "mlflow.db", of="of others") == beside == store.store_of(folder)
    named = database(tmp_path / "named.db")
    store.remember(folder, named)
    assert store.store_of(folder) == named


@pytest.mark.usefixtures("no_variable")
def test_a_locked_database_is_trusted_where_it_was_and_waited_for_where_it_is_new(
    folder: SweepFolder, tmp_path: Path
) -> None:
    beside = database(folder.out / "mlflow.db", of="of others")
    started(folder, beside)
    with contextlib.closing(sqlite3.connect(folder.out / "mlflow.db", isolation_level=None)) as held:
        held.execute("BEGIN EXCLUSIVE")
        assert store.store_of(folder) == beside
        store.remember(folder, f"sqlite:///{tmp_path}/old/mlflow.db")
        with pytest.raises(UserError, match=r"mlflow\.db: must be readable, to see whether gp-0001"):
            store.store_of(folder)


@pytest.mark.usefixtures("no_variable")
@pytest.mark.parametrize(
    ("uri", "kept", "whole"),
    [
        ("sqlite:////x/mlflow.db", "sqlite:////x/mlflow.db", True),
        ("http://host:5000/a", "http://host:5000/a", True),
        ("databricks://profile", "databricks://profile", True),
        ("postgresql://ada@host/db", "postgresql://ada@host/db", True),
        ("postgresql+psycopg2://ada:s3c@host/db", "postgresql+psycopg2://ada:***@host/db", False),
        ("mysql://ada:s3c@host/db?password=s3c", "mysql://ada:***@host/db?***", False),
        ("https://token@host", "https://***@host", False),
        ("https://ada:s3c@host:1", "https://***@host:1", False),
    ],
)
def test_a_password_is_never_kept_nor_shown(
    uri: str, kept: str, whole: bool, folder: SweepFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    started(folder, uri)
    assert "s3c" not in (folder.path / "tracking").read_text()
    assert store.without_secrets(uri) == kept == store.ui_command("python", uri)[-1]
    if uri.startswith("sqlite"):
        return
    if whole:
        assert store.store_of(folder) == uri
    else:
        with pytest.raises(UserError) as caught:
            store.store_of(folder)
        assert caught.value.problems == (
            f"gp-0001: is recorded in {kept}, whose password is not kept."
            " Set MLFLOW_TRACKING_URI to the whole address.",
        )
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    assert store.store_of(folder) == uri


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("sqlite:////x/y.db", "/x/y.db"),
        ("sqlite+pysqlite:////x/y.db?timeout=3", "/x/y.db"),
        ("sqlite:///:memory:", None),
        ("sqlite://", None),
        ("http://host:5000", None),
        ("postgresql:///db", None),
    ],
)
def test_the_file_of_a_database_is_read_from_its_address(uri: str, path: str | None) -> None:
    assert store.database_file(uri) == (Path(path) if path else None)


def test_addresses_of_pictures_follow_a_moved_database_and_others_stay(tmp_path: Path) -> None:
    old, new = tmp_path / "old place", tmp_path / "new"
    old.mkdir()
    client = MlflowClient(f"sqlite:///{old}/mlflow.db")
    run, location = {}, {"g p": store.artifacts_beside(old / "mlflow.db", "g p"), "mine": "file:///a/mine"}
    for name, artifacts in location.items():
        experiment = client.create_experiment(name, artifact_location=artifacts)
        run[name] = client.create_run(experiment).info.run_id
    client.log_text(run["g p"], "hello", "a.txt")
    shutil.move(old, new)

    store.mend_addresses(new / "mlflow.db")
    store.mend_addresses(new / "mlflow.db")
    client = MlflowClient(f"sqlite:///{new}/mlflow.db")
    here = f"{tmp_path.resolve().as_uri()}/new/mlartifacts/g%20p"
    assert client.get_experiment_by_name("g p").artifact_location == here
    assert client.get_run(run["g p"]).info.artifact_uri == f"{here}/{run['g p']}/artifacts"
    assert [file.path for file in client.list_artifacts(run["g p"])] == ["a.txt"]
    assert client.get_experiment_by_name("mine").artifact_location == "file:///a/mine"
    assert client.get_run(run["mine"]).info.artifact_uri == f"file:///a/mine/{run['mine']}/artifacts"
    assert not old.exists()


def test_a_damaged_memory_is_refused_in_one_line(
    folder: SweepFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    for content in ("", "{", "7"):
        (folder.path / "tracking").write_text(content)
        with pytest.raises(UserError, match="must say where the sweep is recorded, and cannot be read"):
            store.store_of(folder)
