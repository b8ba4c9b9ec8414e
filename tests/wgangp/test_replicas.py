"""The same numbers however the work is shared out: all arrays, both optimizers' slots, every metric.

In float64 the only difference is the order in which numbers are added up. The images, 1,618, divide by
neither the batch nor four replicas, and 50 generator steps go over them twice.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.wgangp.under import Runner, Trained, assert_same, distance
from wgangp import randomness
from wgangp.config import TrainConfig
from wgangp.randomness import Purpose

DOUBLE = {"precision": "float64", "init_seed": 0, "evaluation_seed": 0, "tick_kimg": 0.64, "budget_kimg": 3.2}
SGD = {**DOUBLE, "optimizer": "sgd", "critic_lr": 0.02, "generator_lr": 0.05}
ADAM = {**DOUBLE, "adam_beta1": 0.5, "critic_lr": 5e-3, "generator_lr": 5e-3}
RMSPROP = {**DOUBLE, "optimizer": "rmsprop", "critic_lr": 2e-3, "generator_lr": 2e-3}
OPTIMIZERS = {"sgd": SGD, "adam": ADAM}

Settings = Callable[..., TrainConfig]


@pytest.fixture(scope="module")
def order(settings: Settings) -> Callable[..., dict]:
    """One entry of what a `Runner` trains: a name, a strategy with its CPUs, and changes of the settings."""

    def order(name: str, base: dict, *, strategy: str = "one_device", cpus: int = 1, **more) -> dict:
        layout = {
            key: more.pop(key) for key in ("placement", "ticks", "load", "save", "save_at") if key in more
        }
        config = settings(**{**base, **more})
        return {
            "name": name,
            "strategy": strategy,
            "cpus": cpus,
            **layout,
            "settings": config.model_dump(mode="json"),
        }

    return order


def assert_trained(run: Trained, *, least: float = 0.01) -> None:
    for network in ("generator", "critic"):
        assert run.moved(network) > least


def test_two_replicas_parts_and_eager_steps_train_the_same_weights(under: Runner, order: Callable) -> None:
    short = {**ADAM, "budget_kimg": 0.64}
    two = {"strategy": "mirrored", "cpus": 2}
    found = under.alone(
        order("one", short),
        order("seed", short, seed=1),
        order("two", short, **two),
        order("parts", short, **two, accumulation_steps=4),
        order("eager", {**short, "tick_kimg": 0.128, "budget_kimg": 0.128}, **two, run_eagerly=True),
        order("compiled", {**short, "tick_kimg": 0.128, "budget_kimg": 0.128}, **two),
        devices=2,
    )
    assert_trained(found["one"])
    assert_same(found["one"], found["two"], within=1e-10)
    assert_same(found["one"], found["parts"], within=1e-10)
    assert_same(found["compiled"], found["eager"], within=1e-10)
    for network in ("generator", "critic"):
        assert distance(found["one"].end, found["seed"].end, network) > 1e-3


OWN = f"{Path(__file__).with_name('own_networks.py')}:build"
WAYS = {
    # Of the whole batch, or two replicas would divide by two variances.
    "norms": {"generator_norm": "batch", "critic_norm": "layer"},
    "flips": {"flips": True, "lr_schedule": "linear"},
    "own": {"architecture": OWN},
}


@pytest.mark.slow
def test_norms_mirror_images_schedules_and_networks_of_ones_own_are_the_same_on_two_replicas(
    under: Runner, order: Callable
) -> None:
    short = {**ADAM, "budget_kimg": 0.64}
    one = under.alone(*(order(way, short, **changes) for way, changes in WAYS.items()))
    two = under.alone(
        *(order(way, short, strategy="mirrored", cpus=2, **changes) for way, changes in WAYS.items()),
        devices=2,
    )
    for way, run in one.items():
        assert_trained(run)
        assert_same(run, two[way], within=1e-10)


@pytest.mark.multi_process
def test_norms_over_the_batch_are_the_same_on_two_machines(under: Runner, order: Callable) -> None:
    short = {**ADAM, "budget_kimg": 0.64, **WAYS["norms"]}
    one = under.alone(order("norms", short))["norms"]
    two = under.in_step(order("norms", short, strategy="multi_worker"))["norms"]

    assert_trained(one)
    assert_same(one, two, within=1e-10)


@pytest.fixture(scope="module")
def one_device(under: Runner, order: Callable) -> dict[str, Trained]:
    """50 generator steps on one device, with each optimizer; and with another seed."""
    runs = [order(name, base) for name, base in OPTIMIZERS.items()]
    return under.alone(*runs, *(order(f"{name} seed 1", base, seed=1) for name, base in OPTIMIZERS.items()))


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_fifty_steps_on_one_device_move_the_weights_and_depend_on_the_seed(
    one_device: dict[str, Trained], optimizer: str
) -> None:
    run = one_device[optimizer]
    assert run.counts == {"critic_steps": 100, "generator_steps": 50}
    assert_trained(run)
    other = one_device[f"{optimizer} seed 1"]
    for group in ("generator", "critic", "averaged"):
        assert distance(run.end, other.end, group) > 1e-3
    assert not np.isclose(run.progress["fid"], other.progress["fid"], rtol=1e-4).any()


def shared_noise(run: Trained, *, replicas: int, settings: Settings) -> None:
    """The replicas' shares are those of the global batch, no row twice."""
    config = settings(**ADAM)
    whole = randomness.normal(
        [config.batch_size, config.latent_size],
        seed=config.seed,
        purpose=Purpose.CRITIC_NOISE,
        step=5,
        dtype="float64",
    )
    assert len(run.noise) == replicas
    np.testing.assert_array_equal(np.concatenate(run.noise), whole)
    assert len({row.tobytes() for row in np.concatenate(run.noise)}) == config.batch_size


