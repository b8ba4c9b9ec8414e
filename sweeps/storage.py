"""Where the study is kept: opened, mended after a killed driver, and seen through one filter."""

import json
import logging
import os
import warnings
from pathlib import Path
from typing import Any

import optuna
from optuna.storages.journal import JournalFileBackend, JournalStorage
from optuna.trial import FrozenTrial

from wgangp.errors import UserError

log = logging.getLogger(__name__)
optuna.logging.set_verbosity(optuna.logging.WARNING)
# The versions are locked; what a user asked for by name needs no warning that it may change.
warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)


def open_storage(journal: Path, *, url: str | None, mend: bool) -> optuna.storages.BaseStorage:
    """The database at `url`, or else the journal file.

    `mend`: what a killed driver left in the journal; the caller holds the sweep's lock.

    Raises:
        UserError: a line of the journal, not the last, is damaged.
    """
    if url:
        storage = optuna.storages.get_storage(url)
    else:
        if mend:
            _mend(journal)
        storage = _read(journal)
    _show_current_only(storage)
    return storage


class _WholeLines(JournalFileBackend):
    """Appends whole or not at all: whatever follows half a line could never be read again."""

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        size = os.path.getsize(self._file_path)
        try:
            super().append_logs(logs)
        except OSError:  # the disk is full
            os.truncate(self._file_path, size)
            raise


def _read(journal: Path) -> JournalStorage:
    try:
        return JournalStorage(_WholeLines(str(journal)))
    except (ValueError, KeyError, TypeError, AttributeError, AssertionError) as error:
        with journal.open("rb") as lines:
            place = next(
                (f":{number}" for number, line in enumerate(lines, start=1) if not _is_record(line)), ""
            )
        raise UserError(
            f"{journal}{place}: must be a record of the study, and cannot be read."
            " Put back a copy of the file, or start a new sweep."
        ) from error


def _is_record(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _mend(journal: Path) -> None:
    """Mend what a killed driver can leave behind; under the sweep's lock nobody else writes."""
    lock = journal.with_name(journal.name + ".lock")
    if lock.is_symlink() or lock.exists():
        log.warning("removed %s, left behind by a driver that was killed", lock.name)
        lock.unlink()
    if not journal.exists():
        return
    content = journal.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if whole != content:
        kept = journal.with_name(journal.name + ".torn")
        kept.write_bytes(content[len(whole) :])
        with journal.open("rb+") as file:
            file.truncate(len(whole))
        log.warning("cut a half-written last line from %s (kept in %s)", journal.name, kept.name)


def _show_current_only(storage: optuna.storages.BaseStorage) -> None:
    """Hide failed trials that a retry has taken the place of.

    The pruner reads trials through the storage, some pruners by studies they build themselves, so this is
    the one place from which all of them see a trial once.
    """
    everything = storage.get_all_trials

    def current(study_id: int, deepcopy: bool = True, states: Any = None) -> list[FrozenTrial]:
        trials = everything(study_id, deepcopy=deepcopy)
        replaced = {trial.user_attrs.get("retry_of") for trial in trials}
        return [t for t in trials if t.number not in replaced and (states is None or t.state in states)]

    storage.get_all_trials = current  # type: ignore[method-assign]
