"""The first gate under inputs that once made it crash, keep silent or blame the wrong line."""

import pytest

from sweeps import space_file
from wgangp import settings_file
from wgangp.errors import UserError

SEARCH = "search: {gp_weight: {type: float, low: 0.1, high: 100}}\n"


def mistakes(text: str, *overrides: str) -> list[str]:
    with pytest.raises(UserError) as caught:
        space_file.check(settings_file.parse(text, name="gp.yaml", overrides=overrides), default_name="gp")
    return list(caught.value.problems)


@pytest.mark.parametrize(
    "text",
    [
        SEARCH + "1: 2",
        "search: {3: {type: float, low: 1, high: 2}}",
        SEARCH + "enqueue: [{3: 4}]",
        "search: {gp_weight: {type: [float], low: 0.1, high: 100}}",
    ],
)
def test_a_key_or_a_type_that_is_no_word_is_a_mistake_not_a_crash(text: str) -> None:
    assert all(problem.startswith("gp.yaml:") for problem in mistakes(text))


def test_a_wrong_field_hides_no_other_mistake() -> None:
    said = mistakes(SEARCH + "train: {widht: 8, tick_kimg: 3, budget_kimg: 10}\npruner: {first_rung_kimg: 4}")

    assert [problem.split(": ")[1] for problem in said] == ["train.widht", "train", "pruner.first_rung_kimg"]


def test_a_search_that_offers_what_no_trial_can_be_given_is_refused() -> None:
    text = "search: {n_critic: {type: int, low: 1, high: 100}}\ntrain: {tick_kimg: 1, batch_size: 64}"

    assert mistakes(text)[0].startswith("gp.yaml:1: search.n_critic")  # 6.4 kimg do not fit into a tick


@pytest.mark.parametrize("n_critic", ["{type: int, low: 1, high: 2}", "{type: categorical, choices: [2, 1]}"])
def test_a_default_that_is_searched_over_is_no_mistake(n_critic: str) -> None:
    text = f"search: {{n_critic: {n_critic}}}\ntrain: {{tick_kimg: 0.2, budget_kimg: 2}}"
    space = space_file.check(settings_file.parse(text, name="gp.yaml"), default_name="gp")

    assert space.base.ticks == 10  # the default n_critic, 5, would not fit into a tick
    assert space.config({"n_critic": 2}, init_seed=0).n_critic == 2


def test_the_largest_values_that_are_searched_must_fit_into_a_tick() -> None:
    search = "search:\n  batch_size: {type: categorical, choices: [64, 512, 8]}\n"

    assert mistakes(search + "train: {tick_kimg: 2, budget_kimg: 2}") == [
        "gp.yaml:2: search.batch_size: tick_kimg must hold a generator step,"
        " n_critic x batch_size = 5 x 512 = 2.56 kimg, got 2; raise it or lower one of the two"
    ]
    assert mistakes("train:\n  width: 8\n  tick_kimg: 0.3\n  budget_kimg: 3\n" + SEARCH) == [
        "gp.yaml:3: train: tick_kimg must hold a generator step,"
        " n_critic x batch_size = 5 x 64 = 0.32 kimg, got 0.3; raise it or lower one of the two"
    ]


def test_a_mistake_inside_an_override_is_laid_to_the_override() -> None:
    override = "search.gp_weight={type: float, low: -1, high: 100}"

    assert mistakes(SEARCH, override) == [
        f"--set {override}: search.gp_weight.low: must be greater than or equal to 0, got -1.0"
    ]


def test_an_override_that_makes_a_range_wrong_is_named() -> None:
    (said,) = mistakes(SEARCH, "search.gp_weight.low=200")

    assert said.startswith("--set search.gp_weight.low=200: ")


