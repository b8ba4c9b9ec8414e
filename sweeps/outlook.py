"""What `--resume` would do: of every sweep in a line, of one sweep trial by trial. Nothing is written."""

from sweeps import history, space_file
from sweeps.finalists import missing_runs, winner
from sweeps.folder import SweepFolder
from sweeps.outbox import waiting_in
from sweeps.records import TrialRecord, trials_of
from sweeps.sections import Finalists
from wgangp.errors import UserError
from wgangp.wording import count


def state_line(folder: SweepFolder) -> str:
    """A sweep's name, whether it is running, how far it came."""
    try:
        space = space_file.load(folder.space)
        known = history.read(folder, space)
    except UserError as error:
        return f"{folder.name}  cannot be read: {error.problems[0]}"
    records, wanted = known.records, known.wanted
    ended, failed, open_, missing = _counts(records, wanted)
    runs = len(missing_runs(records, space.finalists))
    if holder := folder.holder():
        state = f"running ({holder})"
    elif open_ or missing or runs:
        state = "interrupted"
    else:
        state = "failed" if failed or not winner(records) else "complete"
    parts = [f"{ended} of {wanted} trials ended"]
    parts += [f"{failed} failed"] if failed else []
    parts += [f"{open_} interrupted"] if open_ else []
    parts += [f"{count(runs, 'finalist run')} missing"] if runs and not (open_ or missing) else []
    best = winner(records)
    parts += [f"best FID {best.best_fid:.1f} ({best.label})"] if best else []
    return f"{folder.name}  {state}: {', '.join(parts)}"


def resume_lines(folder: SweepFolder, records: list[TrialRecord], wanted: int, asked: Finalists) -> list[str]:
    """What would become of each trial that is not done, what is missing, what waits for MLflow."""
    ended, failed, open_, missing = _counts(records, wanted)
    lines = [f"  {folder.name}: {ended} of {wanted} trials ended"]
    for record in records:
        kimg = record.ticks[record.checkpoint_tick]["images_seen"] / 1000 if record.checkpoints else 0
        start = f"goes on after {kimg:g} kimg, if that checkpoint holds" if kimg else "begins anew"
        if record.ending is None:
            lines.append(f"  {record.label} interrupted: {start}  {record.settings}")
        elif record.ending.outcome == "failed":
            lines.append(f"  {record.label} failed ({record.ending.reason}): {start}  {record.settings}")
    if missing:
        lines.append(f"  {count(missing, 'trial')} still to be proposed")
    runs = len(missing_runs(records, asked))
    if runs:
        lines.append(f"  {count(runs, 'run')} of finalists still to be started")
    if waiting := waiting_in(folder.outbox):
        lines.append(f"  {count(waiting, 'record')} to be sent to MLflow")
    if not (failed or open_ or missing or runs or waiting):
        lines.append("  nothing is left to do; --trials N extends it")
    return lines


def _counts(records: list[TrialRecord], wanted: int) -> tuple[int, int, int, int]:
    """How many trials ended other than by failing, how many failed, are open (runs too), are missing."""
    trials = trials_of(records)
    failed, open_ = (
        sum(1 for record in records if (record.ending.outcome if record.ending else "") == outcome)
        for outcome in ("failed", "")
    )
    ended = sum(1 for trial in trials if trial.ending and trial.ending.outcome != "failed")
    return ended, failed, open_, wanted - len(trials)
