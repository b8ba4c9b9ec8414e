"""What the study of a sweep holds, for those who only look: the sweep may be running, nothing is written."""

from dataclasses import dataclass
from typing import Any

import optuna

from sweeps.attributes import record_of
from sweeps.folder import SweepFolder
from sweeps.records import TrialRecord, order
from sweeps.space import Space
from sweeps.storage import open_storage


@dataclass(frozen=True)
class History:
    """A sweep so far.

    Attributes:
        records: its trials, in order of asking.
        wanted: how many there are to be in all.
        space: the values it was started with; None if it was stopped before they were recorded.
    """

    records: list[TrialRecord]
    wanted: int
    space: dict[str, Any] | None


def read(folder: SweepFolder, space: Space) -> History:
    """The history of the sweep in `folder`; `space` is its own copy, which says where the study is."""
    nothing = History([], space.sweep.trials, None)
    if space.study.storage is None and not folder.journal.exists():
        return nothing
    storage = open_storage(folder.journal, url=space.study.storage, mend=False)
    try:
        study = optuna.load_study(study_name=folder.sweep_id, storage=storage)
    except KeyError:  # stopped before it was made
        return nothing
    records = [record_of(trial, folder) for trial in study.get_trials(deepcopy=False)]
    attrs = study.user_attrs
    return History(
        records=sorted(records, key=lambda record: order(record.label)),
        wanted=attrs.get("trials", space.sweep.trials),
        space=attrs.get("space"),
    )
