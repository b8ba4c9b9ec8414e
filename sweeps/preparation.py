"""The second gate: data, feature network and reference made before the first trial, and checked.

One Ray actor does it, which may import TensorFlow; it stays to score the winner after the last trial. The
driver sees facts and references to objects, never the objects.
"""

import contextlib
import importlib
import math
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ray

from sweeps import folder as folders
from sweeps import model, store
from sweeps.cluster import Cluster, check_folder, cluster, ignored_settings
from sweeps.interrupt import Interrupt
from sweeps.progress import View
from sweeps.space import Space
from wgangp.config import TrainConfig
from wgangp.errors import UserError
from wgangp.wording import count

GENERATOR = "generator.keras"
"""What `export_winner` of a trainer writes."""


class Preparation:
    """Stays until the sweep ends, so that TensorFlow is imported once for both jobs."""

    def __init__(self, trainer: str) -> None:
        self._trainer_name = trainer
        self._doing = "importing TensorFlow"

    def doing(self) -> str:
        """What takes time at the moment, in a few words."""
        return self._doing

    @ray.method(num_returns=2)
    def prepare(
        self, config: TrainConfig, variants: list[TrainConfig], cache: str, frozen: str | None
    ) -> tuple[dict[str, Any], Any]:
        """Facts for people and records, and what trials use; `problems` among the facts if it cannot be."""
        trainer = importlib.import_module(self._trainer_name)
        try:
            self._prepared = trainer.prepare(
                config,
                cache=Path(cache),
                frozen=Path(frozen) if frozen else None,
                variants=variants,
                say=self._say,
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

    def export_winner(self, config: TrainConfig, checkpoint: str, folder: str) -> str:
        """Write the best generator of a checkpoint to `folder`; why not, if it cannot be."""
        trainer = importlib.import_module(self._trainer_name)
        return trainer.export_winner(self._prepared, config, Path(checkpoint), folder=Path(folder))

    def package_winner(self, folder: str, *, seed: int) -> None:
        """Make MLflow's model of the generator in `folder`, in `folder`/model."""
        model.package(Path(folder) / GENERATOR, Path(folder) / "model", seed=seed)

    def _say(self, line: str) -> None:
        self._doing = line


@dataclass(frozen=True)
class Ready:
    """A cluster and what the trials on it share."""

    cluster: Cluster
    capacity: int
    preparation: Any
    prepared: Any
    facts: dict[str, Any]
    trainer: str
    interrupt: Interrupt

    def wait(self, reference: Any, *, patience: float = math.inf) -> Any:
        """What a reference comes to.

        Raises:
            Interrupted: a signal came first.
            TimeoutError: it took longer than so many seconds.
        """
        begin = time.monotonic()
        while not ray.wait([reference], timeout=0.3)[0]:
            self.interrupt.check()
            if time.monotonic() > begin + patience:
                raise TimeoutError(f"no answer in {patience:g} s")
        return ray.get(reference)


@contextlib.contextmanager
def prepared(space: Space, *, out: Path, trainer: str, view: View, frozen: Path | None) -> Iterator[Ready]:
    """The second gate: start Ray, prepare data and features, check what needs them."""
    store.tracking_uri(out)
    check_folder(Path.cwd())
    with Interrupt() as interrupt, _started(interrupt, view=view) as there:
        preparation = ray.remote(Preparation).options(num_cpus=0, max_concurrency=2).remote(trainer)
        cache = folders.cache(out)
        promised: Any = preparation.prepare.remote(
            space.base, space.variants, str(cache), str(frozen) if frozen else None
        )
        facts_ref, prepared = promised
        facts = _wait(facts_ref, preparation, view=view, interrupt=interrupt)
        problems = list(facts.get("problems", []))
        images = facts.get("train_images", sys.maxsize)
        problems += space.problems_when_prepared(train_images=images, cpus=there.cpus, gpus=there.gpus)
        if problems:
            raise UserError(*problems)
        for line in data_lines(facts):
            view.print(line)
        capacity = there.capacity(space.resources, most=space.sweep.max_concurrent)
        facts["trained_on"] = str(space.resources)
        yield Ready(there, capacity, preparation, prepared, facts, trainer, interrupt)


@contextlib.contextmanager
def _started(interrupt: Interrupt, *, view: View) -> Iterator[Cluster]:
    for line in ignored_settings():
        view.print(f"  {line}")
    view.say("starting Ray")
    with cluster(interrupt) as there:
        yield there


def _wait(reference: Any, preparation: Any, *, view: View, interrupt: Interrupt) -> Any:
    while True:
        interrupt.check()
        done, _ = ray.wait([reference], timeout=0.3)
        if done:
            return _facts(reference)
        doing, _ = ray.wait([preparation.doing.remote()], timeout=0.3)
        if doing:
            view.say(ray.get(doing[0]))


def _facts(reference: Any) -> Any:
    try:
        return ray.get(reference)
    except (ray.exceptions.RayActorError, ray.exceptions.OutOfMemoryError) as error:
        raise UserError(
            "The process that prepares data and features has died: it was killed, or memory ran out."
            " Start again; if it dies again, free some memory."
        ) from error


def data_lines(facts: dict[str, Any]) -> list[str]:
    """What trials train on and are scored with, for a person."""
    lines = [
        f"  {facts['dataset']}: {facts['train_images']} training and {facts['heldout_images']} held-out"
        f" images, {facts['image_size']}, sha256 {facts['data_sha256'][:16]}"
    ]
    if "skipped" in facts:
        lines.append(f"  skipped {count(facts['skipped_files'], 'file')}: {facts['skipped']}")
    if "hidden_files" in facts:
        lines.append(f"  passed over {count(facts['hidden_files'], 'hidden file')}")
    if "enlarged_images" in facts:
        lines.append(f"  enlarged {count(facts['enlarged_images'], 'image')}, which were smaller")
    lines += [f"  code {each}" for each in facts.get("code", "").split("; ") if each]
    if "code_changed" in facts:
        lines.append(f"  {facts['code_changed']} changed since; the sweep goes on with its copy")
    return [*lines, f"  scored in {facts['scored_in']}"]


def plan_lines(space: Space, ready: Ready, *, trials: int) -> list[str]:
    """What will be run, for a person; `trials` in all."""
    base = space.base
    again = f", then {space.finalists}" if space.finalists.count else ""
    return [
        f"  trials {trials} ({count(len(space.enqueue), 'baseline')}), {ready.capacity} at once,"
        f" {space.sampler.name} sampler{again}",
        f"  budget {base.budget_kimg:g} kimg in ticks of {base.tick_kimg:g}; {space.pruning}",
        f"  each trial: {space.resources}",
    ]
