"""Devices -> a tf.distribute strategy. The one place that configures TensorFlow's threads and devices.

TensorFlow takes this configuration once per process, before its first operation. Importing this module does
not import TensorFlow.
"""

import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tensorflow as tf

STRATEGIES = ("auto", "one_device", "mirrored")


def replica_count(strategy: str, *, cpus: int, gpus: float) -> int:
    """Number of replicas the global batch is divided among.

    Args:
        strategy: `one_device`, `mirrored` (one replica per GPU; without GPUs one per CPU), or `auto`
            (mirrored if there is more than one GPU).
        cpus: CPUs of the trial, at least 1.
        gpus: GPUs of the trial; a fraction is a share of one GPU.
    """
    if strategy not in STRATEGIES:
        raise ValueError(f"strategy must be one of {', '.join(STRATEGIES)}, got {strategy!r}")
    if strategy == "one_device" or (strategy == "auto" and gpus <= 1):
        return 1
    return max(1, int(gpus)) if gpus else cpus


def use_threads(*, intra_op: int, inter_op: int) -> None:
    """Limit TensorFlow's thread pools; no effect once TensorFlow has run its first operation."""
    import tensorflow as tf

    with contextlib.suppress(RuntimeError):
        tf.config.threading.set_intra_op_parallelism_threads(intra_op)
        tf.config.threading.set_inter_op_parallelism_threads(inter_op)


def build(strategy: str, *, cpus: int, gpus: float) -> "tf.distribute.Strategy":
    """Configure this process for the trial's resources and make its strategy.

    Arguments as in `replica_count`. May be called again in one process with the same arguments.

    Raises:
        RuntimeError: the GPUs are not there, or TensorFlow was initialised with fewer devices before.
    """
    import tensorflow as tf

    replicas = replica_count(strategy, cpus=cpus, gpus=gpus)
    use_threads(intra_op=max(1, cpus // replicas), inter_op=cpus)
    kind = "GPU" if gpus else "CPU"
    physical = tf.config.list_physical_devices(kind)
    if gpus:
        _grow_memory(physical)
    elif replicas > 1:
        _split_cpu(physical[0], replicas)
    if len(tf.config.list_logical_devices(kind)) < replicas:
        found = len(tf.config.list_logical_devices(kind))
        raise RuntimeError(f"{replicas} {kind} devices are needed, TensorFlow has {found}")
    if replicas == 1:
        return tf.distribute.OneDeviceStrategy(f"{kind}:0")
    return tf.distribute.MirroredStrategy([f"{kind}:{i}" for i in range(replicas)])


def _grow_memory(devices: list) -> None:
    import tensorflow as tf

    for device in devices:
        if not tf.config.experimental.get_memory_growth(device):
            tf.config.experimental.set_memory_growth(device, True)


def _split_cpu(device: object, replicas: int) -> None:
    import tensorflow as tf

    if len(tf.config.get_logical_device_configuration(device) or ()) == replicas:
        return
    # If TensorFlow is initialised already, build() counts what there is and says so.
    with contextlib.suppress(RuntimeError):
        tf.config.set_logical_device_configuration(
            device, [tf.config.LogicalDeviceConfiguration() for _ in range(replicas)]
        )
