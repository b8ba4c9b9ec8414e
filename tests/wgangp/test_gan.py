"""The compiled update: against a plain loop that follows the paper, and its promises about settings."""

from collections.abc import Callable

import keras
import numpy as np
import pytest
import tensorflow as tf

from wgangp import gan, networks, randomness, strategies
from wgangp.config import TrainConfig
from wgangp.gan import WganGp
from wgangp.prepared import Prepared
from wgangp.randomness import Purpose
from wgangp.trainer import Trainer


@pytest.fixture(scope="module")
def build(prepared: Prepared) -> Callable[[TrainConfig], WganGp]:
    strategy = strategies.build("one_device", cpus=1, gpus=0)
    with strategy.scope():
        images = tf.Variable(prepared.images, trainable=False)
    return lambda config: WganGp(strategy, images, config, network_settings=prepared.network_settings(config))


class PlainAdam:
    """Kingma and Ba 2015, efficient form of section 2, with Keras's epsilon."""

    def __init__(self, lr: float, beta1: float, beta2: float) -> None:
        self.lr, self.beta1, self.beta2, self.step = lr, beta1, beta2, 0
        self.m: dict[int, np.ndarray] = {}
        self.v: dict[int, np.ndarray] = {}

    def apply(self, gradients: list, variables: list) -> None:
        self.step += 1
        rate = self.lr * np.sqrt(1 - self.beta2**self.step) / (1 - self.beta1**self.step)
        for i, (gradient, variable) in enumerate(zip(gradients, variables, strict=True)):
            g = gradient.numpy()
            self.m[i] = self.beta1 * self.m.get(i, 0 * g) + (1 - self.beta1) * g
            self.v[i] = self.beta2 * self.v.get(i, 0 * g) + (1 - self.beta2) * g**2
            variable.assign(variable.numpy() - rate * self.m[i] / (np.sqrt(self.v[i]) + 1e-7))


class PlainRmsprop:
    """Tieleman and Hinton 2012, with Keras's decay and epsilon."""

    def __init__(self, lr: float) -> None:
        self.lr = lr
        self.v: dict[int, np.ndarray] = {}

    def apply(self, gradients: list, variables: list) -> None:
        for i, (gradient, variable) in enumerate(zip(gradients, variables, strict=True)):
            g = gradient.numpy()
            self.v[i] = 0.9 * self.v.get(i, 0 * g) + 0.1 * g**2
            variable.assign(variable.numpy() - self.lr * g / np.sqrt(self.v[i] + 1e-7))


def charge(penalty: str, norm: tf.Tensor) -> tf.Tensor:
    """What the paper of each penalty charges a gradient norm with."""
    return {
        "two_sided": (norm - 1) ** 2,
        "one_sided": tf.nn.relu(norm - 1) ** 2,
        "zero_centered": norm**2,
        "r1": norm**2,
        "clip": 0 * norm,
    }[penalty]


