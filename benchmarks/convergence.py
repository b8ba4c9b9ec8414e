"""Real runs of known kinds, and what `wgangp.convergence.verdict` says of their curves.

    .venv/bin/python benchmarks/convergence.py --jobs 2 --curves curves.json --picture convergence.png

Each kind is two settings that were chosen to bring it about, before any curve was looked at by the rules. The
thresholds were set on runs of the even seeds; the second table, of the odd ones, is what they are worth.
`--from curves.json` judges kept curves again and trains nothing.
"""

import argparse
import io
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["OMP_NUM_THREADS"] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from wgangp import convergence
from wgangp.config import TrainConfig

COMMON = {"width": 16, "latent_size": 6, "batch_size": 32, "tick_kimg": 9, "budget_kimg": 90}
SGD = {"optimizer": "sgd", "tick_kimg": 3, "budget_kimg": 12}
KINDS: dict[str, list[dict[str, Any]]] = {
    "improving": [
        {"gp_weight": 1, "n_critic": 3, "critic_lr": 4e-4, "generator_lr": 4e-4, "budget_kimg": 54},
        {"gp_weight": 10, "n_critic": 1, "critic_lr": 3e-4, "generator_lr": 1e-4},
    ],
    "plateaued": [
        {"penalty": "zero_centered", "gp_weight": 1000, "n_critic": 1, "ema_decay": 0.99},
        {"gp_weight": 10, "n_critic": 1, "width": 2, "ema_decay": 0.99, "budget_kimg": 162},
    ],
    "oscillating": [
        {"gp_weight": 10, "n_critic": 1, "critic_lr": 1e-4, "generator_lr": 1e-2},
        {"gp_weight": 10, "n_critic": 1, "critic_lr": 1e-4, "generator_lr": 5e-3, "adam_beta1": 0.5},
    ],
    "overfitting": [
        {"gp_weight": 1, "n_critic": 5, "ema_decay": 0.99, "train_images": 200},
        {"gp_weight": 1, "n_critic": 5, "critic_lr": 1e-3, "generator_lr": 1e-3, "train_images": 200},
    ],
    "collapsed": [
        {"gp_weight": 10, "n_critic": 1, "adam_beta1": 0.9, "budget_kimg": 126},
        {"gp_weight": 1, "n_critic": 1, "critic_lr": 1e-2, "generator_lr": 2e-2, "adam_beta1": 0.9},
    ],
    "dead critic": [
        {"n_critic": 1, "critic_lr": 1e-7, "generator_lr": 1e-4, "budget_kimg": 54},
        {"n_critic": 1, "critic_lr": 1e-7, "generator_lr": 1e-2, "budget_kimg": 54},
    ],
    "exploded": [
        {"gp_weight": 1e-3, "n_critic": 3, "critic_lr": 1e-2, "generator_lr": 1e-2},
        {"gp_weight": 1e-3, "n_critic": 5},
    ],
    "diverged": [
        {"gp_weight": 100, "critic_lr": 1.0, "generator_lr": 1.0, **SGD},
        {"gp_weight": 10, "critic_lr": 0.1, "generator_lr": 0.1, **SGD},
    ],
}
"""Rates are 3e-3 where none is said."""
FIDS = (20, 50, 100, 200, 500, 1000)
MEASURED = (
    *("images_seen", "fid", "fid_standard_error", "diversity", "precision", "recall"),
    *("wasserstein", "gradient_norm", "gradient_penalty", "heldout_gap"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3])
    parser.add_argument("--jobs", type=int, default=1, help="runs at once, each on one thread [1]")
    parser.add_argument("--from", type=Path, dest="kept", help="judge these curves, train nothing")
    parser.add_argument("--curves", type=Path, help="keep the curves here")
    parser.add_argument("--picture", type=Path, help="draw a run of each kind here")
    options = parser.parse_args()
    if options.kept:
        runs = json.loads(options.kept.read_text())
    else:
        runs = _train_all(options.seeds, options.jobs, picture=options.picture)
    if options.curves:
        lines = ",\n".join(json.dumps(run) for run in runs)
        options.curves.write_text(f"[\n{lines}\n]\n")
    for half, name in ((0, "even seeds, on which the thresholds were set"), (1, "odd seeds")):
        print(f"\n{name}:")
        for line in confusion(run for run in runs if run["seed"] % 2 == half):
            print(line)


