"""Images per second and FID under each way of distributing a trial, each in a sweep of its own, in one run.

    .venv/bin/python benchmarks/strategies.py

For each row the same settings are trained with several seeds, one after another, at equal kimg, on 2 CPUs
(the first row: 1). All rows but the asynchronous one and those in bfloat16 train the same weights up to
rounding; their FIDs differ by what rounding grows to over some hundred steps.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from sweeps import history, space_file  # noqa: E402
from sweeps.folder import SweepFolder  # noqa: E402
from sweeps.records import TrialRecord  # noqa: E402

SPACE = """
name: strategies
search: {{seed: {{type: categorical, choices: [{choices}]}}}}
enqueue: [{enqueue}]
train:
  {{dataset: mnist5k, width: 16, batch_size: 64,
    gp_weight: 1, n_critic: 3, critic_lr: 3.0e-3, generator_lr: 3.0e-3,
    budget_kimg: {kimg}, tick_kimg: {tick}, fid_samples: 2000}}
pruner: {{name: none}}
sweep: {{trials: {trials}, retries: 0, max_concurrent: 1}}
"""

ROWS: dict[str, list[str]] = {
    "one_device, 1 CPU": ["resources.cpus=1"],
    "one_device": ["resources.cpus=2"],
    "mirrored, 2 replicas": ["resources.cpus=2", "resources.strategy=mirrored"],
    "multi_worker, 2 processes": ["resources.cpus=1", "resources.workers=2"],
    "parameter_server, 2 workers": [
        *("resources.cpus=1", "resources.workers=2", "resources.strategy=parameter_server")
    ],
    "placement: split": ["resources.cpus=2", "resources.placement=split"],
    "accumulation_steps: 4": ["resources.cpus=2", "train.accumulation_steps=4"],
    "precision: bfloat16": ["resources.cpus=2", "train.precision=bfloat16"],
    "mirrored, allreduce_precision: bfloat16": [
        *("resources.cpus=2", "resources.strategy=mirrored", "train.allreduce_precision=bfloat16")
    ],
    "multi_worker, allreduce_precision: bfloat16": [
        *("resources.cpus=1", "resources.workers=2", "train.allreduce_precision=bfloat16")
    ],
    "jit_compile: true": ["resources.cpus=2", "train.jit_compile=true"],
    "run_eagerly: true": ["resources.cpus=2", "train.run_eagerly=true"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--kimg", type=float, default=27, help="of each trial, in three ticks")
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS), metavar="ROW")
    options = parser.parse_args()
    print(f"{'':44} {'images/s':>8} {'ratio':>6}  best FID of each seed", flush=True)
    first = None
    with tempfile.TemporaryDirectory() as scratch:
        for index, row in enumerate(options.rows):
            records = _sweep(Path(scratch) / str(index), ROWS[row], options)
            speed = _images_per_second(records)
            first = first or speed
            fids = "  ".join(f"{record.best_fid:6.1f}" for record in records)
            mean = statistics.mean(record.best_fid for record in records)
            print(f"{row:44} {speed:8.0f} {speed / first:6.2f}  {fids}   mean {mean:.1f}", flush=True)


def _sweep(folder: Path, overrides: list[str], options: argparse.Namespace) -> list[TrialRecord]:
    """The trials of one row, by seed."""
    folder.mkdir()
    space = folder / "strategies.yaml"
    space.write_text(
        SPACE.format(
            choices=", ".join(map(str, options.seeds)),
            enqueue=", ".join(f"{{seed: {seed}}}" for seed in options.seeds),
            trials=len(options.seeds),
            kimg=options.kimg,
            tick=options.kimg / 3,
        )
    )
    sets = [word for override in overrides for word in ("--set", override)]
    command = [sys.executable, str(ROOT / "sweeps" / "run.py"), "--space", str(space), "--out", str(folder)]
    environment = {**os.environ, "WGANGP_CACHE": str(folder.parent / "cache")}
    ended = subprocess.run([*command, *sets], capture_output=True, text=True, env=environment)
    assert ended.returncode == 0, f"the sweep exited {ended.returncode}: {ended.stdout}{ended.stderr}"
    (frozen,) = folder.glob("*/space.yaml")
    kept = SweepFolder(frozen.parent)
    return history.read(kept, space_file.load(kept.space)).records


def _images_per_second(records: list[TrialRecord]) -> float:
    """Median over ticks; the first of a worker holds its first calls."""
    return statistics.median(
        metrics["images_per_second"]
        for record in records
        for tick, metrics in record.ticks.items()
        if tick > 1
    )


if __name__ == "__main__":
    main()
