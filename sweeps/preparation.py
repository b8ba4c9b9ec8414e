"""The second gate's worker: one Ray actor that may import TensorFlow, for what all trials share.

It makes the data, feature network and reference before the first trial, and scores the winner after the
last. The driver sees facts and references to objects, never the objects.
"""

import importlib
from pathlib import Path
from typing import Any

import ray

from wgangp.config import TrainConfig
from wgangp.errors import UserError


class Preparation:
    """Stays until the sweep ends, so that TensorFlow is imported once for both jobs."""

    def __init__(self, trainer: str) -> None:
        self._trainer_name = trainer
        self._doing = "importing TensorFlow"

    def doing(self) -> str:
        """What takes time at the moment, in a few words."""
        return self._doing

    @ray.method(num_returns=2)
    def prepare(self, config: TrainConfig, cache: str, frozen: str | None) -> tuple[dict[str, Any], Any]:
        """Facts for people and records, and what trials use; `problems` among the facts if it cannot be."""
        trainer = importlib.import_module(self._trainer_name)
        try:
            self._prepared = trainer.prepare(
                config, cache=Path(cache), frozen=Path(frozen) if frozen else None, say=self._say
            )
        except UserError as error:
            return {"problems": error.problems}, None
        return self._prepared.facts, self._prepared

    def freeze(self, folder: str) -> None:
        """Keep feature network and reference in the sweep's folder."""
        importlib.import_module(self._trainer_name).freeze(self._prepared, Path(folder))

    def score_winner(self, config: TrainConfig, checkpoint: str, folder: str) -> dict[str, float]:
        """Score the best generator of a checkpoint on fresh noise; its samples go to `folder`."""
        trainer = importlib.import_module(self._trainer_name)
        return trainer.score_winner(self._prepared, config, Path(checkpoint), folder=Path(folder))

    def _say(self, line: str) -> None:
        self._doing = line
