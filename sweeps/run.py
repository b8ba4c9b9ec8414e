"""The command line: `python sweeps/run.py --space gp.yaml`, from any directory, installed or not."""

import argparse
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent.parent
if sys.path and Path(sys.path[0] or ".").resolve() == ROOT / "sweeps":
    # Run as a file: Python put this folder there, where its modules would shadow others.
    sys.path[0] = str(ROOT)

from sweeps import disk  # noqa: E402
from sweeps.interrupt import Interrupted  # noqa: E402
from wgangp.errors import UserError  # noqa: E402

if TYPE_CHECKING:
    from sweeps.space import Space


def main(arguments: list[str] | None = None) -> int:
    """Parse, call one function, say where things are; the exit status."""
    options = _parser().parse_args(arguments)
    try:
        return _run(options)
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] in ("sweeps", "wgangp"):
            raise
        print(
            f"{error}. Use the Python of the environment, {ROOT / '.venv' / 'bin' / 'python'},"
            " which `make sweep` makes.",
            file=sys.stderr,
        )
        return 2
    except (KeyboardInterrupt, Interrupted):
        print("Interrupted.", file=sys.stderr)
        return 130
    except Exception as error:
        if not disk.is_full(error):
            raise
        print("The disk is full. Free some space, then start again, or --resume what began.", file=sys.stderr)
        return 130


def _run(options: argparse.Namespace) -> int:
    if options.fields:
        from sweeps import fields

        print("\n".join(fields.lines()))
        return 0
    if options.report:
        return _report(options)
    if options.offline and not options.check:
        raise UserError("--offline: goes with --check, which starts no trial; add --check or remove it.")
    if options.resume is not None:
        return _resume(options)
    if options.space is None:
        raise UserError("--space: say which space file to run, for example --space gp.yaml (or --resume).")
    from sweeps import folder as folders
    from sweeps import space_file, store

    overrides = list(options.set)
    if options.trials is not None:
        overrides.append(f"sweep.trials={options.trials}")
    space = space_file.load(space_file.find(options.space), overrides=overrides)
    folders.check_out(options.out)
    store.tracking_uri(options.out)
    if options.check:
        return _check(space, out=options.out, offline=options.offline)
    from sweeps import sweep

    return sweep.run_sweep(space, out=options.out).exit_status


def _resume(options: argparse.Namespace) -> int:
    from sweeps import folder as folders
    from sweeps import outlook, space_file, sweep, unchanged

    if options.set:
        raise UserError("--set: cannot change a sweep that was started; only --trials can grow.")
    if options.resume == "":
        if options.trials is not None or options.check:
            raise UserError("--resume: say which sweep; alone it lists them.")
        states = [outlook.state_line(folder) for folder in folders.existing(options.out)]
        print("\n".join(states) or f"No sweeps under {options.out}.")
        return 0
    folder = folders.find(options.out, options.resume)
    space = space_file.load(folder.space)
    if options.space:
        given = space_file.load(space_file.find(options.space))
        unchanged.check_unchanged(given, space.values())
        unchanged.check_code_unchanged(folder)
        if options.trials is None and given.sweep.trials > space.sweep.trials:
            print(f"sweep.trials: a sweep grows by --trials {given.sweep.trials}, not by its file.")
    if options.check:
        from sweeps.progress import View

        sweep.plan_resume(folder, trials=options.trials, prepare=not options.offline, view=View())
        return 0
    return sweep.resume_sweep(folder, trials=options.trials).exit_status


def _report(options: argparse.Namespace) -> int:
    from sweeps import folder as folders
    from sweeps import reporting

    if options.space or options.set or options.trials is not None or options.check:
        raise UserError("--report: takes names of sweeps, and --out; nothing else.")
    found = [folders.find(options.out, name, option="--report") for name in dict.fromkeys(options.report)]
    for path in reporting.write(found, options.out):
        print(f"Report: {path.resolve()}")
    return 0


def _check(space: "Space", *, out: Path, offline: bool) -> int:
    if offline:
        print(f"{space.source.name}: no mistakes found in the text.")
        return 0
    from sweeps import sweep
    from sweeps.progress import View

    sweep.plan(space, out=out, view=View())
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description="Sweep WGAN-GP hyperparameters with Ray Tune, Optuna and MLflow."
    )
    parser.add_argument("--space", metavar="FILE", help="space file to run; with --resume: to be compared")
    parser.add_argument(
        "--resume",
        nargs="?",
        const="",
        metavar="SWEEP",
        help="go on with a sweep (name or path); alone: list them",
    )
    parser.add_argument("--trials", type=int, metavar="N", help="trials in all")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="override a key of the space"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("runs"), metavar="DIR", help="folder for everything [runs]"
    )
    parser.add_argument(
        "--report", nargs="+", metavar="SWEEP", help="write the reports again; of several, a comparison too"
    )
    parser.add_argument("--check", action="store_true", help="read, prepare, plan; start no trial")
    parser.add_argument(
        "--fields", action="store_true", help="print every setting with default, unit, values and meaning"
    )
    parser.add_argument("--offline", action="store_true", help="with --check: only read")
    return parser


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # until the sweep looks out for both itself
    sys.exit(main())