def judged(run: dict[str, Any]) -> convergence.Verdict:
    """The verdict on a kept run."""
    return convergence.verdict(run["ticks"], diverged=run["diverged"])


def confusion(runs: Iterable[dict[str, Any]]) -> list[str]:
    """A Markdown table: a row for each kind, a column for each verdict."""
    counts = Counter((run["kind"], judged(run).word) for run in runs)
    words = list(KINDS)
    rows = [[kind, *(str(counts[kind, word] or "") for word in words)] for kind in words]
    return [f"| {' | '.join(row)} |" for row in (["made to be", *words], ["---"] * (len(words) + 1), *rows)]


def _train_all(seeds: list[int], jobs: int, *, picture: Path | None) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder)
        orders = [
            (kind, number, seed, cache)
            for seed in seeds
            for kind, settings in KINDS.items()
            for number in range(len(settings))
        ]
        _prepare(cache)
        runs, samples = [], {}
        with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
            for future in as_completed([pool.submit(_train, *order) for order in orders]):
                run, png = future.result()
                runs.append(run)
                samples[run["kind"], run["seed"], run["setting"]] = png
                found, which = judged(run), f"{run['kind']} {run['setting']} seed {run['seed']}"
                print(f"{which}: {found.word}: {found.evidence}", flush=True)
    if picture:
        _draw(runs, samples, picture)
    return sorted(runs, key=lambda run: (run["seed"], list(KINDS).index(run["kind"]), run["setting"]))


def _prepare(cache: Path) -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        pool.submit(_features, cache).result()


def _features(cache: Path) -> None:
    from wgangp import trainer

    trainer.prepare(TrainConfig(), cache=cache, say=lambda line: None)


def _train(kind: str, number: int, seed: int, cache: Path) -> tuple[dict[str, Any], bytes]:
    from wgangp import trainer

    rates = {"critic_lr": 3e-3, "generator_lr": 3e-3}
    config = TrainConfig(**COMMON | rates | KINDS[kind][number], seed=seed)  # type: ignore[arg-type]
    prepared = trainer.prepare(config, cache=cache, say=lambda line: None)
    run = trainer.Trainer(prepared, strategy="one_device")
    run.start(config)
    ticks = []
    while True:
        progress = run.advance()
        metrics = progress.metrics | {"images_seen": progress.images_seen}
        ticks.append({name: _digits(metrics[name]) for name in MEASURED if abs(metrics[name]) < float("inf")})
        if progress.outcome:
            reason = progress.reason if progress.outcome == "diverged" else ""
            kept = {"kind": kind, "setting": number, "seed": seed, "diverged": reason, "ticks": ticks}
            return kept, progress.samples


def _digits(value: float) -> float:
    return float(f"{value:.4g}")


def _draw(runs: list[dict[str, Any]], samples: dict[Any, bytes], path: Path) -> None:
    """For each kind FID over kimg, and a corner of the samples at the end, of one run of the odd seeds."""
    import matplotlib.pyplot as plt
    from PIL import Image

    figure, axes = plt.subplots(2, len(KINDS), figsize=(2 * len(KINDS), 4), height_ratios=(1, 1))
    for column, kind in enumerate(KINDS):
        of_kind = [run for run in runs if run["kind"] == kind]
        run = min(of_kind, key=lambda run: (judged(run).word != kind, -run["seed"] % 2, run["setting"]))
        with_fid = [tick for tick in run["ticks"] if "fid" in tick]
        curve, picture = axes[0, column], axes[1, column]
        curve.plot([t["images_seen"] / 1000 for t in with_fid], [t["fid"] for t in with_fid], ".-", lw=1)
        curve.set(title=judged(run).word, yscale="log", ylim=(20, 1000), xlim=(0, None), xlabel="kimg")
        curve.minorticks_off()
        curve.set_yticks(FIDS, [str(fid) for fid in FIDS] if not column else [])
        if not with_fid:
            curve.text(0.5, 0.5, "no finite FID", ha="center", transform=curve.transAxes)
        curve.set_ylabel("FID" if not column else "")
        grid = Image.open(io.BytesIO(samples[kind, run["seed"], run["setting"]]))
        picture.imshow(grid.crop((0, 0, grid.width // 2, grid.height // 2)), cmap="gray", vmin=0, vmax=255)
        picture.axis("off")
    figure.tight_layout()
    figure.savefig(path, dpi=70)


if __name__ == "__main__":
    main()
