from collections.abc import Callable

import pytest

from sweeps.space import Space
from wgangp.errors import UserError

LONG_TICKS = ("train.tick_kimg=90", "train.budget_kimg=90", "pruner.first_rung_kimg=90")
"""Large batches fit into these."""
ROOMY = {"train_images": 1000, "cpus": 64, "gpus": 8}


@pytest.mark.parametrize(
    ("overrides", "rungs"),
    [
        ([], [1, 3, 9]),
        (["pruner.first_rung_kimg=3"], [3, 9]),
        (["pruner.first_rung_kimg=2", "pruner.reduction_factor=2"], [2, 4, 8]),
        (["pruner.first_rung_kimg=null"], [1, 3, 9]),
        (["pruner.first_rung_kimg=9"], [9]),
        (["pruner.name=none"], []),
        (
            [
                "train.batch_size=8",
                "train.tick_kimg=0.1",
                "train.budget_kimg=0.9",
                "pruner.first_rung_kimg=0.3",
            ],
            [3, 9],
        ),
    ],
)
def test_rungs_are_ticks_within_the_budget(
    make_space: Callable[..., Space], overrides: list[str], rungs: list[int]
) -> None:
    assert make_space(*overrides).rungs == rungs


def test_seeds_follow_from_the_sweeps_unless_the_file_gives_them(make_space: Callable[..., Space]) -> None:
    follows = make_space("sweep.seed=7").config({"n_critic": 2}, init_seed=11)
    given = make_space("sweep.seed=7", "train.seed=1", "train.init_seed=2", "train.evaluation_seed=3").config(
        {"n_critic": 2}, init_seed=11
    )

    assert (follows.seed, follows.init_seed, follows.evaluation_seed, follows.split_seed) == (7, 11, 7, 0)
    assert (given.seed, given.init_seed, given.evaluation_seed, given.split_seed) == (1, 2, 3, 0)
    assert (follows.n_critic, follows.budget_kimg) == (2, 9)


@pytest.mark.parametrize(
    ("strategy", "cpus", "gpus", "replicas"),
    [
        ("auto", 4, 0, 1),
        ("auto", 4, 1, 1),
        ("auto", 4, 2, 2),
        ("auto", 4, 0.5, 1),
        ("one_device", 4, 2, 1),
        ("mirrored", 4, 0, 4),
        ("mirrored", 0.5, 0, 1),
        ("mirrored", 4, 2, 2),
        ("mirrored", 4, 0.5, 1),
    ],
)
def test_replicas_follow_from_strategy_and_devices(
    make_space: Callable[..., Space], strategy: str, cpus: float, gpus: float, replicas: int
) -> None:
    overrides = (f"resources.strategy={strategy}", f"resources.cpus={cpus}", f"resources.gpus={gpus}")

    assert make_space(*overrides).resources.replicas == replicas


@pytest.mark.parametrize(
    ("overrides", "there", "said"),
    [
        ([], {}, []),
        (["train.batch_size=1000"], {}, []),
        (
            ["train.batch_size=1001"],
            {},
            [
                "train.batch_size: batch_size must be at most the 1000 training images, got 1001;"
                " use a smaller batch"
            ],
        ),
        (
            ["search.batch_size={type: categorical, choices: [64, 1024, 2048]}"],
            {},
            [
                "search.batch_size: batch_size must be at most the 1000 training images,"
                f" got {size}; use a smaller batch"
                for size in (1024, 2048)
            ],
        ),
        (["resources.cpus=4"], {"cpus": 4}, []),
        (
            ["resources.cpus=4", "resources.gpus=2", "train.batch_size=1002"],
            {"cpus": 2, "gpus": 1},
            [
                "train.batch_size: batch_size must be at most the 1000 training images, got 1002;"
                " use a smaller batch",
                "resources.cpus: must be at most the 2 CPUs of this cluster, got 4",
                "resources.gpus: must be at most the 1 GPUs of this cluster, got 2",
            ],
        ),
        (["resources.workers=2", "resources.cpus=2"], {"cpus": 4}, []),
        (
            ["resources.workers=2", "resources.cpus=2", "resources.gpus=1"],
            {"cpus": 3, "gpus": 1},
            [
                "resources.cpus: must be at most the 3 CPUs of this cluster for all workers together,"
                " got cpus x workers = 2 x 2 = 4",
                "resources.gpus: must be at most the 1 GPUs of this cluster for all workers together,"
                " got gpus x workers = 1 x 2 = 2",
            ],
        ),
        (
            ["resources.gpus=0.5"],
            {"gpus": 0},
            ["resources.gpus: must be at most the 0 GPUs of this cluster, got 0.5"],
        ),
    ],
)
def test_what_does_not_fit_data_or_cluster_is_said_all_at_once(
    make_space: Callable[..., Space], overrides: list[str], there: dict[str, int], said: list[str]
) -> None:
    space = make_space(*LONG_TICKS, *overrides)
    problems = space.problems_when_prepared(**{**ROOMY, **there})  # type: ignore[arg-type]

    assert len(problems) == len(said)
    for problem, sentence in zip(problems, said, strict=True):
        assert problem.startswith("--set ") and problem.endswith(f": {sentence}")


def test_a_batch_size_that_does_not_fit_is_said_once(make_space: Callable[..., Space]) -> None:
    space = make_space(*LONG_TICKS, "search.batch_size={type: int, low: 512, high: 1024, step: 512}")

    assert len(space.problems_when_prepared(**ROOMY)) == 1  # type: ignore[arg-type]


def test_a_space_without_search_is_none(make_space: Callable[..., Space]) -> None:
    with pytest.raises(UserError, match="must name at least one setting to search"):
        make_space("search={}")


TWO = ["resources.strategy=mirrored", "resources.cpus=2"]


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (
            ["resources.strategy=mirrored", "resources.cpus=3", "train.batch_size=64"],
            ["train.batch_size: batch_size must be divisible by the 3 replicas of a trial, got 64"],
        ),
        (
            [*TWO, "search.batch_size={type: int, low: 32, high: 64}"],
            ["search.batch_size: batch_size must be divisible by the 2 replicas of a trial, got 33"],
        ),
        (
            ["resources.workers=2", "train.batch_size=64", "train.accumulation_steps=3"],
            [
                "train.batch_size: batch_size must be divisible by replicas x accumulation_steps = 2 x 3 = 6,"
                " got 64"
            ],
        ),
        ([*TWO, "train.jit_compile=true"], ["train.jit_compile: jit_compile must be false with 2 replicas"]),
        (
            ["resources.strategy=parameter_server", "train.run_eagerly=true"],
            ["train.run_eagerly: run_eagerly must be false under parameter_server"],
        ),
        (
            ["train.run_eagerly=true", "train.jit_compile=true"],
            [
                "train: run_eagerly and jit_compile must not both be true:"
                " run by operations, nothing is compiled"
            ],
        ),
    ],
)
def test_what_does_not_go_with_the_replicas_is_said_with_the_text(
    make_space: Callable[..., Space], overrides: list[str], said: list[str]
) -> None:
    with pytest.raises(UserError) as caught:
        make_space(*LONG_TICKS, *overrides)

    assert len(caught.value.problems) == len(said)
    for problem, sentence in zip(caught.value.problems, said, strict=True):
        assert problem.startswith("--set ") and problem.endswith(f": {sentence}")


def test_without_a_pruner_the_report_still_has_ticks_to_compare_at(make_space: Callable[..., Space]) -> None:
    space = make_space("pruner.name=none")

    assert (space.rungs, space.milestones) == ([], [1, 3, 9])
    assert make_space().rungs == make_space().milestones
