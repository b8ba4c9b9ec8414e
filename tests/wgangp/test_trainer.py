"""The door of the package: ticks, budgets, resume, warm starts, and how runs end."""

import io
import json
import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from wgangp import convergence
from wgangp import trainer as module
from wgangp.config import TrainConfig
from wgangp.errors import UserError
from wgangp.prepared import Prepared
from wgangp.trainer import CheckpointError, Progress, Trainer

Settings = Callable[..., TrainConfig]

METRICS = {
    "fid",
    "fid_standard_error",
    "best_fid",
    "precision",
    "recall",
    "diversity",
    "critic_loss",
    "generator_loss",
    "wasserstein",
    "gradient_penalty",
    "gradient_norm",
    "heldout_gap",
    "images_per_second",
}


def run(trainer: Trainer, config: TrainConfig) -> list[Progress]:
    trainer.start(config)
    ticks = [trainer.advance()]
    while ticks[-1].outcome is None:
        ticks.append(trainer.advance())
    return ticks


def measured(progress: Progress) -> tuple:
    """All of it that does not depend on the clock."""
    metrics = {name: value for name, value in progress.metrics.items() if name != "images_per_second"}
    return progress.tick, progress.images_seen, metrics, progress.samples, progress.outcome, progress.reason


def state(trainer: Trainer, folder: Path) -> dict[str, bytes]:
    trainer.save(folder)
    return {name: (folder / name).read_bytes() for name in ("arrays.npz", "state.json")}


def test_a_run_reports_every_tick_and_ends_complete(trainer: Trainer, settings: Settings) -> None:
    ticks = run(trainer, settings())

    assert [t.tick for t in ticks] == [1, 2, 3]
    assert [t.outcome for t in ticks] == [None, None, "complete"]
    assert [t.images_seen for t in ticks] == [640, 1280, 1920]
    assert all(t.metrics.keys() == METRICS and t.reason == "" for t in ticks)
    assert all(math.isfinite(value) for t in ticks for value in t.metrics.values())
    best = [min(t.metrics["fid"] for t in ticks[:n]) for n in (1, 2, 3)]
    assert [t.metrics["best_fid"] for t in ticks] == best
    for t in ticks:
        m = t.metrics
        expected = 10 * m["gradient_penalty"] - m["wasserstein"]
        assert m["critic_loss"] == pytest.approx(expected, rel=1e-4)
        assert Image.open(io.BytesIO(t.samples)).size == (64, 64)
    with pytest.raises(RuntimeError, match="used up"):
        trainer.advance()


def test_a_tick_ends_with_the_first_whole_generator_step_and_ticks_do_not_drift(
    trainer: Trainer, settings: Settings
) -> None:
    config = settings(n_critic=5, batch_size=32, tick_kimg=0.3, budget_kimg=2.4)  # 160 images a step

    seen = [t.images_seen for t in run(trainer, config)]

    assert seen == [320, 640, 960, 1280, 1600, 1920, 2240, 2400]


def test_decimal_fractions_of_kimg_cost_no_extra_step(trainer: Trainer, settings: Settings) -> None:
    config = settings(n_critic=1, batch_size=10, tick_kimg=0.07, budget_kimg=0.7)

    assert [t.images_seen for t in run(trainer, config)] == [70 * n for n in range(1, 11)]


