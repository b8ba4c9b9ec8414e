"""What `gp.yaml` finds and costs, for several sweep seeds, against the published defaults in the same sweeps.

    .venv/bin/python benchmarks/gp_sweep.py --seeds 0 1 2

Each sweep is the command of the README with an empty cache. Figures are read from what it left behind;
memory is sampled four times a second.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from sweeps import history, space_file  # noqa: E402
from sweeps.finalists import winner  # noqa: E402
from sweeps.folder import SweepFolder  # noqa: E402

HEADINGS = (
    *("seed", "wall s", "best FID", "fresh", "(10,5)", "times", "(10,1)", "sure", "classes"),
    *("startup s", "driver MB", "worker MB"),
)
"""(10,5) and (10,1): best FID of the published and the two-rate default; sure: of 64 samples."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--space", default="gp.yaml")
    parser.add_argument("--out", type=Path, help="keep the sweeps here (default: a folder that is removed)")
    options = parser.parse_args()
    print(_line(*HEADINGS), flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        for seed in options.seeds:
            print(_row(seed, options.space, (options.out or Path(scratch)) / f"seed-{seed}"), flush=True)


def _row(seed: int, space: str, out: Path) -> str:
    command = [sys.executable, str(ROOT / "sweeps" / "run.py"), "--space", space, "--out", str(out)]
    began = time.monotonic()
    process = subprocess.Popen([*command, "--set", f"sweep.seed={seed}"], stdout=subprocess.DEVNULL)
    driver_bytes = worker_bytes = 0
    while process.poll() is None:
        driver, worker = _memory(process.pid)
        driver_bytes, worker_bytes = max(driver, driver_bytes), max(worker, worker_bytes)
        time.sleep(0.25)
    wall = time.monotonic() - began
    assert process.returncode == 0, f"the sweep exited {process.returncode}"

    (path,) = (path.parent for path in out.glob("*/space.yaml"))
    folder = SweepFolder(path)
    records = history.read(folder, space_file.load(folder.space)).records
    best = winner(records)
    assert best is not None
    published, two_rate = (record for record in records if record.baseline)
    fresh = json.loads((folder.best / "scores.json").read_text())["scores"][best.label]
    startup = statistics.median(record.ticks[1]["startup_seconds"] for record in records)
    return _line(
        str(seed),
        f"{wall:.0f}",
        f"{best.best_fid:.1f}",
        f"{fresh['fid_fresh']:.1f}",
        f"{published.best_fid:.1f}",
        f"{published.best_fid / best.best_fid:.1f}",
        f"{two_rate.best_fid:.1f}",
        f"{fresh['sure_samples']:.0f}",
        f"{fresh['classes_seen']:.0f}",
        f"{startup:.2f}",
        f"{driver_bytes / 1e6:.0f}",
        f"{worker_bytes / 1e6:.0f}",
    )


def _line(*cells: str) -> str:
    return " ".join(f"{cell:>9}" for cell in cells)


def _memory(pid: int) -> tuple[int, int]:
    """Resident bytes of the driver, and of its largest training worker."""
    try:
        driver = psutil.Process(pid)
        workers = [
            child.memory_info().rss
            for child in driver.children(recursive=True)
            if "SweepTrial" in " ".join(child.cmdline())
        ]
        return driver.memory_info().rss, max(workers, default=0)
    except psutil.Error:
        return 0, 0


if __name__ == "__main__":
    main()
