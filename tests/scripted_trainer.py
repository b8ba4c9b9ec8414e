"""The public functions of `wgangp.trainer`, played without TensorFlow from the settings and a script.

FID falls from 500 by 1/(tick x generator_lr), so that known settings win; `critic_loss` counts the ticks.

A file `<cache>/script.json`, read anew at each tick, may order

    {"seconds": 0.1,                                        each tick takes so long
     "prepare": 3, "score": 3,                               and so do preparation and the winner's scores
     "broken_builds": 1,                                     so many trainers cannot be made
     "facts": {"features_sha256": "f0"},                     what preparation finds
     "other_seeds": {"1": 80},                               by gp_weight, added to FID if `seed` is not 0
     "faults": {"3": [{"tick": 2, "do": "raise", "times": 1}]}}   by gp_weight; tick 0 is the start of a trial

where `do` is one of

    raise      an exception
    kill       the worker ends itself with SIGKILL
    allocate   takes `megabytes`, touched, and holds them for a minute
    diverge    the tick's outcome
    explode    a penalty of 1e12, and on it goes
    hang       for `seconds`
    wait       until there is a file `<cache>/go`
    full       OSError: no space left on device

`times` (default: always) is counted in files `<cache>/fired/...`, so that a test can see that it happened.
`member` says which member of a gang, `worker 1`; default: the one that leads. `"seed": "other"` means runs
whose `seed` is not 0 only.
Every tick is noted in `<cache>/ticks.jsonl`: pid, gp_weight, tick, begin, end (seconds since the epoch), and
member (empty without a gang). The members of a gang wait for each other at its end.
"""

import errno
import io
import json
import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from tests.scripted_gang import Others
from wgangp.checkpoints import CheckpointError
from wgangp.config import TrainConfig
from wgangp.measuring import Speed
from wgangp.progress import Progress
from wgangp.strategies import Gang

with io.BytesIO() as _buffer:
    Image.new("L", (2, 2)).save(_buffer, "PNG")
    PNG = _buffer.getvalue()


@dataclass(frozen=True)
class Prepared:
    cache: Path
    facts: dict[str, Any]


class Trainer:
    """`built` counts how many there have been in this process."""

    built = 0

    def __init__(
        self,
        prepared: Prepared,
        *,
        strategy: str,
        cpus: int,
        gpus: float,
        placement: str = "together",
        gang: Gang | None = None,
    ) -> None:
        Trainer.built += 1
        self.tick = 0
        self._cache = prepared.cache
        self._leads = not gang or gang.index == 0
        self._member = f"{gang.role} {gang.index}" if gang else ""
        if self._leads and _count(self._cache, "build", most=_script(self._cache).get("broken_builds", 0)):
            raise RuntimeError("the script wants no trainer")
        self._others = Others(gang) if gang and gang.role == "worker" else None

    def start(self, config: TrainConfig) -> None:
        self._config, self.tick = config, 0
        self._obey()
        self._meet()

    def load(self, folder: Path) -> None:
        try:
            self.tick = int(np.load(folder / "tick.npy"))
        except (OSError, ValueError) as error:
            raise CheckpointError(f"{folder} is damaged") from error

    def advance(self) -> Progress:
        did = self._train()
        fid = 500 / (1 + 100 * self.tick * self._config.generator_lr)
        if self._config.seed:
            fid += _script(self._cache).get("other_seeds", {}).get(f"{self._config.gp_weight:g}", 0)
        metrics = {"fid": fid, "critic_loss": float(self.tick)}
        outcome, reason = ("complete" if self.tick == self._config.ticks else None), ""
        if "diverge" in did:
            metrics["critic_loss"], outcome, reason = float("nan"), "diverged", "critic_loss is not finite"
        if "explode" in did:
            metrics["gradient_penalty"] = 1e12
        images = round(self.tick * self._config.tick_kimg * 1000)
        return Progress(self.tick, images, metrics, PNG, outcome, reason)

    def follow(self) -> None:
        self._train()

    def save(self, folder: Path) -> None:
        np.save(folder / "tick.npy", self.tick)

    def forget(self) -> None: ...

    def _train(self) -> list[str]:
        """Do what the script orders for the next tick, wait for the others, note it; what was done."""
        begin = time.time()
        self.tick += 1
        did = self._obey()
        self._meet()
        who = {"pid": os.getpid(), "member": self._member, "gp_weight": self._config.gp_weight}
        note = who | {"tick": self.tick, "begin": begin, "end": time.time()}
        with (self._cache / "ticks.jsonl").open("a") as file:
            file.write(json.dumps(note) + "\n")
        return did

    def _meet(self) -> None:
        if self._others:
            self._others.wait()

    def _obey(self) -> list[str]:
        """Do what the script orders for this tick; what was done."""
        script = _script(self._cache)
        time.sleep(script.get("seconds", 0) if self.tick else 0)
        weight = f"{self._config.gp_weight:g}"
        orders = [order for order in script.get("faults", {}).get(weight, []) if self._means_me(order)]
        return [order["do"] for order in orders if self._fires(weight, order) and self._do(order)]

    def _means_me(self, order: dict[str, Any]) -> bool:
        member = order.get("member")
        if order.get("seed") == "other" and not self._config.seed:
            return False
        return order["tick"] == self.tick and (member == self._member if member else self._leads)

    def _fires(self, weight: str, order: dict[str, Any]) -> bool:
        name = f"{weight}-{order['tick']}-{order['do']}"
        return _count(self._cache, name, most=order.get("times", float("inf")))

    def _do(self, order: dict[str, Any]) -> bool:
        match order["do"]:
            case "raise":
                raise RuntimeError("the script says so\nat length")
            case "full":
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "allocate":
                taken = [np.ones(1_000_000, np.uint8) for _ in range(order["megabytes"])]
                time.sleep(60)
                del taken
            case "hang":
                time.sleep(order["seconds"])
            case "wait":
                while not (self._cache / "go").exists():
                    time.sleep(0.05)
        return True


