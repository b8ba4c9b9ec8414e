"""The real trainer, which breaks once if told to, and ends its driver if `kill_plan` says so.

A file `break` in the folder KILL_PLAN holds `raise` or `kill`: that is done as the third tick of the baseline
begins, and the file is gone.
"""

import os
import signal
from pathlib import Path
from typing import Any

from tests.faults.kill_plan import watch_copies
from wgangp import trainer
from wgangp.trainer import CheckpointError, Prepared, Progress, freeze, prepare, score_winner

__all__ = ["CheckpointError", "Prepared", "Progress", "Trainer", "freeze", "prepare", "score_winner"]

BASELINE, TICK = 10, 3


class Trainer(trainer.Trainer):
    def __init__(self, prepared: Prepared, **resources: Any) -> None:
        super().__init__(prepared, **resources)
        self._folder = Path(os.environ["KILL_PLAN"])
        watch_copies(self._folder)

    def advance(self) -> Progress:
        order = self._folder / "break"
        if order.exists() and (self._config.gp_weight, self.tick + 1) == (BASELINE, TICK):
            what = order.read_text()
            order.unlink()
            if what == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            raise RuntimeError("told to")
        return super().advance()