@pytest.mark.slow
@pytest.mark.parametrize("replicas", [2, 4])
def test_fifty_steps_are_the_same_on_mirrored_replicas(
    under: Runner, order: Callable, one_device: dict[str, Trained], settings: Settings, replicas: int
) -> None:
    found = under.alone(
        *(order(n, base, strategy="mirrored", cpus=replicas) for n, base in OPTIMIZERS.items()),
        devices=replicas,
    )
    for name in OPTIMIZERS:
        assert_same(one_device[name], found[name], within=1e-8)
        shared_noise(found[name], replicas=replicas, settings=settings)


@pytest.mark.multi_process
def test_fifty_steps_are_the_same_in_two_processes(
    under: Runner, order: Callable, one_device: dict[str, Trained], settings: Settings
) -> None:
    found = under.in_step(*(order(n, base, strategy="multi_worker") for n, base in OPTIMIZERS.items()))
    for name in OPTIMIZERS:
        assert_same(one_device[name], found[name], within=1e-8)
        shared_noise(found[name], replicas=2, settings=settings)


FLOAT32_STEP = {
    **{"optimizer": "sgd", "critic_lr": 0.1, "generator_lr": 1.0, "n_critic": 1},
    **{"init_seed": 0, "tick_kimg": 0.032, "budget_kimg": 0.032},
}


@pytest.mark.multi_process
def test_in_single_precision_the_gradients_of_a_step_are_the_same(under: Runner, order: Callable) -> None:
    """By plain gradient descent the change of a weight is its gradient times the rate."""
    one = order("one", FLOAT32_STEP)
    seed = order("seed", FLOAT32_STEP, seed=1)
    two, four = (order(str(n), FLOAT32_STEP, strategy="mirrored", cpus=n) for n in (2, 4))
    found = under.alone(one, seed, two, devices=2) | under.alone(four, devices=4)
    found |= under.in_step(order("workers", FLOAT32_STEP, strategy="multi_worker"))

    def gradients(run: Trained) -> dict[str, np.ndarray]:
        names = [key for key in run.end if key.startswith(("generator/", "critic/"))]
        return {name: np.float64(run.end[name]) - run.begin[name] for name in names}

    assert_trained(found["one"])
    of_one = gradients(found["one"])
    for name in ("2", "4", "workers"):
        for key, gradient in gradients(found[name]).items():
            np.testing.assert_allclose(gradient, of_one[key], rtol=0, atol=1e-5 * np.abs(of_one[key]).max())
    for group in ("generator", "critic"):
        assert distance(gradients(found["seed"]), of_one, group) > 0.01


