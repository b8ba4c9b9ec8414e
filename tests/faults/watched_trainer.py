"""The scripted trainer, whose worker ends the driver if `kill_plan` says so."""

from pathlib import Path
from typing import Any

from tests import scripted_trainer
from tests.faults.kill_plan import Plan, watch_copies
from tests.scripted_trainer import CheckpointError, Prepared, prepare

__all__ = ["CheckpointError", "Prepared", "Trainer", "freeze", "prepare", "score_winner"]


class Trainer(scripted_trainer.Trainer):
    def __init__(self, prepared: Prepared, **resources: Any) -> None:
        super().__init__(prepared, **resources)
        watch_copies(prepared.cache)


def freeze(prepared: Prepared, folder: Path) -> None:
    def half() -> None:
        folder.mkdir()
        (folder / "weights.npz").write_bytes(b"half of")

    Plan(prepared.cache).reach("features frozen", half=half)
    scripted_trainer.freeze(prepared, folder)


def score_winner(prepared: Prepared, config: Any, checkpoint: Path, *, folder: Path) -> dict[str, float]:
    def half() -> None:
        folder.mkdir(exist_ok=True)
        (folder / "samples.png").write_bytes(scripted_trainer.PNG[:20])

    Plan(prepared.cache).reach("winner scored", half=half)
    return scripted_trainer.score_winner(prepared, config, checkpoint, folder=folder)
