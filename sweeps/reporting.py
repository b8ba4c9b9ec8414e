"""`--report`: the reports of sweeps written again, from what lies on disk; nothing else is changed."""

import json
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from sweeps import history, report, several, space_file, store
from sweeps.folder import SweepFolder
from sweeps.results import Results, kept_scores
from wgangp.errors import UserError


def write(folders: Sequence[SweepFolder], out: Path) -> list[Path]:
    """Write the report of each, and of several a comparison to `out`; where they are.

    A sweep may be running: it is reported as it stands.

    Raises:
        UserError: one cannot be read, or has not come to its first trial.
    """
    sweeps = [read(folder) for folder in folders]
    for one in sweeps:
        report.write(one)
    written = [one.folder.page for one in sweeps]
    return [*written, several.write(sweeps, out).with_suffix(".html")] if len(sweeps) > 1 else written


def read(folder: SweepFolder) -> Results:
    """A sweep as it stands on disk.

    Raises:
        UserError: as for `write`.
    """
    space = space_file.load(folder.space)
    records = history.read(folder, space).records
    if not records or not folder.has_features:
        raise UserError(f"--report {folder.name}: must have begun a trial; go on with it by --resume first.")
    facts = json.loads((folder.features / "features.json").read_text("utf-8"))
    if "scored_in" not in facts:
        raise UserError(f"--report {folder.name}: was made by an older version, which recorded less.")
    facts["trained_on"] = str(space.resources)
    results = Results(folder, space, records, facts, fresh={}, ui=_ui(folder))
    winner, scores = kept_scores(folder)
    still = results.winner is not None and results.winner.label == winner
    return replace(results, fresh=scores if still else {})


def _ui(folder: SweepFolder) -> str:
    """The command, or address, that shows the trials; or why there is none."""
    try:
        return shlex.join(store.ui_command(sys.executable, store.store_of(folder)))
    except UserError as error:
        return str(error)