@pytest.mark.slow
def test_however_the_update_is_run_its_numbers_are_the_same(
    under: Runner, order: Callable, one_device: dict[str, Trained]
) -> None:
    """In parts, with the networks on two devices, operation by operation, compiled whole by XLA."""
    short = {**ADAM, "budget_kimg": 1.28}
    two = {"strategy": "mirrored", "cpus": 2}
    found = under.alone(
        order("plain", short),
        order("parts", short, accumulation_steps=4),
        order("parts of two", short, accumulation_steps=4, **two),
        order("split", short, placement="split", cpus=2),
        order("split parts", short, placement="split", cpus=2, accumulation_steps=2),
        order("eager", short, run_eagerly=True),
        order("xla", short, jit_compile=True),
        order("xla parts", short, jit_compile=True, accumulation_steps=2),
        devices=2,
    )
    assert_trained(found["plain"])
    for name, run in found.items():
        assert_same(found["plain"], run, within=1e-10)
        assert (run.device["generator"] == run.device["critic"]) == (not name.startswith("split"))


@pytest.mark.slow
@pytest.mark.parametrize("penalty", ["one_sided", "zero_centered", "r1", "clip"])
def test_every_penalty_is_the_same_on_two_replicas_and_under_xla(
    under: Runner, order: Callable, penalty: str
) -> None:
    short = {**RMSPROP, "budget_kimg": 0.64, "penalty": penalty, "weight_clip": 0.1}
    found = under.alone(
        order("one", short),
        order("two", short, strategy="mirrored", cpus=2),
        order("xla", short, jit_compile=True),
        devices=2,
    )
    assert_trained(found["one"])
    assert_same(found["one"], found["two"], within=1e-8)
    assert_same(found["one"], found["xla"], within=1e-8)


ROUNDED = {"allreduce_precision": "bfloat16"}


@pytest.mark.multi_process
def test_gradients_rounded_on_the_wire_are_off_by_less_than_a_part_in_a_hundred(
    under: Runner, order: Callable
) -> None:
    exact = order("exact", FLOAT32_STEP, strategy="mirrored", cpus=2)
    found = under.alone(
        order("alone", FLOAT32_STEP),
        order("alone rounded", FLOAT32_STEP, **ROUNDED),
        exact,
        order("mirrored", FLOAT32_STEP, strategy="mirrored", cpus=2, **ROUNDED),
        devices=2,
    )
    found |= under.in_step(order("workers", FLOAT32_STEP, strategy="multi_worker", **ROUNDED))
    assert_same(found["alone"], found["alone rounded"], within=0)  # nothing goes over a wire
    for name in ("mirrored", "workers"):
        for key in ("critic/0", "critic/2", "critic/4"):  # the generator's loss is that of a rounded critic
            begin = found["exact"].begin[key]
            gradient, rounded = found["exact"].end[key] - begin, found[name].end[key] - begin
            error = np.linalg.norm(rounded - gradient) / np.linalg.norm(gradient)
            assert 1e-4 < error < 1e-2, f"{name} {key}: {error:.1e}"


@pytest.mark.multi_process
def test_a_single_worker_of_a_parameter_server_has_no_stale_gradients(under: Runner, order: Callable) -> None:
    short = {**ADAM, "budget_kimg": 0.64}
    found = under.alone(order("one", short))
    found |= under.asynchronously(order("served", short, strategy="parameter_server"), workers=1)
    assert_same(found["one"], found["served"], within=1e-10)


@pytest.mark.multi_process
@pytest.mark.parametrize("penalty", ["two_sided", "clip"])
def test_parameter_servers_train_every_step_once(under: Runner, order: Callable, penalty: str) -> None:
    """No numbers to compare with: gradients are stale. All steps are made, all weights move, FID falls."""
    base = {
        **{"penalty": penalty, "optimizer": "rmsprop", "critic_lr": 2e-3, "generator_lr": 2e-3},
        **{"tick_kimg": 3.2, "budget_kimg": 6.4, "init_seed": 0, "weight_clip": 0.1},
    }
    found = under.asynchronously(order("run", base, strategy="parameter_server"))["run"]

    assert found.counts == {"critic_steps": 200, "generator_steps": 100}
    for key, array in found.end.items():
        assert np.isfinite(array).all()
        # The critic's last bias has no gradient: it moves real and generated images alike.
        if key.startswith(("generator/", "averaged/", "critic/")) and key != "critic/5":
            assert not np.array_equal(array, found.begin[key]), key
    assert_trained(found)
    first, last = found.progress["fid"]
    assert last < first
    if penalty == "clip":
        assert max(np.abs(found.end[f"critic/{i}"]).max() for i in range(6)) <= 0.1 + 1e-7
