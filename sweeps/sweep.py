"""One start of a sweep: Ray, preparation, the Tuner, the end. The door for the command line and programs."""

import contextlib
import logging
import shlex
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from sweeps import charter, history, outlook, probing, provenance, space_file, store, tracking, unchanged
from sweeps import folder as folders
from sweeps.closing import close, write_report
from sweeps.folder import SweepFolder
from sweeps.interrupt import Interrupted
from sweeps.outbox import Outbox
from sweeps.preparation import Ready, plan_lines, prepared
from sweeps.progress import View
from sweeps.recording import Recorder
from sweeps.records import TrialRecord
from sweeps.results import Results
from sweeps.space import Space
from sweeps.study import SweepStudy
from sweeps.tuning import tune_trials
from wgangp import settings_file
from wgangp.errors import UserError

log = logging.getLogger(__name__)


def run_sweep(
    space: Space | str,
    *,
    out: Path | str = "runs",
    trainer: str = "wgangp.trainer",
    view: View | None = None,
) -> Results:
    """Run a new sweep; in a notebook too, where its `trials` are a pandas frame.

    Args:
        space: from `space_file.load`; or the name of a file, as for `--space`.
        out: the folder for everything; made if missing.
        trainer: a module with the public functions of `wgangp.trainer`.
        view: what shows it; the terminal by default.

    Raises:
        UserError: at a gate; nothing was left behind.
    """
    view, out = view or View(), Path(out)
    space = space_file.load(space_file.find(space)) if isinstance(space, str) else space
    with prepared(space, out=out, trainer=trainer, view=view, frozen=None) as ready:
        folder = folders.claim(out, space.name)
        with contextlib.ExitStack() as held:
            try:
                held.enter_context(folder.locked())
                settings_file.dump(space.values(), folder.space, comment=f"Frozen from {space.source.name}.")
            except OSError:
                shutil.rmtree(folder.path)
                raise
            return _run(folder, space, ready, view=view, trials=None)


def resume_sweep(
    folder: SweepFolder,
    *,
    trials: int | None = None,
    trainer: str = "wgangp.trainer",
    view: View | None = None,
) -> Results:
    """Go on with a sweep: interrupted and failed trials, then missing ones.

    Args:
        folder: from `folder.find`.
        trials: extends the sweep to that many in all.
        trainer: as for `run_sweep`.
        view: as for `run_sweep`.

    Raises:
        UserError: it is running, or its space or what it was scored with is gone or changed.
    """
    view = view or View()
    with folder.locked():
        space, _ = _look(folder, trials)
        frozen = _frozen_features(folder)
        with prepared(space, out=folder.out, trainer=trainer, view=view, frozen=frozen) as ready:
            return _run(folder, space, ready, view=view, trials=trials)


def plan(space: Space, *, out: Path, view: View, trainer: str = "wgangp.trainer") -> None:
    """`--check`: both gates, then what would be run; no trial starts and nothing is left behind."""
    with prepared(space, out=out, trainer=trainer, view=view, frozen=None) as ready:
        for line in plan_lines(space, ready, trials=space.sweep.trials):
            view.print(line)
        for line in probing.plan_lines(space, ready, out=out, view=view):
            view.print(line)


def plan_resume(
    folder: SweepFolder,
    *,
    trials: int | None,
    prepare: bool,
    view: View,
    trainer: str = "wgangp.trainer",
) -> None:
    """`--resume --check`: what would become of every trial; nothing is changed.

    Args:
        folder: from `folder.find`.
        trials: as for `resume_sweep`.
        prepare: pass the second gate too.
        view: where it is shown.
        trainer: as for `run_sweep`.

    Raises:
        UserError: as `resume_sweep`.
    """
    folder.check_free()
    space, known = _look(folder, trials)
    wanted = max(known.wanted, trials or 0)
    for line in outlook.resume_lines(folder, known.records, wanted, space.finalists):
        view.print(line)
    if prepare:
        frozen = _frozen_features(folder)
        with prepared(space, out=folder.out, trainer=trainer, view=view, frozen=frozen) as ready:
            for line in plan_lines(space, ready, trials=wanted):
                view.print(line)


