import subprocess
import sys

import pytest
import tensorflow as tf

from wgangp import strategies
from wgangp.errors import UserError


@pytest.mark.parametrize(
    ("strategy", "cpus", "gpus", "workers", "replicas"),
    [
        ("auto", 1, 0, 1, 1),
        ("auto", 4, 0, 1, 1),
        ("auto", 4, 1, 1, 1),
        ("auto", 4, 0.5, 1, 1),
        ("auto", 4, 2, 1, 2),
        ("one_device", 4, 2, 1, 1),
        ("mirrored", 1, 0, 1, 1),
        ("mirrored", 4, 0, 1, 4),
        ("mirrored", 4, 2, 1, 2),
        ("mirrored", 4, 0.5, 1, 1),
        ("auto", 1, 0, 2, 2),
        ("multi_worker", 4, 0, 3, 3),
        ("multi_worker", 4, 2, 3, 6),
        ("parameter_server", 4, 0, 3, 1),
        ("tpu", 4, 0, 1, 1),
    ],
)
def test_replicas_follow_the_devices(
    strategy: str, cpus: int, gpus: float, workers: int, replicas: int
) -> None:
    assert strategies.replica_count(strategy, cpus=cpus, gpus=gpus, workers=workers) == replicas


def test_an_unknown_strategy_is_refused() -> None:
    with pytest.raises(ValueError, match=r"one of auto, one_device, .*, tpu, got 'horovod'"):
        strategies.replica_count("horovod", cpus=1, gpus=0)


def test_gpus_that_are_not_there_are_refused() -> None:
    with pytest.raises(RuntimeError, match="99 GPU devices are needed"):
        strategies.build("mirrored", cpus=1, gpus=99)


def test_the_driver_can_import_settings_strategies_and_data_without_tensorflow() -> None:
    code = (
        "import sys; import wgangp.config, wgangp.strategies, wgangp.datasets;"
        "sys.exit('tensorflow' in sys.modules or 'keras' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


BUILD = """
from wgangp import strategies
for _ in range(2):
    strategy = strategies.build("mirrored", cpus=2, gpus=0)
import tensorflow as tf
threads = tf.config.threading
print(strategy.num_replicas_in_sync, threads.get_intra_op_parallelism_threads(),
      threads.get_inter_op_parallelism_threads())
"""


def test_a_process_is_set_up_once_for_its_cpus() -> None:
    found = subprocess.run([sys.executable, "-c", BUILD], capture_output=True, text=True, check=True)

    assert found.stdout.strip() == "2 1 2"


def test_a_machine_without_a_tpu_says_so_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TPU_NAME", raising=False)
    monkeypatch.setattr(strategies, "glob", lambda pattern: [])
    line = (
        "strategy: tpu needs a TPU, but this machine has none and TPU_NAME names none."
        " Use auto, or run it on a machine with a TPU."
    )
    assert strategies.missing("tpu") == line
    with pytest.raises(UserError) as caught:
        strategies.build("tpu", cpus=1, gpus=0)
    assert caught.value.problems == (line,)
    assert not any(strategies.missing(other) for other in strategies.STRATEGIES if other != "tpu")


def test_a_tpu_that_cannot_be_reached_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TPU_NAME", "grpc://127.0.0.1:1")
    assert strategies.missing("tpu") == ""
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver

    def connect(name: str) -> None:
        raise tf.errors.UnavailableError(None, None, f"no answer\nfrom {name}")

    monkeypatch.setattr(resolver, "connect", connect)
    with pytest.raises(UserError) as caught:
        strategies.build("tpu", cpus=1, gpus=0)
    assert caught.value.problems == (
        "strategy: tpu needs a TPU, but none could be reached: no answer from grpc://127.0.0.1:1. Use auto.",
    )
