"""A sweep of 1,000 trivial trials whose driver and workers are killed at random moments: what does it lose?

    .venv/bin/python benchmarks/chaos.py                           1,000 trials, 15 and 50 kills
    .venv/bin/python benchmarks/chaos.py --trials 60 --driver-kills 2 --worker-kills 6
    .venv/bin/python benchmarks/chaos.py --out DIR                 keep the sweep
    .venv/bin/python benchmarks/chaos.py --check DIR               look again at one that was kept

The sweep is the command of the README with the trainer of `tests/scripted_trainer.py`, which needs no
TensorFlow. SIGKILL comes to the driver as a number of trials have begun, or some seconds after its start, and
each time it is resumed; to its workers as they train. A worker's kill counts if the driver says that an
attempt died, the driver's if it was alive. Then the sweep runs to its end and everything is compared.

Exit status: 0 nothing was lost; 1 something was, or fewer kills landed than were wanted.
"""

import argparse
import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")

from benchmarks.chaos_losses import Row, check, unsent  # noqa: E402

SPACE = """\
name: chaos
search:
  gp_weight:    {type: float, low: 0.1,  high: 100,  log: true}
  generator_lr: {type: float, low: 1e-4, high: 1e-2, log: true}
enqueue:
  - {gp_weight: 10, generator_lr: 1e-4}
  - {gp_weight: 11, generator_lr: 3e-4, prune: true}
train: {budget_kimg: 18, tick_kimg: 9}
sampler: {name: random}
pruner: {name: successive_halving, first_rung_kimg: 9, reduction_factor: 2}
sweep: {retries: 1}
"""
TICK_SECONDS = 0.05
STARTING = 6.0
"""A driver that is to be killed early is killed within so many seconds of its start."""
LOOK = 0.02
"""Seconds between two looks at the sweep."""
MISSED = 10.0
"""Seconds after which a worker's kill of which the driver says nothing has missed."""
HANGS = 300.0
"""Seconds without a new trial after which a sweep is given up."""
DEATH = re.compile(r": t\d+: attempt \d+.*: the worker ")


@dataclass
class Kills:
    """How many were wanted, and how many landed."""

    seed: int
    trials: int
    drivers_wanted: int
    workers_wanted: int
    drivers: int = 0
    drivers_starting: int = 0
    workers: int = 0
    workers_struck: int = 0

    @property
    def unsaid(self) -> int:
        return self.workers_struck - self.workers

    def rows(self) -> list[Row]:
        return [
            Row("kills of the driver", self.drivers, least=self.drivers_wanted),
            Row("  before it trained", self.drivers_starting),
            Row("kills of workers that cost an attempt", self.workers, least=self.workers_wanted),
            Row("  that cost none, or of which a killed driver said nothing", max(0, self.unsaid)),
            Row("deaths of workers that nobody ordered", max(0, -self.unsaid), 0),
        ]


