"""Train under ways of distributing, in a process of its own: devices are set up once per process.

    python train_under.py ORDER.json

ORDER holds `cache` (of `prepare`), `out` (an npz to write), `cpus` (logical devices, if several are needed),
`gang` (null, or {addresses, role, index}), `threads` (null: as the trainer says) and `runs`: a list of
{name, strategy, cpus, placement, settings, [ticks, load, save]}. Of each run are written, under `<name>/`:
`begin/<array>` and `end/<array>`, all arrays of the state, and `progress/<metric>`, one value for each tick.
"""

import json
import sys
from pathlib import Path

import numpy as np

from wgangp import strategies
from wgangp.config import TrainConfig
from wgangp.prepared import prepare
from wgangp.trainer import Trainer


def main(order: dict) -> None:
    if order.get("threads"):
        strategies.use_threads(intra_op=order["threads"], inter_op=order["threads"])
    if order.get("cpus", 1) > 1:
        strategies.build("mirrored", cpus=order["cpus"], gpus=0)
    gang = strategies.Gang(**order["gang"]) if order.get("gang") else None
    found: dict[str, np.ndarray] = {}
    trainers: dict[tuple, Trainer] = {}
    for run in order["runs"]:
        config = TrainConfig(**run["settings"])
        prepared = prepare(config, cache=Path(order["cache"]), say=lambda line: None)
        layout = run["strategy"], run.get("cpus", 1), run.get("placement", "together")
        if layout not in trainers:
            strategy, cpus, placement = layout
            trainers[layout] = Trainer(prepared, strategy=strategy, cpus=cpus, placement=placement, gang=gang)
        found |= {f"{run['name']}/{key}": value for key, value in train(trainers[layout], run, config, gang)}
    np.savez(order["out"], **found)


def train(trainer: Trainer, run: dict, config: TrainConfig, gang: strategies.Gang | None):
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
    if run.get("save"):
        trainer.save(Path(run["save"]))
    yield from ((f"end/{key}", value) for key, value in trainer._gan.arrays().items())
    yield "replicas", np.array(trainer._strategy.num_replicas_in_sync)
    for name in progress[0].metrics if progress else ():
        if name != "images_per_second":
            yield f"progress/{name}", np.array([tick.metrics[name] for tick in progress])


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