def _run(folder: SweepFolder, space: Space, ready: Ready, *, view: View, trials: int | None) -> Results:
    """Everything under the sweep's lock, from the study to the report."""
    uri = store.store_of(folder)
    with _log_to(folder.log, view):
        if _frozen_features(folder) is None:
            ready.wait(ready.preparation.freeze.remote(str(folder.features)))
        sweep_id, under = folder.identify(), provenance.conditions()
        held_to = ("data_sha256", "features_sha256", "code_sha256")
        scored_with = {name: ready.facts[name] for name in held_to if name in ready.facts}
        study = SweepStudy(
            folder, space, sweep_id=sweep_id, trials=trials, under=under, scored_with=scored_with
        )
        for change in provenance.differences(study.conditions_before, under):
            log.warning("%s: trials from before and after may not compare", change)
        study.drop_unrecorded_checkpoints()
        outbox = Outbox(folder.outbox)
        shared = {name: ready.facts[name] for name in ("trained_on", "features", "features_sha256")}
        recorder = Recorder(study, outbox, under=provenance.in_words(under), tags=shared)
        recorder.begin_sweep(tags=under | ready.facts, files=[folder.space.name])
        tracker = tracking.Tracker(folder, outbox, sweep_id=sweep_id, experiment=space.name, uri=uri)
        tracker.start()
        for line in plan_lines(space, ready, trials=study.trials_wanted):
            view.print(line)
        view.print(f"  {folder.path}: report.html follows the trials, warnings of libraries go to log.txt")
        interruption, ui = "", shlex.join(store.ui_command(sys.executable, uri))

        def as_it_stands(records: list[TrialRecord]) -> Results:
            return Results(folder, space, records, ready.facts, fresh={}, ui=ui)

        try:
            tune_trials(
                folder,
                space,
                ready,
                study=study,
                recorder=recorder,
                tracker=tracker,
                view=view,
                write_report=lambda: write_report(as_it_stands(study.records())),
            )
        except Interrupted as interrupted:
            interruption = str(interrupted)
        study.drop_unrecorded_checkpoints()
        results = replace(as_it_stands(study.final_records()), interruption=interruption)
        return close(results, study, ready, recorder=recorder, tracker=tracker, view=view)


def _look(folder: SweepFolder, trials: int | None) -> tuple[Space, history.History]:
    """What a resume goes on with, looked at before anything starts.

    Raises:
        UserError: the copy of its space was changed, its study or tracking store is gone, `trials` are fewer.
    """
    space = space_file.load(folder.space)
    known = history.read(folder, space)
    if known.space is not None:
        unchanged.check_unchanged(space, known.space)
    if not known.records and any(folder.trials.glob("*/t[0-9]*")):
        raise UserError(
            f"{folder.name}: has trials, but no study of them: study.log or id is gone or empty."
            " Put back a copy of it, or start a new sweep."
        )
    charter.check_growth(known.wanted, extended_to=trials)
    store.store_of(folder)
    return space, known


def _frozen_features(folder: SweepFolder) -> Path | None:
    """None: the sweep was stopped before they were kept; they are made again."""
    return folder.features if folder.has_features else None


class _Shown(logging.Handler):
    def __init__(self, view: View) -> None:
        super().__init__(logging.WARNING)
        self._view = view

    def emit(self, record: logging.LogRecord) -> None:
        self._view.warn(record.getMessage())


@contextlib.contextmanager
def _log_to(path: Path, view: View) -> Iterator[None]:
    """Warnings of the libraries go to the sweep's log, not over the table; ours go to both."""
    to_file = logging.FileHandler(path, encoding="utf-8")
    to_file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    to_file.handleError = lambda record: None  # type: ignore[method-assign]
    root, ours, shown = logging.getLogger(), logging.getLogger("sweeps"), _Shown(view)
    kept, root.handlers = root.handlers, [to_file]
    ours.addHandler(shown)
    try:
        yield
    finally:
        ours.removeHandler(shown)
        root.handlers = kept
        with contextlib.suppress(OSError):  # the disk may be full
            to_file.close()