class Chaos:
    """One sweep in `out`, and what is done to it."""

    def __init__(self, out: Path, kills: Kills) -> None:
        self.out, self.kills = out, kills
        self.random = random.Random(kills.seed)
        last = max(2, int(0.9 * kills.trials))
        self._driver_plan = sorted(self.random.randint(1, last) for _ in range(kills.drivers_wanted))
        early = self.random.sample(range(kills.drivers_wanted), kills.drivers_wanted // 5)
        self._early = {index: self.random.uniform(0.3, STARTING) for index in early}
        self._worker_plan = sorted(self.random.randint(1, last) for _ in range(kills.workers_wanted))
        self._struck: float | None = None
        """When a worker was killed of which the driver has said nothing yet."""
        self.bystanders: list[psutil.Process] = []
        """Processes of drivers that were killed, which should end with them."""

    @property
    def folder(self) -> Path | None:
        return next((path.parent for path in self.out.glob("*/space.yaml")), None)

    def begun(self) -> int:
        """Trials that finished a first tick."""
        notes = self.out / "cache" / "ticks.jsonl"
        return notes.read_bytes().count(b'"tick": 1,') if notes.exists() else 0

    def run(self) -> None:
        """Start, kill and resume until the sweep has come to its end, or cannot."""
        unkilled = 0
        for number in range(1, 1000):
            began, before = time.monotonic(), self.begun()
            status, first = self._start()
            seconds = time.monotonic() - began
            trained = "" if first is None else f", first tick after {first:4.1f} s"
            print(
                f"start {number:>2}: {'killed' if status == -signal.SIGKILL else f'exit {status}':<7} after"
                f" {seconds:5.1f} s, trials {before} to {self.begun()}{trained};"
                f" kills {self.kills.drivers} + {self.kills.workers}",
                flush=True,
            )
            unkilled = 0 if status == -signal.SIGKILL else unkilled + 1
            if unkilled and (unkilled == 5 or (status == 0 and self.folder and not unsent(self.folder))):
                return

    def _start(self) -> tuple[int, float | None]:
        """One start of the sweep, to its end or its kill: exit status, seconds until it trained."""
        began = time.monotonic()
        arguments = ["--resume", str(self.folder)] if self.folder else self._new()
        driver = [sys.executable, str(ROOT / "tests" / "driver.py"), str(self.out / "facts.json")]
        environment = {key: value for key, value in os.environ.items() if key != "MLFLOW_TRACKING_URI"}
        with (self.out / "output.txt").open("a") as output:
            process = subprocess.Popen(
                [*driver, "tests.scripted_trainer", *arguments, "--out", str(self.out)],
                env=environment | {"WGANGP_CACHE": str(self.out / "cache")},
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            first = self._watch(process, began)
        finally:
            process.kill()
        self._count_deaths()
        self._struck = None
        return process.wait(), first

    def _watch(self, process: subprocess.Popen, began: float) -> float | None:
        """Kill what the plan says until the driver is gone; the seconds until it trained."""
        before, first, progress = self.begun(), None, (0, began)
        due = self._early.get(self.kills.drivers)
        while process.poll() is None:
            time.sleep(LOOK)
            now, trials = time.monotonic() - began, self.begun()
            if first is None and trials > before:
                first = now
            if trials != progress[0]:
                progress = (trials, time.monotonic())
            if time.monotonic() > progress[1] + HANGS:
                sys.exit(f"the sweep hangs: no trial has begun for {HANGS:g} s")
            planned = self._driver_plan[self.kills.drivers :]
            if due is None and planned and trials >= planned[0]:
                due = now + (self.random.uniform(0, 0.3) if first else self.random.uniform(0.3, 2 * STARTING))
            if due is not None and now >= due:
                self._kill_driver(process, starting=first is None)
            self._kill_workers(process, trials)
        return first

    def _new(self) -> list[str]:
        (self.out / "cache").mkdir(parents=True, exist_ok=True)
        (self.out / "cache" / "script.json").write_text(json.dumps({"seconds": TICK_SECONDS}))
        (self.out / "chaos.yaml").write_text(SPACE)
        return ["--space", str(self.out / "chaos.yaml"), "--trials", str(self.kills.trials)]

    def _kill_driver(self, process: subprocess.Popen, *, starting: bool) -> None:
        try:
            family = psutil.Process(process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            family = []
        process.kill()
        if process.wait() == -signal.SIGKILL:
            self.bystanders += family
            self.kills.drivers += 1
            self.kills.drivers_starting += starting

    def _kill_workers(self, process: subprocess.Popen, trials: int) -> None:
        """Kill one if one is due and what became of the last one is known."""
        if self._struck:
            self._count_deaths()
            if self._struck and time.monotonic() > self._struck + MISSED:
                self._struck = None
            return
        due = sum(1 for planned in self._worker_plan if planned <= trials)
        if due > self.kills.workers and (workers := _workers(process.pid)):
            time.sleep(self.random.uniform(0, 2 * TICK_SECONDS))
            with contextlib.suppress(psutil.NoSuchProcess):
                self.random.choice(workers).kill()
                self.kills.workers_struck += 1
                self._struck = time.monotonic()

    def _count_deaths(self) -> None:
        """Attempts of which the driver says that their worker died, one for each kill."""
        log = self.folder / "log.txt" if self.folder else None
        deaths = len(DEATH.findall(log.read_text())) if log and log.exists() else 0
        if deaths > self.kills.workers:
            self.kills.workers, self._struck = deaths, None

    def left_behind(self) -> Row:
        """Processes of killed drivers; Ray's agents take a minute to see that theirs is gone."""
        patience = time.monotonic() + 150
        while (alive := [one for one in self.bystanders if _is_alive(one)]) and time.monotonic() < patience:
            time.sleep(1)
        return Row("processes left behind by killed drivers", len(alive), 0, list(map(str, alive)))


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _workers(pid: int) -> list[psutil.Process]:
    """Processes of a driver that hold a trial."""
    found = []
    try:
        for child in psutil.Process(pid).children(recursive=True):
            try:
                if "SweepTrial" in " ".join(child.cmdline()):
                    found.append(child)
            except psutil.Error:
                continue  # it has just ended
    except psutil.NoSuchProcess:
        pass
    return found


def conclude(rows: list[Row]) -> int:
    """Print the table and what was lost; the exit status."""
    for row in rows:
        print(row)
    lost = [row.what.strip() for row in rows if row.lost]
    print(f"lost: {'; '.join(lost) or 'nothing'}")
    return 1 if lost else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--driver-kills", type=int, default=15)
    parser.add_argument("--worker-kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of the kills [the clock]")
    parser.add_argument("--out", type=Path, help="keep the sweep here [in a folder that is removed]")
    parser.add_argument("--check", type=Path, metavar="DIR", help="only look at what was kept in DIR")
    options = parser.parse_args()
    if options.check:
        kills = Kills(**json.loads((options.check / "kills.json").read_text()))
        return conclude([*kills.rows(), *check(options.check, trials=kills.trials)])
    kills = Kills(options.seed, options.trials, options.driver_kills, options.worker_kills)
    with tempfile.TemporaryDirectory(prefix="chaos-") as scratch:
        out = (options.out or Path(scratch)).resolve()
        out.mkdir(parents=True, exist_ok=True)
        if any(out.iterdir()):
            parser.error(f"--out {out}: must be empty")
        print(f"seed {kills.seed}: {kills.trials} trials in {out}", flush=True)
        chaos, began = Chaos(out, kills), time.monotonic()
        chaos.run()
        seconds = round(time.monotonic() - began)
        (out / "kills.json").write_text(json.dumps(asdict(kills)))
        rows = [*kills.rows(), Row("seconds", seconds), chaos.left_behind()]
        if chaos.folder:
            return conclude([*rows, *check(out, trials=kills.trials)])
        return conclude([*rows, Row("sweeps", 0, 1)])


if __name__ == "__main__":
    sys.exit(main())
