"""Where a sweep is recorded: chosen for a new one, found again for one that goes on, also after a move.

A sweep remembers its store in `<sweep>/tracking`, without a password. MLFLOW_TRACKING_URI comes first, then
the database beside the sweep if it knows the sweep, then what is remembered.
"""

import contextlib
import json
import os
import sqlite3
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote, urlsplit

from sweeps.folder import SweepFolder
from wgangp import files
from wgangp.errors import UserError

DATABASES = ("sqlite", "postgresql", "mysql", "mssql")
ADDRESSES = (
    ("runs", "artifact_uri"),
    ("logged_models", "artifact_location"),
    ("model_versions", "source"),
    ("model_versions", "storage_location"),
)
"""Where MLflow keeps absolute addresses that begin with an experiment's."""
HIDDEN = "***"
"""Stands in an address for what is not kept."""


def tracking_uri(out: Path) -> str:
    """Where new sweeps are recorded: MLFLOW_TRACKING_URI, else a database under `out`.

    Raises:
        UserError: the variable names a kind of store that MLflow no longer writes.
    """
    given = os.environ.get("MLFLOW_TRACKING_URI")
    if not given:
        return f"sqlite:///{out.resolve() / 'mlflow.db'}"
    scheme = urlsplit(given).scheme.partition("+")[0]
    if scheme not in (*DATABASES, "http", "https", "databricks"):
        raise UserError(
            "MLFLOW_TRACKING_URI: must be a database (sqlite:///...) or a server (http://...), "
            f"got '{given}'. Unset it to use {out / 'mlflow.db'}."
        )
    driver, slashes, database = given.partition(":///")
    if scheme == "sqlite" and database and not database.startswith(("/", ":memory:")):
        # from another folder it would be another file
        given = driver + slashes + str(Path(database).resolve())
    return given


def store_of(folder: SweepFolder) -> str:
    """Where a sweep that was started before goes on being recorded, wherever its folder is by now.

    Raises:
        UserError: its store is gone and no other was named, or the address needs a password.
    """
    beside = tracking_uri(folder.out)
    if os.environ.get("MLFLOW_TRACKING_URI"):
        return beside
    memory: dict[str, Any] = {"store": "", "beside": True}
    if remembers(folder):
        memory |= _remembered(folder)
    remembered: str = memory["store"]
    seen = {uri: _look(uri, sweep_id=folder.sweep_id) for uri in (beside, remembered)}
    # A folder that moved or was copied together with its database goes on in the one it has now.
    ways = [beside, remembered] if memory["beside"] else [remembered, beside]
    for uri in ways:
        if seen[uri] == "known" or (uri == remembered and seen[uri] == "cannot tell"):
            return _whole(uri, folder)
    if not (folder.outbox / "sent").exists():
        return _whole(remembered, folder) if seen[remembered] == "unknown" else beside
    if seen[beside] == "cannot tell":
        raise UserError(
            f"{database_file(beside)}: must be readable, to see whether {folder.name} is recorded in it;"
            " it is locked by another program. Wait for it."
        )
    raise UserError(
        f"{folder.name}: was recorded in {remembered or 'a place it does not know'}, which"
        f" {'is gone' if seen[remembered] == 'gone' else 'does not know it any more'}. Bring it back, or name"
        f" a store to which all is sent again but the pictures sent before: MLFLOW_TRACKING_URI={beside}"
    )


def remember(folder: SweepFolder, uri: str) -> None:
    """Keep the address for `store_of`."""
    default = database_file(uri) == (folder.out / "mlflow.db").resolve()
    kept = json.dumps({"store": without_secrets(uri), "beside": default}) + "\n"
    files.write(_memory(folder), kept.encode())


def remembers(folder: SweepFolder) -> bool:
    """Whether an address is kept."""
    return _memory(folder).exists()


def _remembered(folder: SweepFolder) -> dict[str, Any]:
    try:
        return dict(json.loads(_memory(folder).read_text("utf-8")))
    except (ValueError, TypeError) as error:
        raise UserError(
            f"{_memory(folder)}: must say where the sweep is recorded, and cannot be read."
            " Set MLFLOW_TRACKING_URI to where it is, or remove the file if that is beside the sweep."
        ) from error