def test_the_clock_does_not_change_what_is_measured(
    trainer: Trainer, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = []
    for chunk in (1, 3, 1000):
        monkeypatch.setattr(module, "_FIRST_CHUNK", chunk)
        monkeypatch.setattr(module, "_CHUNK_SECONDS", 1e-9 if chunk < 1000 else 1e9)
        # In float64 even the order of adding up shows.
        ended.append([measured(t) for t in run(trainer, settings(precision="float64"))])

    assert ended[0] == ended[1] == ended[2]


def test_a_resumed_run_is_bitwise_the_unbroken_one(
    trainer: Trainer, settings: Settings, prepared: Prepared, tmp_path: Path
) -> None:
    config = settings(adam_beta1=0.5)
    trainer.start(config)
    begin = trainer._gan.arrays()
    trainer.advance()
    trainer.save(tmp_path / "one")
    unbroken = [trainer.advance(), trainer.advance()]
    ended = trainer._gan.arrays()

    resumed = Trainer(prepared)  # compiles anew, as another process would
    resumed.start(config)
    resumed.load(tmp_path / "one")
    progress = [resumed.advance(), resumed.advance()]

    assert [measured(t) for t in progress] == [measured(t) for t in unbroken]
    assert state(resumed, tmp_path / "b") == state(trainer, tmp_path / "a")
    other = run(trainer, settings(adam_beta1=0.5, seed=1))
    assert measured(other[-1]) != measured(unbroken[-1])
    for network in ("generator", "critic"):
        moved = sum(((ended[f"{network}/{i}"] - begin[f"{network}/{i}"]) ** 2).sum() for i in range(6))
        assert moved > 0.01**2 * sum((begin[f"{network}/{i}"] ** 2).sum() for i in range(6))


def test_a_warm_start_is_bitwise_a_cold_one(
    trainer: Trainer, settings: Settings, prepared: Prepared, tmp_path: Path
) -> None:
    run(trainer, settings(gp_weight=1.0, n_critic=1, critic_lr=0.1, seed=5))
    config = settings(init_seed=3)

    warm = [measured(t) for t in run(trainer, config)]
    cold_trainer = Trainer(prepared)
    cold = [measured(t) for t in run(cold_trainer, config)]

    assert warm == cold
    assert state(trainer, tmp_path / "warm") == state(cold_trainer, tmp_path / "cold")


def test_evaluation_noise_depends_on_its_own_seed_only(trainer: Trainer, settings: Settings) -> None:
    still = {"init_seed": 1, "critic_lr": 1e-30, "generator_lr": 1e-30}  # weights do not move
    a, b = (run(trainer, settings(**still, seed=seed, evaluation_seed=4)) for seed in (0, 1))
    other = run(trainer, settings(**still, seed=0, evaluation_seed=5))

    assert len({t.samples for t in (*a, *b)}) == len({t.metrics["fid"] for t in (*a, *b)}) == 1
    assert other[0].samples != a[0].samples and other[0].metrics["fid"] != a[0].metrics["fid"]


def test_seeds_left_to_default_are_the_seed(trainer: Trainer, settings: Settings) -> None:
    written = run(trainer, settings(seed=2, init_seed=2, evaluation_seed=2))

    assert [measured(t) for t in run(trainer, settings(seed=2))] == [measured(t) for t in written]


@pytest.mark.parametrize(
    ("network", "factor"), [("generator", np.nan), ("critic", np.nan), ("critic", np.inf), ("critic", 1e15)]
)
def test_a_run_that_blows_up_ends_diverged_and_keeps_its_best_score(
    trainer: Trainer, settings: Settings, tmp_path: Path, network: str, factor: float
) -> None:
    trainer.start(settings())
    first = trainer.advance()
    model = getattr(trainer._gan, network)
    # 1 + weight: biases are near 0
    model.set_weights([(1 + weight) * np.float32(factor) for weight in model.get_weights()])

    progress = trainer.advance()

    assert (progress.outcome, progress.reason) == ("diverged", "critic_loss is not finite")
    assert math.isnan(progress.metrics["fid"])
    assert progress.metrics["best_fid"] == first.metrics["fid"]
    assert progress.samples.startswith(b"\x89PNG")
    trainer.save(tmp_path)
    assert json.loads((tmp_path / "state.json").read_text())["best_fid"] == first.metrics["fid"]
    trainer.start(settings())
    assert measured(trainer.advance()) == measured(first)  # the next run is not poisoned


def test_a_critic_dead_for_three_ticks_ends_its_run_even_over_a_resume(
    trainer: Trainer, settings: Settings, tmp_path: Path
) -> None:
    config = settings(critic_lr=1e-30, budget_kimg=6.4)

    def kill() -> None:
        trainer._gan.critic.set_weights([0 * weight for weight in trainer._gan.critic.get_weights()])

    trainer.start(config)
    kill()
    assert [trainer.advance().outcome for _ in range(2)] == [None, None]
    trainer.save(tmp_path)
    trainer.start(config)
    trainer.load(tmp_path)
    progress = trainer.advance()

    assert progress.outcome == "diverged"
    assert progress.reason == "dead critic: gradient norm 1e-06 and wasserstein 0 for 3 ticks"
    trainer.start(config)
    kill()
    assert [trainer.advance().outcome for _ in range(3)] == [None, None, "diverged"]


@pytest.mark.parametrize(
    "change",
    [{"width": 5}, {"batch_size": 16}, {"tick_kimg": 0.96}, {"fid_samples": 100}, {"evaluation_seed": 1}],
)
def test_a_checkpoint_of_another_run_does_not_fit(
    trainer: Trainer, settings: Settings, tmp_path: Path, change: dict
) -> None:
    trainer.start(settings())
    trainer.advance()
    trainer.save(tmp_path / "checkpoint")
    trainer.start(settings(**change))
    before = state(trainer, tmp_path / "before")

    with pytest.raises(CheckpointError, match=f"does not fit: {next(iter(change))} must be"):
        trainer.load(tmp_path / "checkpoint")

    assert trainer.tick == 0
    assert state(trainer, tmp_path / "after") == before


def test_a_checkpoint_before_the_first_score_holds_no_best_generator(
    trainer: Trainer, settings: Settings, tmp_path: Path
) -> None:
    trainer.start(settings())
    trainer.save(tmp_path)
    assert json.loads((tmp_path / "state.json").read_text())["best_fid"] is None

    trainer.start(settings())
    trainer.load(tmp_path)

    assert trainer.advance().tick == 1


def test_the_last_three_shapes_stay_compiled(prepared: Prepared, settings: Settings) -> None:
    trainer = Trainer(prepared)
    networks = []
    for width in (1, 2, 3, 1, 4, 1):
        trainer.start(settings(width=width))
        networks.append(trainer._gan)

    assert networks[0] is networks[3] is networks[5]
    assert [gan.traces for gan in networks] == [1] * 6
    assert len(trainer._compiled) == 3
    trainer.forget()
    assert list(trainer._compiled.values()) == [networks[5]]
    assert trainer.advance().tick == 1


def test_settings_that_do_not_go_with_the_data_are_refused_all_at_once(
    trainer: Trainer, settings: Settings
) -> None:
    with pytest.raises(UserError) as caught:
        trainer.start(settings(batch_size=2000, tick_kimg=4, budget_kimg=4, split_seed=1))

    assert caught.value.problems == (
        "split_seed: must be what was prepared, 0, got 1.",
        "batch_size must be at most the 1618 training images, got 2000; use a smaller batch.",
    )


def test_a_batch_that_replicas_cannot_share_is_refused(
    trainer: Trainer, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trainer, "_strategy", SimpleNamespace(num_replicas_in_sync=3))

    with pytest.raises(UserError, match="batch_size must be divisible by the 3 replicas of a trial, got 32"):
        trainer.start(settings())


def test_another_data_set_than_the_prepared_one_is_refused(trainer: Trainer, settings: Settings) -> None:
    with pytest.raises(UserError, match="dataset: must be what was prepared, digits, got mnist5k"):
        trainer.start(settings(dataset="mnist5k"))


def test_double_precision_trains(trainer: Trainer, settings: Settings) -> None:
    double = run(trainer, settings(precision="float64"))
    single = run(trainer, settings())

    assert trainer._gan.generator.weights[0].dtype == "float32"
    assert double[0].metrics["critic_loss"] != single[0].metrics["critic_loss"]
    assert double[-1].outcome == "complete"


def test_a_flat_critic_is_dead_under_the_penalty_and_well_under_clipping(
    trainer: Trainer, settings: Callable[..., TrainConfig]
) -> None:
    """Weights within 0.001 leave no slope; only a penalty that asks for slopes near one calls that dead."""
    trainer.start(settings(penalty="clip", optimizer="rmsprop", weight_clip=0.001))
    ticks = [trainer.advance() for _ in range(3)]
    for tick in ticks:
        assert convergence.is_dead(
            gradient_norm=tick.metrics["gradient_norm"], wasserstein=tick.metrics["wasserstein"]
        )
        assert tick.metrics["gradient_penalty"] == 0
    assert [tick.outcome for tick in ticks] == [None, None, "complete"]
