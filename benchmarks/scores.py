"""Seconds of our scores against other forms of them, on the same features, in one run.

    make references
    .venv-references/bin/python benchmarks/scores.py

FID from the moments of the generated images; the reference is prepared once, as a sweep does. The sqrtm form
is the published one, with scipy's root of a matrix; torch-fidelity takes the eigenvalues of the product.
Every time is the shortest of several.
"""

import os
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import scipy.linalg
from threadpoolctl import threadpool_limits

from wgangp import frechet, scores

ALL = ("fid", "kid", *scores.OF_NEIGHBOURS, "inception_score")


def main() -> None:
    for threads in (1, os.cpu_count() or 1):
        with threadpool_limits(threads):
            print(f"on {threads} thread(s)")
            for dimensions, repeats in ((128, 20), (2048, 3)):
                _compare(dimensions, repeats)
    with threadpool_limits(1):
        _scorer()


def _compare(dimensions: int, repeats: int) -> None:
    random = np.random.default_rng(0)
    mix = random.normal(size=(dimensions, dimensions)) / np.sqrt(dimensions)
    real = random.normal(size=(2 * dimensions, dimensions)) @ mix
    fake = 0.9 * random.normal(size=(2 * dimensions, dimensions)) @ mix + 0.1
    against, mean, covariance = frechet.gaussian(real), fake.mean(axis=0), np.cov(fake, rowvar=False)
    print(f"  FID in {dimensions} dimensions")
    ours, fid = _timed(lambda: frechet.distance(mean, covariance, len(fake), against=against), repeats)
    print(f"    {'ours':28} {ours:8.4f} s")
    others: dict[str, Callable[[], float]] = {"sqrtm form": lambda: _sqrtm_form(mean, covariance, against)}
    if find_spec("torch_fidelity"):
        from torch_fidelity.metric_fid import fid_statistics_to_metric

        mine = {"mu": mean, "sigma": covariance}
        theirs = {"mu": against.mean, "sigma": against.covariance}
        others["torch-fidelity"] = lambda: next(iter(fid_statistics_to_metric(mine, theirs, False).values()))
    else:
        print("    torch-fidelity is not installed: make references")
    for name, other in others.items():
        seconds, found = _timed(other, max(1, repeats // 3))
        times = f"{seconds / ours:6.1f} times ours, differs by {abs(found / fid - 1):.0e}"
        print(f"    {name:28} {seconds:8.4f} s  {times}")
    for name, whole in (("moments and fid", frechet.fid), ("and its standard error", frechet.fid_with_error)):
        seconds, _ = _timed(lambda whole=whole: whole(fake, against=against), repeats)
        print(f"    {name:28} {seconds:8.4f} s")


def _scorer() -> None:
    print("all scores of a tick, 2000 images, 128 dimensions, one thread")
    random = np.random.default_rng(1)
    real, fake = random.normal(size=(2, 4500, 128)).astype(np.float32)
    scorer = scores.Scorer(scores.Reference(frechet.gaussian(real), real), most=1000)
    probabilities = random.dirichlet(np.ones(10), size=2000)
    for names in (("fid",), ("fid", "precision", "recall"), ALL):
        seconds, _ = _timed(lambda names=names: scorer.scores(fake[:2000], probabilities, names=names), 5)
        print(f"    {seconds:8.4f} s  {', '.join(names)}")


def _sqrtm_form(mean: np.ndarray, covariance: np.ndarray, against: frechet.Gaussian) -> float:
    root = scipy.linalg.sqrtm(covariance @ against.covariance)
    distance = np.square(mean - against.mean).sum()
    return float(distance + np.trace(covariance + against.covariance - 2 * root.real))


def _timed(compute: Callable[[], float], repeats: int) -> tuple[float, float]:
    """Shortest time, and what was computed."""
    best = float("inf")
    for _ in range(repeats):
        begin = time.perf_counter()
        found = compute()
        best = min(best, time.perf_counter() - begin)
    return best, found


if __name__ == "__main__":
    main()
