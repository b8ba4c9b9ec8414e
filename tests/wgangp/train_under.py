"""Train under ways of distributing, in a process of its own: devices are set up once per process.

    python train_under.py ORDER.json

ORDER holds `cache` (of `prepare`), `out` (an npz to write), `devices` (logical CPUs, if several are needed),
`gang` (null, or {addresses, role, index}), `serve` (true: only be a server of the gang) and `runs`, a list of
{name, settings, strategy, [cpus, placement, ticks, load, save, save_at]}. `Runner` in under.py reads what is
written of each run, under `<name>/`.
"""

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from wgangp import strategies
from wgangp.config import TrainConfig
from wgangp.prepared import prepare
from wgangp.randomness import Purpose
from wgangp.trainer import Trainer


def main(order: dict[str, Any]) -> None:
    gang = strategies.Gang(**order["gang"]) if order["gang"] else None
    if order["serve"]:
        assert gang is not None
        strategies.serve(gang, cpus=1, gpus=0)
        time.sleep(3600)  # until it is killed
    if order["devices"] == 1:
        strategies.configure(intra_op=1, inter_op=1)
    elif order["devices"] > 1:
        strategies.build("mirrored", cpus=order["devices"], gpus=0)
    found: dict[str, np.ndarray] = {}
    trainers: dict[tuple, Trainer] = {}
    for run in order["runs"]:
        config = TrainConfig(**run["settings"])
        strategy, cpus, placement = (
            run["strategy"],
            run.get("cpus", 1),
            run.get("placement", "together"),
        )
        kind = (strategy, cpus, placement, config.architecture, config.image_size)
        if kind not in trainers:
            prepared = prepare(config, cache=Path(order["cache"]), say=lambda line: None)
            trainers[kind] = Trainer(prepared, strategy=strategy, cpus=cpus, placement=placement, gang=gang)
        trainer = trainers[kind]
        found |= {f"{run['name']}/{key}": value for key, value in train(trainer, run, config, gang)}
    np.savez(order["out"], **found)


def train(
    trainer: Trainer, run: dict[str, Any], config: TrainConfig, gang: strategies.Gang | None
) -> Iterator[tuple[str, Any]]:
    trainer.start(config)
    yield from ((f"begin/{key}", value) for key, value in trainer._gan.arrays().items())
    if run.get("load"):
        trainer.load(Path(run["load"]))
    progress = []
    for _ in range(run.get("ticks", config.ticks)):
        if gang and gang.role == "worker" and gang.index:
            trainer.follow()
        else:
            progress.append(trainer.advance())
        if run.get("save") and trainer.tick == run["save_at"]:
            trainer.save(Path(run["save"]))
    yield from ((f"end/{key}", value) for key, value in trainer._gan.arrays().items())
    yield from ((f"counts/{key}", getattr(trainer._gan, key)) for key in ("critic_steps", "generator_steps"))
    for name in progress[0].metrics if progress else ():
        if name != "images_per_second":
            yield f"progress/{name}", [tick.metrics[name] for tick in progress]
    if not (gang and gang.role == "chief"):
        yield "noise", noise_of_each_replica(trainer)
    for network in ("generator", "critic"):
        variable = getattr(trainer._gan, network).weights[0].value
        yield f"device/{network}", np.array(variable.device)


def noise_of_each_replica(trainer: Trainer) -> np.ndarray:
    """What the replicas of this process draw for critic step 5: [replicas here, b, latent_size]."""
    strategy, update = trainer._strategy, trainer._gan._update
    draw = tf.function(
        lambda: strategy.run(update._noise, args=(Purpose.CRITIC_NOISE, tf.constant(5, tf.int64)))
    )
    return np.stack([part.numpy() for part in strategy.experimental_local_results(draw())])


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
