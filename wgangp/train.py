"""The command line of one training run, without Ray: `python -m wgangp.train best.yaml`.

A run is a folder `<out>/train-0001` with its settings, frozen features, metrics.csv, samples.png, log.txt and
the last two checkpoints. `--resume` goes on from there.
"""

import argparse
import contextlib
import multiprocessing
import os
import shlex
import signal
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wgangp import opening, settings_file
from wgangp.errors import UserError
from wgangp.quiet import import_tensorflow
from wgangp.run_folder import Run
from wgangp.strategies import PLACEMENTS, missing

if TYPE_CHECKING:
    from wgangp.prepared import Prepared
    from wgangp.trainer import Trainer

STRATEGIES = ("auto", "one_device", "mirrored", "tpu")
"""Those of one process; gangs are started by sweeps."""

ROOT = Path(__file__).resolve().parent.parent


def main(arguments: list[str] | None = None) -> int:
    """Train one setting to its budget.

    Returns:
        0 the budget is used up, 1 the run diverged, 2 the user's mistake, 130 interrupted.
    """
    options = _parser().parse_args(arguments)
    # A service that is told to stop and a person at the keyboard want the same.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    run = None
    try:
        run = _run(options)
        return _train(run, options)
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nInterrupted.", file=sys.stderr)
        if run and run.checkpoints():
            again = [sys.executable, "-m", "wgangp.train", "--resume", str(run.folder), *_where(options)]
            print(f"Go on: cd {shlex.quote(str(ROOT))} && {shlex.join(again)}", file=sys.stderr)
        return 130


def _run(options: argparse.Namespace) -> Run:
    if not options.resume:
        return opening.new(options.settings, options.set, out=options.out.resolve(), go_on=options.go_on)
    if options.settings or options.set or options.go_on:
        raise UserError("--resume: takes no settings; a run goes on with those it was started with.")
    return opening.again(options.resume.resolve())


def _train(run: Run, options: argparse.Namespace) -> int:
    if lack := missing(options.strategy):
        raise UserError(f"--{lack}")
    if options.placement == "split" and options.strategy not in ("auto", "one_device"):
        raise UserError(f"--placement: must be together under --strategy {options.strategy}, got split.")
    if options.replicas is not None:
        _check_replicas(options)
    _ignore_tf_config()
    print("importing TensorFlow ...", flush=True)
    import_tensorflow()
    from wgangp import trainer as training

    cache = Path(os.environ.get("WGANGP_CACHE") or options.out / "cache").resolve()
    prepared = _prepare(run, cache)
    trainer = training.Trainer(
        prepared, strategy=options.strategy, placement=options.placement, **_devices(options)
    )
    trainer.start(run.config)
    if run.before:
        _go_on(trainer, run)
    if not run.folder.exists():
        run.begin()
        settings_file.dump(run.config.model_dump(), run.folder / "settings.yaml", comment="One training run.")
        training.freeze(prepared, run.folder / "features")
    for checkpoint in run.checkpoints():
        try:
            trainer.load(checkpoint)
            break
        except training.CheckpointError as error:
            print(f"warning: {error}; trying the one before", file=sys.stderr)
    run.forget_after(trainer.tick)
    print(f"{run.folder}, {trainer.layout}", flush=True)
    outcome = "complete" if trainer.tick >= run.config.ticks else None
    while outcome is None:
        progress = trainer.advance()
        print(run.record(progress), flush=True)
        run.save(trainer)
        outcome = progress.outcome
        if outcome == "diverged":
            print(f"diverged: {progress.reason}", file=sys.stderr)
        if outcome and (why := trainer.export(run.folder)):
            print(f"warning: the generator cannot be kept as a Keras model: {why}", file=sys.stderr)
    if outcome == "complete" and (found := run.verdict()).word != "-":
        print(f"{found.word}: {found.evidence}")
    print(f"{outcome}; samples: {run.folder / 'samples.png'}")
    return 0 if outcome == "complete" else 1


