"""One replica against two on logical CPU devices, in a process of its own: devices are set up once."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from wgangp.config import TrainConfig
from wgangp.prepared import Prepared

COMPARE = """
import json, sys
import numpy as np
from pathlib import Path
from wgangp import strategies
from wgangp.config import TrainConfig
from wgangp.gan import WganGp

config = TrainConfig(**json.loads(sys.argv[1]))
folder = Path(sys.argv[2])
images = np.load(folder / "images.npy")
mirrored = strategies.build("mirrored", cpus=2, gpus=0)
import tensorflow as tf

assert mirrored.num_replicas_in_sync == 2
ended = {}
for name, strategy, seed in [
    ("two", mirrored, 0),
    ("one", tf.distribute.OneDeviceStrategy("CPU:0"), 0),
    ("other", tf.distribute.OneDeviceStrategy("CPU:0"), 1),
]:
    with strategy.scope():
        pixels = tf.Variable(images, trainable=False)
    trained = WganGp(strategy, pixels, config)
    trained.start(config.model_copy(update={"seed": seed}))
    if name == "two":
        ended |= {f"begin/{key}": array for key, array in trained.arrays().items()}
    sums = trained.train(6)
    ended |= {f"{name}/{key}": array for key, array in (trained.arrays() | {"sums": sums}).items()}
np.savez(folder / "ended.npz", **ended)
"""


def test_two_replicas_train_the_same_weights_as_one(
    settings: Callable[..., TrainConfig], prepared: Prepared, tmp_path: Path
) -> None:
    """All weights, Adam's moments (with beta1 0 the first is the gradient), and the sums of losses."""
    config = settings(precision="float64", adam_beta1=0.0, critic_lr=5e-3, generator_lr=5e-3).resolved()
    np.save(tmp_path / "images.npy", prepared.images)
    command = [sys.executable, "-c", COMPARE, config.model_dump_json(), str(tmp_path)]
    subprocess.run(command, check=True)

    with np.load(tmp_path / "ended.npz") as ended:
        runs = {
            run: {key.partition("/")[2]: ended[key] for key in ended.files if key.startswith(f"{run}/")}
            for run in ("begin", "one", "two", "other")
        }
    assert len(runs["one"]) == 45
    for key, array in runs["one"].items():
        scale = np.abs(array).max()
        np.testing.assert_allclose(runs["two"][key], array, rtol=1e-8, atol=1e-10 * scale, err_msg=key)
    for network in ("generator", "critic"):
        for run, least in (("begin", 0.01), ("other", 0.001)):
            assert distance(runs["one"], runs[run], network) > least


def distance(a: dict[str, np.ndarray], b: dict[str, np.ndarray], network: str) -> float:
    """Relative, over all weights of a network as one vector."""
    keys = [key for key in a if key.startswith(f"{network}/")]
    squares = sum(((a[key] - b[key]) ** 2).sum() for key in keys)
    return float(np.sqrt(squares / sum((b[key] ** 2).sum() for key in keys)))