def plain_loop(prepared: Prepared, config: TrainConfig, *, steps: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Algorithm 1 of the paper, step by step, with the draws that `randomness` defines."""
    images, settings = prepared.images, prepared.network_settings(config)
    critic = networks.build_critic("dcgan", settings)
    generator = networks.build_generator("dcgan", settings)
    networks.initialise(critic, seed=config.init_seed)
    networks.initialise(generator, seed=config.init_seed)
    betas = config.adam_beta1, config.adam_beta2
    critic_optimizer, generator_optimizer = (
        PlainAdam(lr, *betas) if config.optimizer == "adam" else PlainRmsprop(lr)
        for lr in (config.critic_lr, config.generator_lr)
    )
    m, sums, seed = config.batch_size, np.zeros(5), config.seed

    def noise(purpose: Purpose, step: int) -> tf.Tensor:
        return randomness.normal(
            [m, config.latent_size], seed=seed, purpose=purpose, step=step, dtype="float64"
        )

    for step in range(steps):
        if config.lr_schedule == "linear":
            left = 1 - step * config.n_critic * m / (1000 * config.budget_kimg)
            critic_optimizer.lr, generator_optimizer.lr = left * config.critic_lr, left * config.generator_lr
        for t in range(step * config.n_critic, (step + 1) * config.n_critic):
            positions = tf.range(t * m, (t + 1) * m, dtype=tf.int64)
            rows = randomness.data_rows(positions, seed=seed, count=len(images))
            x = images[rows.numpy()] / 127.5 - 1
            if config.flips:
                draws = randomness.uniform([m], seed=seed, purpose=Purpose.FLIPS, step=t, dtype="float32")
                x = np.array([i[:, ::-1] if d < 0.5 else i for i, d in zip(x, draws, strict=True)])
            x_tilde = generator(noise(Purpose.CRITIC_NOISE, t), training=True)
            e = randomness.uniform(
                [m, 1, 1, 1], seed=seed, purpose=Purpose.INTERPOLATION, step=t, dtype="float64"
            )
            x_hat = x if config.penalty == "r1" else e * x + (1 - e) * x_tilde
            x_hat = tf.convert_to_tensor(x_hat)
            with tf.GradientTape() as tape:
                with tf.GradientTape() as inner:
                    inner.watch(x_hat)
                    d_hat = critic(x_hat)
                slope = tf.reshape(inner.gradient(d_hat, x_hat), [m, -1])
                norm = tf.norm(slope, axis=1)
                gap = tf.reduce_mean(critic(x)) - tf.reduce_mean(critic(x_tilde))
                penalty = tf.reduce_mean(charge(config.penalty, norm))
                loss = -gap + config.gp_weight * penalty + config.drift * tf.reduce_mean(critic(x) ** 2)
            variables = critic.trainable_variables
            critic_optimizer.apply(tape.gradient(loss, variables), variables)
            if config.penalty == "clip":
                for weight in variables:
                    weight.assign(np.clip(weight.numpy(), -config.weight_clip, config.weight_clip))
            sums[:4] += [float(loss), float(penalty), float(gap), float(tf.reduce_mean(norm))]
        z = noise(Purpose.GENERATOR_NOISE, step)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(-critic(generator(z, training=True)))
        variables = generator.trainable_variables
        generator_optimizer.apply(tape.gradient(loss, variables), variables)
        sums[4] += float(loss)
    return [*generator.get_weights(), *critic.get_weights()], sums


def weights(trained: WganGp) -> list[np.ndarray]:
    return [*trained.generator.get_weights(), *trained.critic.get_weights()]


def relative_distance(a: list[np.ndarray], b: list[np.ndarray]) -> float:
    """Of all weights as one vector."""
    squares = sum(((x - y) ** 2).sum() for x, y in zip(a, b, strict=True))
    return float(np.sqrt(squares / sum((y**2).sum() for y in b)))


@pytest.mark.parametrize(
    "kind",
    [
        {"penalty": "two_sided"},
        {"penalty": "one_sided"},
        {"penalty": "zero_centered", "optimizer": "rmsprop"},
        {"penalty": "r1"},
        {"penalty": "clip", "optimizer": "rmsprop"},
        {"optimizer": "rmsprop", "drift": 1e-3},
        {"lr_schedule": "linear", "budget_kimg": 0.6, "tick_kimg": 0.3},
        {"flips": True},
        {"generator_norm": "batch", "critic_norm": "layer", "activation": "silu"},
    ],
    ids=lambda kind: " ".join(map(str, kind.values())),
)
def test_the_update_is_algorithm_1(
    build: Callable,
    settings: Callable[..., TrainConfig],
    prepared: Prepared,
    kind: dict,
) -> None:
    config = settings(
        precision="float64",
        width=3,
        batch_size=24,
        n_critic=3,
        gp_weight=2.5,
        adam_beta1=0.4,
        adam_beta2=0.95,
        critic_lr=2e-3,
        generator_lr=5e-3,
        seed=3,
        init_seed=4,
        **kind,
    ).resolved()
    trained = build(config)
    trained.start(config)
    begin = weights(trained)

    sums = trained.train(3)
    sums = trained.train(1, sums)
    expected, expected_sums = plain_loop(prepared, config, steps=4)

    assert relative_distance(begin, expected) > 0.01
    assert relative_distance(weights(trained), expected) < 1e-10
    # The constant inside the root shows in the norms of a clipped critic, which are near zero.
    np.testing.assert_allclose(sums, expected_sums, rtol=1e-5 if config.penalty == "clip" else 1e-9)
    assert (trained.critic_steps, trained.generator_steps) == (12, 4)


def test_under_clip_every_weight_of_the_critic_is_within_its_bound_and_moves(
    build: Callable, settings: Callable[..., TrainConfig]
) -> None:
    config = settings(penalty="clip", optimizer="rmsprop", weight_clip=0.02).resolved()
    trained = build(config)
    trained.start(config)
    trained.train(1)
    before = trained.critic.get_weights()
    trained.train(2)
    after = trained.critic.get_weights()
    assert max(np.abs(weight).max() for weight in after) <= 0.02
    assert any(np.abs(weight).max() >= 0.02 * (1 - 1e-6) for weight in after), "none reached its bound"
    assert relative_distance(after, before) > 0.001
    assert max(np.abs(weight).max() for weight in trained.generator.get_weights()) > 0.02


def test_changed_settings_take_effect_without_a_new_trace(
    build: Callable, settings: Callable[..., TrainConfig]
) -> None:
    """The second run in warm networks is bitwise the first run in cold ones."""
    first = settings().resolved()
    other = settings(
        gp_weight=0.5,
        n_critic=5,
        critic_lr=3e-3,
        generator_lr=2e-3,
        adam_beta1=0.5,
        adam_beta2=0.99,
        seed=8,
        init_seed=9,
    ).resolved()
    warm, cold = build(first), build(first)
    warm.start(first)
    warm.train(4)

    warm.start(other)
    warm_sums = warm.train(3)
    cold.start(other)
    cold_sums = cold.train(3)

    assert warm.traces == 1
    np.testing.assert_array_equal(warm_sums, cold_sums)
    for name, array in warm.arrays().items():
        np.testing.assert_array_equal(array, cold.arrays()[name], err_msg=name)


@pytest.mark.parametrize(
    "change",
    [
        {"gp_weight": 11.0},
        {"n_critic": 3},
        {"critic_lr": 1.1e-3},
        {"generator_lr": 1.1e-3},
        {"adam_beta1": 0.1},
        {"adam_beta2": 0.8},
        {"seed": 1},
        {"init_seed": 1},
    ],
)
def test_every_setting_changes_the_weights(
    shared: WganGp, settings: Callable[..., TrainConfig], change: dict
) -> None:
    base = settings(init_seed=0)
    ended = []
    for config in (base, settings(**{"init_seed": 0, **change})):
        shared.start(config.resolved())
        shared.train(2)
        ended.append(weights(shared))

    assert relative_distance(*ended) > 1e-6


@pytest.fixture(scope="module")
def shared(build: Callable, settings: Callable[..., TrainConfig]) -> WganGp:
    return build(settings())


@pytest.mark.parametrize("norm", ["none", "batch"])
@pytest.mark.parametrize("decay", [0.0, 0.75])
def test_what_is_sampled_is_the_exponential_average_of_the_generator(
    build: Callable[[TrainConfig], WganGp], settings: Callable[..., TrainConfig], decay: float, norm: str
) -> None:
    """But for the statistics of batch normalisation, which are averages already."""
    config = settings(precision="float64", ema_decay=decay, generator_norm=norm)
    trained = build(config)
    trained.start(config.resolved())
    expected = [weight.numpy() for weight in trained.generator.weights]
    for _ in range(3):
        trained.train(1)
        for place, weight in enumerate(trained.generator.weights):
            kept = decay if weight.trainable else 0
            expected[place] = kept * expected[place] + (1 - kept) * weight.numpy()
    assert any(not weight.trainable for weight in trained.generator.weights) == (norm == "batch")
    averaged = [trained.generator_arrays()[str(i)] for i in range(len(expected))]
    for ours, known in zip(averaged, expected, strict=True):
        np.testing.assert_allclose(ours, known, rtol=1e-12, atol=1e-15)
    z = np.random.default_rng(0).normal(size=[2, trained.averaged.inputs[0].shape[1]])
    assert np.array_equal(trained.averaged(z), trained.generator(z)) == (decay == 0)


def test_restored_arrays_go_on_as_if_there_had_been_no_break(
    build: Callable, settings: Callable[..., TrainConfig]
) -> None:
    config = settings(adam_beta1=0.5).resolved()
    unbroken, resumed = build(config), build(config)
    unbroken.start(config)
    begin = weights(unbroken)
    unbroken.train(3)
    state = unbroken.arrays()
    counters = {"critic_steps": unbroken.critic_steps, "generator_steps": unbroken.generator_steps}
    unbroken.train(5)

    resumed.start(config)
    resumed.train(1)
    resumed.restore(state, **counters)
    resumed.train(5)

    assert relative_distance(begin, weights(unbroken)) > 0.01
    for name, array in unbroken.arrays().items():
        np.testing.assert_array_equal(array, resumed.arrays()[name], err_msg=name)


def test_arrays_of_another_network_change_nothing(
    shared: WganGp, settings: Callable[..., TrainConfig]
) -> None:
    shared.start(settings().resolved())
    before = shared.arrays()
    wrong = {**before, "critic/0": before["critic/0"][..., :1]}
    wrong = {name: array + 1 for name, array in wrong.items()}

    with pytest.raises(ValueError, match="another network"):
        shared.restore(wrong, critic_steps=1, generator_steps=1)

    assert shared.critic_steps == 0
    for name, array in shared.arrays().items():
        np.testing.assert_array_equal(array, before[name])


def test_the_state_is_all_there(shared: WganGp) -> None:
    groups = [name.split("/")[0] for name in shared.arrays()]

    assert {group: groups.count(group) for group in groups} == {
        "generator": 6,
        "averaged": 6,
        "critic": 6,
        "generator_optimizer": 13,  # two moments for each weight, and the count of steps
        "critic_optimizer": 13,
    }


def test_one_bad_weight_is_noticed(shared: WganGp, settings: Callable[..., TrainConfig]) -> None:
    shared.start(settings().resolved())
    assert shared.weights_are_finite()

    for model in (shared.generator, shared.critic):
        shared.start(settings().resolved())
        values = model.get_weights()
        values[2].flat[3] = np.inf
        model.set_weights(values)
        assert not shared.weights_are_finite()


def test_mean_value_is_over_all_images_however_many(
    shared: WganGp, settings: Callable[..., TrainConfig], prepared: Prepared
) -> None:
    shared.start(settings().resolved())
    images = prepared.images[: networks.EVALUATION_BATCH + 30]

    values = shared.critic(images / np.float32(127.5) - 1)

    assert shared.mean_value(images) == pytest.approx(float(np.mean(values)), rel=1e-4)


def test_sums_have_names() -> None:
    assert gan.SUMS == (
        "critic_loss",
        "gradient_penalty",
        "wasserstein",
        "gradient_norm",
        "generator_loss",
    )
    assert keras.backend.floatx() == "float32"


def test_in_bfloat16_only_the_layers_between_are_rounded(
    build: Callable, settings: Callable[..., TrainConfig]
) -> None:
    """Weights, values, norms and losses are float32; of one step they are within a part in fifty of it."""
    change = {"n_critic": 1, "critic_lr": 1e-30, "generator_lr": 1e-30, "adam_beta1": 0.0}
    exact, rounded = (build(settings(**change, precision=p)) for p in ("float32", "bfloat16"))
    sums, gradients = [], []
    for trained in (exact, rounded):
        trained.start(settings(**change).resolved())
        sums.append(trained.train(1))
        gradients.append([trained.arrays()[f"critic_optimizer/{i}"] for i in range(1, 7)])

    dtypes = [layer.compute_dtype for layer in rounded.critic.layers]
    assert dtypes[0] == dtypes[-1] == "float32" and dtypes[1:-1] == ["bfloat16"] * (len(dtypes) - 2)
    assert {variable.dtype for variable in rounded.critic.weights} == {"float32"}
    np.testing.assert_allclose(sums[1], sums[0], rtol=0.02, atol=0.02)
    assert not np.array_equal(sums[1], sums[0])
    error = relative_distance(gradients[1], gradients[0])
    assert 1e-4 < error < 0.05, f"{error:.1e}"


def test_bfloat16_trains_and_its_images_get_better(
    trainer: Trainer, settings: Callable[..., TrainConfig]
) -> None:
    trainer.start(
        settings(precision="bfloat16", critic_lr=3e-3, generator_lr=3e-3, tick_kimg=3.2, budget_kimg=6.4)
    )
    ticks = [trainer.advance() for _ in range(2)]

    assert ticks[-1].outcome == "complete"
    assert ticks[1].metrics["fid"] < ticks[0].metrics["fid"]
