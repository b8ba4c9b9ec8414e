from pathlib import Path

import pytest

from sweeps import tracking
from wgangp.errors import UserError


def test_runs_are_recorded_in_a_database_under_out_by_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.chdir(tmp_path)

    assert tracking.tracking_uri(Path("runs")) == f"sqlite:///{tmp_path.resolve()}/runs/mlflow.db"


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

    assert tracking.tracking_uri(tmp_path) == uri


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

    uri = tracking.tracking_uri(Path("runs"))
    assert uri == expected.format(here=here, above=here.parent)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    monkeypatch.chdir("/")
    assert tracking.tracking_uri(Path("runs")) == uri


@pytest.mark.parametrize("uri", ["./mlruns", "mlruns", "file:///data/mlruns", "file:mlruns", "ftp://host/x"])
def test_stores_mlflow_no_longer_writes_are_refused_in_one_line(
    uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)

    with pytest.raises(UserError) as caught:
        tracking.tracking_uri(tmp_path)
    assert caught.value.problems == (
        "MLFLOW_TRACKING_URI: must be a database (sqlite:///...) or a server (http://...), "
        f"got '{uri}'. Unset it to use {tmp_path / 'mlflow.db'}.",
    )


def test_the_command_that_shows_the_runs_starts_mlflow_or_is_the_servers_address() -> None:
    assert tracking.ui_command("/bin/python", "sqlite:////x/mlflow.db") == [
        *("/bin/python", "-m", "mlflow", "ui"),
        *("--backend-store-uri", "sqlite:////x/mlflow.db"),
    ]
    assert tracking.ui_command("/bin/python", "http://localhost:5000") == ["http://localhost:5000"]
