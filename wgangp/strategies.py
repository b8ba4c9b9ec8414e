"""Devices -> a tf.distribute strategy. The one place that configures TensorFlow's threads and devices.

TensorFlow takes this configuration once per process, before its first operation. Importing this module does
not import TensorFlow.
"""

import contextlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from glob import glob
from typing import TYPE_CHECKING, Any

from wgangp.errors import UserError

if TYPE_CHECKING:
    import tensorflow as tf

STRATEGIES = ("auto", "one_device", "mirrored", "multi_worker", "parameter_server", "tpu")
PLACEMENTS = ("together", "split")

_servers: list[Any] = []  # a server ends with the last reference to it


@dataclass(frozen=True)
class Gang:
    """The processes that train one setting together, and which of them this is.

    Attributes:
        addresses: role -> "host:port" of each process. Under `multi_worker` the only role is worker; under
            `parameter_server` there are one chief, workers and ps.
        role: of this process.
        index: of this process among those of its role, from 0.
    """

    addresses: dict[str, list[str]]
    role: str
    index: int


def replica_count(strategy: str, *, cpus: int, gpus: float, workers: int = 1) -> int:
    """Number of replicas the global batch is divided among.

    Args:
        strategy: `one_device`; `mirrored` (one replica per GPU; without GPUs one per CPU); `multi_worker`
            (one per GPU of every worker; without GPUs one per worker); `parameter_server` (1: each worker
            takes whole batches); `tpu` (1 here: TensorFlow counts the cores when it has them); or `auto`
            (multi_worker if there are workers, else mirrored if there is more than one GPU).
        cpus: CPUs of a worker, at least 1.
        gpus: GPUs of a worker; a fraction is a share of one GPU.
        workers: processes that train the trial together.
    """
    if strategy not in STRATEGIES:
        raise ValueError(f"strategy must be one of {', '.join(STRATEGIES)}, got {strategy!r}")
    if strategy == "multi_worker" or (strategy == "auto" and workers > 1):
        return workers * max(1, int(gpus))
    if strategy != "mirrored" and (strategy != "auto" or gpus <= 1):
        return 1
    return max(1, int(gpus)) if gpus else cpus


def missing(strategy: str) -> str:
    """What `strategy` needs and this machine lacks, as a line for a person; empty if it can be tried."""
    if strategy != "tpu" or os.environ.get("TPU_NAME") or glob("/dev/accel*") or glob("/dev/vfio/[0-9]*"):
        return ""
    return (
        "strategy: tpu needs a TPU, but this machine has none and TPU_NAME names none."
        " Use auto, or run it on a machine with a TPU."
    )


def configure(*, intra_op: int, inter_op: int) -> None:
    """Set this process up: all but the limits of TensorFlow's thread pools at any time, these once.

    Args:
        intra_op: threads of one operation; no effect once TensorFlow has run its first operation.
        inter_op: operations at a time; likewise.
    """
    import tensorflow as tf

    # TensorFlow drops edges that keep the reading of a weight before its assignment, where it takes them for
    # needless, and then does away with what made them so: now and then a bias changed while it was read.
    tf.config.optimizer.set_experimental_options({"dependency_optimization": False})
    with contextlib.suppress(RuntimeError):
        tf.config.threading.set_intra_op_parallelism_threads(intra_op)
        tf.config.threading.set_inter_op_parallelism_threads(inter_op)


def build(
    strategy: str, *, cpus: int, gpus: float, placement: str = "together", gang: Gang | None = None
) -> "tf.distribute.Strategy":
    """Configure this process for the trial's resources and make its strategy.

    May be called again in one process with the same arguments, but for those of a gang.

    Args:
        strategy: as in `replica_count`.
        cpus: of this process.
        gpus: of this process.
        placement: `split` needs two devices, which `split_devices` names, and one replica.
        gang: for `multi_worker`, in every process at the same time; for `parameter_server`, in the chief.

    Raises:
        RuntimeError: the GPUs are not there, or TensorFlow was initialised with fewer devices before.
        UserError: there is no TPU.
    """
    import tensorflow as tf

    if strategy == "tpu":
        return _tpu()
    kind = "GPU" if gpus else "CPU"
    split = placement == "split"
    replicas = 1 if gang or split else replica_count(strategy, cpus=cpus, gpus=gpus)
    devices = 2 if split else replicas
    configure(intra_op=max(1, cpus // devices), inter_op=cpus)
    physical = tf.config.list_physical_devices(kind)
    if gpus:
        _grow_memory(physical)
    elif devices > 1:
        _divide_cpu(physical[0], devices)
    if gang:
        return _of_gang(strategy, gang)
    found = len(tf.config.list_logical_devices(kind))
    if found < devices:
        raise RuntimeError(f"{devices} {kind} devices are needed, TensorFlow has {found}")
    if split:
        return tf.distribute.get_strategy()
    if replicas == 1:
        return tf.distribute.OneDeviceStrategy(f"{kind}:0")
    return tf.distribute.MirroredStrategy([f"{kind}:{i}" for i in range(replicas)])


def split_devices(gpus: float) -> dict[str, str]:
    """Under the placement `split`, the device of each network."""
    kind = "GPU" if gpus else "CPU"
    return {"generator": f"{kind}:0", "critic": f"{kind}:1"}


def serve(gang: Gang, *, cpus: int, gpus: float) -> None:
    """Make this process the server that `gang` says it is, a worker or ps of `parameter_server`.

    Its CPUs and GPUs limit what it takes.
    """
    import tensorflow as tf

    configure(intra_op=max(1, cpus), inter_op=max(2, cpus))
    if gpus:
        _grow_memory(tf.config.list_physical_devices("GPU"))
    cluster = tf.train.ClusterSpec(gang.addresses)
    _servers.append(tf.distribute.Server(cluster, job_name=gang.role, task_index=gang.index, protocol="grpc"))


def _of_gang(strategy: str, gang: Gang) -> "tf.distribute.Strategy":
    import tensorflow as tf

    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec(gang.addresses), task_type=gang.role, task_id=gang.index, rpc_layer="grpc"
    )
    if strategy == "parameter_server":
        return tf.distribute.ParameterServerStrategy(resolver)
    return tf.distribute.MultiWorkerMirroredStrategy(cluster_resolver=resolver)


def _tpu() -> "tf.distribute.Strategy":
    import tensorflow as tf

    if line := missing("tpu"):
        raise UserError(line)
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver.connect(
            os.environ.get("TPU_NAME", "local")
        )
    except Exception as error:  # of TensorFlow, gRPC or the metadata service, whichever is not there
        raise UserError(
            f"strategy: tpu needs a TPU, but none could be reached: {' '.join(str(error).split())}. Use auto."
        ) from error
    return tf.distribute.TPUStrategy(resolver)


def _grow_memory(devices: Iterable) -> None:
    import tensorflow as tf

    for device in devices:
        if not tf.config.experimental.get_memory_growth(device):
            tf.config.experimental.set_memory_growth(device, True)


def _divide_cpu(device: object, count: int) -> None:
    import tensorflow as tf

    if len(tf.config.get_logical_device_configuration(device) or ()) == count:
        return
    # If TensorFlow is initialised already, build() counts what there is and says so.
    with contextlib.suppress(RuntimeError):
        tf.config.set_logical_device_configuration(
            device, [tf.config.LogicalDeviceConfiguration() for _ in range(count)]
        )