def _go_on(trainer: "Trainer", run: Run) -> None:
    """Load the checkpoint of another run, before anything is made: a mistake leaves nothing behind."""
    from wgangp.trainer import CheckpointError

    assert run.before is not None
    try:
        trainer.load(run.before)
    except CheckpointError as error:
        raise UserError(f"--continue: {error}.") from error
    if trainer.tick >= run.config.ticks:
        had = trainer.tick * run.config.tick_kimg
        raise UserError(
            f"--continue: budget_kimg must be above the {had:g} kimg that the winner has had, got"
            f" {run.config.budget_kimg:g}; add --set budget_kimg={3 * had:g}."
        )


def _check_replicas(options: argparse.Namespace) -> None:
    """Several replicas are mirrored ones, which `auto` then means."""
    if options.replicas < 1:
        raise UserError(f"--replicas: must be at least 1, got {options.replicas}.")
    one = "--placement split" if options.placement == "split" else f"--strategy {options.strategy}"
    if options.replicas > 1 and (options.placement == "split" or options.strategy in ("one_device", "tpu")):
        raise UserError(f"--replicas: goes with --strategy mirrored, not with {one}; leave it out.")
    if options.replicas > 1:
        options.strategy = "mirrored"


def _prepare(run: Run, cache: Path) -> "Prepared":
    """Features are made in a process of their own: on one thread, while training uses all."""
    from wgangp.prepared import prepare

    if run.features:
        return prepare(run.config, cache=cache, frozen=run.features, say=_say)
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn, initializer=import_tensorflow) as apart:
        return apart.submit(prepare, run.config, cache=cache, say=_say).result()


def _ignore_tf_config() -> None:
    """With one that was inherited, TensorFlow would wait for machines that are not there."""
    if os.environ.get("TF_CONFIG", "").strip() not in ("", "{}"):
        print("TF_CONFIG is ignored: a run trains on this machine alone.", flush=True)
    os.environ["TF_CONFIG"] = "{}"


def _devices(options: argparse.Namespace) -> dict[str, Any]:
    """All GPUs there are, else all CPUs; `--replicas` takes fewer, or as many logical CPU devices."""
    import tensorflow as tf

    gpus = len(tf.config.list_physical_devices("GPU"))
    if options.placement == "split" and gpus == 1:
        raise UserError("--placement: must be together on a machine with 1 GPU, got split.")
    if options.replicas and gpus and options.replicas > gpus:
        raise UserError(
            f"--replicas: must be at most the {gpus} GPUs of this machine, got {options.replicas}."
        )
    return {
        "cpus": (0 if gpus else options.replicas) or os.cpu_count() or 1,
        "gpus": min(gpus, options.replicas or gpus),
    }


def _where(options: argparse.Namespace) -> list[str]:
    """The options that say what to train on, as they were given."""
    given = {"strategy": "auto", "placement": "together", "replicas": None}
    return [
        word
        for name, default in given.items()
        if (value := getattr(options, name)) != default
        for word in (f"--{name}", str(value))
    ]


def _say(line: str) -> None:
    print(f"{line} ...", flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m wgangp.train", description="Train one WGAN-GP setting without a sweep."
    )
    parser.add_argument(
        "settings", nargs="?", type=Path, help="YAML of settings, such as a sweep's best.yaml"
    )
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override a setting")
    parser.add_argument(
        "--continue",
        dest="go_on",
        action="store_true",
        help="with a sweep's best.yaml and a longer budget: from the winner's weights, not anew",
    )
    parser.add_argument("--resume", type=Path, metavar="DIR", help="go on with a run, e.g. runs/train-0001")
    parser.add_argument(
        "--out", type=Path, default=Path("runs"), metavar="DIR", help="folder for runs [runs]"
    )
    parser.add_argument("--strategy", choices=STRATEGIES, default="auto", help="how to distribute [auto]")
    parser.add_argument(
        "--placement", choices=PLACEMENTS, default="together", help="split: each network on its own device"
    )
    parser.add_argument(
        "--replicas", type=int, metavar="N", help="copies that train in step [all GPUs or CPUs]"
    )
    return parser


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        sys.exit(main())