@pytest.mark.parametrize("key", ["sweep", "sampler", "enqueue"])
def test_a_section_that_is_zero_or_false_is_refused(key: str) -> None:
    assert mistakes(f"{SEARCH}{key}: 0") and mistakes(f"{SEARCH}{key}: false")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "search: {gp_weight: {type: categorical, choices: []}}",
            "gp.yaml:1: search.gp_weight.choices: must ",
        ),
        (
            "search: {gp_weight: {type: categorical, choices: [1, [2]]}}",
            "gp.yaml:1: search.gp_weight.choices: must ",
        ),
        (SEARCH + "study: {storage: x}", "gp.yaml:2: study.storage: must "),
        (SEARCH + "sweep: 7", "gp.yaml:2: sweep: must be `setting: value` lines"),
    ],
)
def test_every_mistake_is_one_line_that_says_what_must_hold(text: str, said: str) -> None:
    (problem,) = mistakes(text)

    assert problem.startswith(said)
    assert "Sweep" not in problem


FILE = (
    SEARCH
    + """\
train: {width: 8, tick_kimg: 3, budget_kimg: 9}
pruner: {first_rung_kimg: 3}
enqueue: [{gp_weight: 10}]
"""
)


@pytest.mark.parametrize(
    ("overrides", "keys"),
    [
        (["search.gp_weight.low=200"], ["search.gp_weight"]),
        (["search.gp_weight.log=true", "search.gp_weight.low=0"], ["search.gp_weight"]),
        (["search.gp_weight.low=20"], ["enqueue[0].gp_weight"]),
        (["enqueue=[{gp_weight: 0}]"], ["enqueue[0].gp_weight"]),
        (["train.width=9", "train.budget_kimg=10"], ["train"]),
        (["train.width=9", "train.tick_kimg=9"], ["pruner.first_rung_kimg"]),
        (["search.n_critic.low=1"], ["search.n_critic.type"]),
        (["train={width: 3}", "train.width=0"], ["train.width", "pruner.first_rung_kimg"]),
        (["train.gp_weight=3"], ["train.gp_weight"]),
        (["sweep=0"], ["sweep"]),
    ],
)
def test_the_last_override_is_named_when_it_breaks_a_rule(overrides: list[str], keys: list[str]) -> None:
    said = mistakes(FILE, *overrides)

    assert [problem.split(": ")[-2 if "=[" in problem else 1] for problem in said] == keys
    assert said[0].startswith(f"--set {overrides[-1]}: ")


def test_an_override_does_not_take_the_blame_for_the_file() -> None:
    said = mistakes(FILE.replace("budget_kimg: 9", "budget_kimg: 10"), "train.width=9", "sweep.trials=1")

    assert said == ["gp.yaml:2: train: budget_kimg must be a multiple of tick_kimg (3), got 10"]


@pytest.mark.parametrize(
    "text",
    [
        "search: {gp_weight: 7}\nenqueue: [{gp_weight: [1]}]",
        "search: {gp_weight: {type: categorical, choices: [.inf, 1]}}\nenqueue: [{gp_weight: .inf}]",
        f"search: {{n_critic: {{type: int, low: 1{'0' * 400}, high: 1}}}}",
        f"search: {{n_critic: {{type: int, low: 1, high: 1{'0' * 400}, step: 3}}}}",
        "search: {gp_weight: {type: float, low: -1e308, high: 1e308, step: 1e-308}}",
        SEARCH + f"train: {{width: 0x{'f' * 5000}}}",
        SEARCH + "train: {tick_kimg: 1e-308}",
    ],
)
def test_numbers_beyond_measure_and_values_of_another_kind_are_mistakes_not_crashes(text: str) -> None:
    assert all(problem.startswith("gp.yaml:") for problem in mistakes(text))


def test_an_unknown_key_of_a_range_hides_no_other_mistake() -> None:
    said = mistakes("search: {n_critic: {type: int, low: 0, hihg: 8, high: 101}}")

    assert [problem.split(": ")[1] for problem in said] == [
        "search.n_critic.hihg",
        "search.n_critic.low",
        "search.n_critic.high",
    ]