def _count(cache: Path, name: str, *, most: float) -> bool:
    """Whether this is one of the first `most` times; a file says so."""
    folder = cache / "fired"
    count = len(list(folder.glob(f"{name}-*")))
    if count >= most:
        return False
    folder.mkdir(exist_ok=True)
    try:
        (folder / f"{name}-{count + 1}").touch(exist_ok=False)
        return True
    except FileExistsError:  # another worker was faster
        return _count(cache, name, most=most)


def _script(cache: Path) -> dict[str, Any]:
    path = cache / "script.json"
    return json.loads(path.read_text()) if path.exists() else {}


def prepare(
    config: TrainConfig,
    *,
    cache: Path,
    frozen: Path | None = None,
    variants: Sequence[TrainConfig] = (),
    say: Callable[[str], None] = print,
) -> Prepared:
    say("reading the script")
    cache.mkdir(parents=True, exist_ok=True)
    time.sleep(_script(cache).get("prepare", 0))
    facts = {
        "dataset": config.dataset,
        "data_sha256": "0" * 64,
        "image_size": "1x1x1",
        "train_images": 1000,
        "reference_images": 1000,
        "heldout_images": 100,
        "features": "scripted",
        "features_sha256": "0" * 64,
        "features_accuracy": 1.0,
        "scored_in": "scripted features",
    }
    return Prepared(cache, facts | _script(cache).get("facts", {}))


def freeze(prepared: Prepared, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "features.json").write_text("{}")


def score_winner(
    prepared: Prepared, config: TrainConfig, checkpoint: Path, *, folder: Path
) -> dict[str, float]:
    time.sleep(_script(prepared.cache).get("score", 0))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "samples.png").write_bytes(PNG)
    return {"fid_fresh": 1.0, "fid_at_infinity": 0.5, "sure_samples": 64, "classes_seen": 10}


def measure(trainer: Trainer, config: TrainConfig) -> Speed:
    """A thousand images a second, and what the script orders for the start of a trial."""
    trainer.start(config)
    return Speed(0.5, 1000.0, 0.1, 2_000_000)


def export_winner(prepared: Prepared, config: TrainConfig, checkpoint: Path, *, folder: Path) -> str:
    """It has no generator."""
    return "there is no generator"