def _memory(folder: SweepFolder) -> Path:
    return folder.path / "tracking"


def _whole(uri: str, folder: SweepFolder) -> str:
    if HIDDEN not in uri:
        return uri
    raise UserError(
        f"{folder.name}: is recorded in {uri}, whose password is not kept."
        " Set MLFLOW_TRACKING_URI to the whole address."
    )


def without_secrets(uri: str) -> str:
    """The address with `***` for passwords and for what follows a `?`, where some keep theirs."""
    parts = urlsplit(uri)
    if parts.scheme.startswith("sqlite"):
        return uri
    user, at, host = parts.netloc.rpartition("@")
    if at and parts.scheme.startswith("http"):
        user = HIDDEN  # a token may stand there alone
    elif parts.password is not None:
        user = f"{user.partition(':')[0]}:{HIDDEN}"
    return parts._replace(netloc=user + at + host, query=HIDDEN if parts.query else "").geturl()


def ui_command(python: str, uri: str) -> list[str]:
    """The command that shows the runs; for a server, its address is where they are shown."""
    shown = without_secrets(uri)
    if shown.startswith("http"):
        return [shown]
    return [python, "-m", "mlflow", "ui", "--backend-store-uri", shown]


def database_file(uri: str) -> Path | None:
    """The file of an SQLite database; None for any other store."""
    scheme, slashes, rest = uri.partition(":///")
    path = rest.partition("?")[0]
    on_disk = slashes and scheme.partition("+")[0] == "sqlite" and path.startswith("/")
    return Path(path) if on_disk else None


def artifacts_beside(database: Path, experiment: str) -> str:
    """The address of an experiment's pictures and files: they lie beside its database."""
    return (database.parent / "mlartifacts" / experiment).resolve().as_uri()


def mend_addresses(database: Path) -> None:
    """After a move, point a database of ours at the pictures and files that moved along with it.

    MLflow keeps their absolute addresses: an experiment's in `experiments.artifact_location`, and in
    `runs.artifact_uri` the same with the run's part behind it (MLflow 3.17). What does not end in
    `/mlartifacts/<experiment>` was not placed by us and stays. Models have theirs in `logged_models` and
    `model_versions`.
    """
    with contextlib.closing(sqlite3.connect(database, timeout=5)) as connection, connection:
        experiments = "SELECT experiment_id, name, artifact_location FROM experiments"
        for number, name, old in connection.execute(experiments).fetchall():
            new = artifacts_beside(database, name)
            ours = (old or "").startswith("file:") and old.endswith(f"/mlartifacts/{quote(name)}")
            if not ours or old == new:
                continue
            connection.execute(
                "UPDATE experiments SET artifact_location = ? WHERE experiment_id = ?", (new, number)
            )
            for table, column in ADDRESSES:
                mended = f"UPDATE {table} SET {column} = ? || substr({column}, ?)"
                where = f"WHERE substr({column}, 1, ?) = ?"
                connection.execute(f"{mended} {where}", (new, len(old) + 1, len(old) + 1, f"{old}/"))


def _look(uri: str, *, sweep_id: str) -> Literal["known", "unknown", "gone", "cannot tell"]:
    """Whether a store has records of a sweep; of a server, or of one that is locked, nobody can tell here."""
    database = database_file(uri)
    if not uri or (database and not database.is_file()):
        return "gone"
    if database is None:
        return "cannot tell"
    # Not mode=ro: SQLite could not undo what a killed writer left half done.
    address = f"file:{quote(str(database))}?mode=rw"
    try:
        with contextlib.closing(sqlite3.connect(address, uri=True, timeout=1)) as connection:
            tags = "SELECT 1 FROM tags WHERE key = 'sweep_id' AND value = ? LIMIT 1"
            return "known" if connection.execute(tags, (sweep_id,)).fetchone() else "unknown"
    except sqlite3.DatabaseError as error:
        return "cannot tell" if "locked" in str(error) else "unknown"
