"""The folder of one training run without Ray: its metrics, samples and checkpoints."""

import csv
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from wgangp import files
from wgangp.config import TrainConfig
from wgangp.convergence import Verdict, verdict
from wgangp.progress import Progress

if TYPE_CHECKING:
    from wgangp.trainer import Trainer


@dataclass(frozen=True)
class Run:
    """One training run and its folder."""

    config: TrainConfig
    folder: Path
    features: Path | None
    """Frozen features to score with; None: those of the data set."""
    before: Path | None = None
    """The checkpoint of another run from which this one goes on; None: it begins anew."""

    def begin(self) -> None:
        """Make the folder, with a copy of the checkpoint to go on from: it may go with the other run."""
        self.folder.mkdir(parents=True)
        if self.before:
            shutil.copytree(self.before, self.folder / "checkpoints" / "tick-000000")

    def checkpoints(self) -> list[Path]:
        """Newest first."""
        return sorted((self.folder / "checkpoints").glob("tick-*"), reverse=True)

    def record(self, progress: Progress) -> str:
        """Add a tick to metrics.csv, samples.png and log.txt; the line for a person."""
        row = {"tick": progress.tick, "images_seen": progress.images_seen, **progress.metrics}
        path = self.folder / "metrics.csv"
        fresh = not path.exists()
        with path.open("a", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(row))
            if fresh:
                writer.writeheader()
            writer.writerow(row)
        files.write(self.folder / "samples.png", progress.samples)
        metrics = progress.metrics
        line = (
            f"{progress.images_seen / 1000:g}/{self.config.budget_kimg:g} kimg"
            f"  fid {metrics['fid']:.1f} +- {metrics['fid_standard_error']:.1f}"
            f"  best {metrics['best_fid']:.1f}  wasserstein {metrics['wasserstein']:.3g}"
            f"  gradient_norm {metrics['gradient_norm']:.3g}  {metrics['images_per_second']:.0f} images/s"
        )
        with (self.folder / "log.txt").open("a") as log:
            log.write(line + "\n")
        return line

    def verdict(self) -> Verdict:
        """What the recorded curves say."""
        path = self.folder / "metrics.csv"
        if not path.exists():
            return verdict([])
        with path.open(newline="") as file:
            rows = [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]
        return verdict(rows)

    def forget_after(self, tick: int) -> None:
        """Drop recorded ticks that a resumed run will do again."""
        path = self.folder / "metrics.csv"
        if not path.exists():
            return
        with path.open(newline="") as file:
            header, *rows = csv.reader(file)
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([header, *(row for row in rows if int(row[0]) <= tick)])

    def save(self, trainer: "Trainer") -> None:
        """Write the checkpoint of this tick; the one before stays, older ones go."""
        trainer.save(self.folder / "checkpoints" / f"tick-{trainer.tick:06d}")
        for old in self.checkpoints()[2:]:
            shutil.rmtree(old)
