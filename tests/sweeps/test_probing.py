from collections.abc import Callable

import pytest

from sweeps import probing
from sweeps.space import Space
from wgangp.measuring import Speed

MakeSpace = Callable[..., Space]

SPEED = Speed(startup_seconds=5, images_per_second=500, evaluation_seconds=0.5, checkpoint_bytes=1_000_000)


def named(space: Space) -> list[str]:
    return [corner.named for corner in probing.corners(space)]


def test_the_cheapest_and_the_dearest_are_tried(make_space: MakeSpace) -> None:
    # Few critic steps are dear: each generator step comes after fewer images.
    assert named(make_space()) == ["n_critic 8", "n_critic 1"]
    assert named(make_space("search.width={type: int, low: 8, high: 64}")) == [
        "width 8, n_critic 8",
        "width 64, n_critic 1",
    ]


def test_the_largest_batch_is_tried_at_the_dearest_networks(make_space: MakeSpace) -> None:
    space = make_space(
        "search.width={type: int, low: 8, high: 64}",
        "search.batch_size={type: categorical, choices: [64, 16, 32]}",
    )

    assert named(space) == [
        "width 8, n_critic 8, batch_size 64",
        "width 64, n_critic 1, batch_size 16",
        "width 64, n_critic 1, batch_size 64",
    ]


def test_every_kind_is_tried_with_what_applies_to_it(make_space: MakeSpace) -> None:
    space = make_space(
        "search.penalty={type: categorical, choices: [two_sided, clip]}",
        "search.weight_clip={type: float, low: 0.01, high: 0.1, when: {penalty: clip}}",
    )

    assert named(space) == [
        "n_critic 8, penalty two_sided",
        "n_critic 1, penalty two_sided",
        "n_critic 1, penalty clip",
        "n_critic 8, penalty clip",
    ]
    assert ["weight_clip" in corner.params for corner in probing.corners(space)] == [False, False, True, True]


def test_of_many_kinds_the_dearest_of_each_comes_before_other_cheap_ones(make_space: MakeSpace) -> None:
    kinds = ["two_sided", "one_sided", "zero_centered", "r1", "clip"]
    space = make_space(f"search.penalty={{type: categorical, choices: [{', '.join(kinds)}]}}")

    found = named(space)
    assert found[: probing.MOST] == [
        "n_critic 8, penalty two_sided",
        *(f"n_critic 1, penalty {k}" for k in kinds),
    ]
    assert found[probing.MOST :] == [f"n_critic 8, penalty {kind}" for kind in kinds[1:]]


def test_a_space_that_searches_nothing_dear_has_one_corner(make_space: MakeSpace) -> None:
    space = make_space("search={gp_weight: {type: float, low: 1, high: 10}}")

    assert named(space) == ["the fixed settings"]


def test_a_trial_takes_its_images_and_its_evaluations(make_space: MakeSpace) -> None:
    # 9 kimg at 500 images/s, and 9 evaluations.
    assert probing.trial_seconds(make_space(), SPEED) == pytest.approx(18 + 4.5)
    assert probing.trial_seconds(make_space(), SPEED, 3) == pytest.approx(6 + 1.5)


@pytest.mark.parametrize(
    ("overrides", "kimg"),
    [
        # 6 trials, each expected to come to 1 + 2/2 + 6/4 kimg: half go on at 1, half of these at 3
        ([], 6 * 3.5),
        (["pruner.name=none"], 6 * 9),
        (["enqueue=[{gp_weight: 10, n_critic: 5}]"], 9 + 5 * 3.5),
        (["enqueue=[{gp_weight: 10, n_critic: 5, prune: true}]"], 6 * 3.5),
        (["finalists.count=2", "finalists.seeds=3"], 6 * 3.5 + 6 * 9),
    ],
)
def test_a_sweep_takes_all_its_trials_so_many_at_once(
    overrides: list[str], kimg: float, make_space: MakeSpace
) -> None:
    seconds = 5 + kimg * (2 + 0.5) / 2

    assert probing.sweep_seconds(make_space(*overrides), SPEED, capacity=2) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.2, "1 s"), (89, "89 s"), (91, "2 min"), (5000, "83 min"), (7200, "2.0 h")]
)
def test_a_duration_is_said_for_a_person(seconds: float, said: str) -> None:
    assert probing.duration(seconds) == said


@pytest.mark.parametrize(
    ("count", "said"), [(12, "12 bytes"), (1500, "1.5 kB"), (2_000_000, "2.0 MB"), (3.2e9, "3.2 GB")]
)
def test_a_size_is_said_for_a_person(count: float, said: str) -> None:
    assert probing.size(count) == said
