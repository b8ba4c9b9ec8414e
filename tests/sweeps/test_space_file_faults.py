"""Faults of the first gate that are known and not mended yet; each test passes once its fault is."""

import pytest

from sweeps import space_file
from wgangp import settings_file
from wgangp.errors import UserError

SEARCH = "search: {gp_weight: {type: float, low: 0.1, high: 100}}\n"


def mistakes(text: str, *overrides: str) -> list[str]:
    with pytest.raises(UserError) as caught:
        space_file.check(settings_file.parse(text, name="gp.yaml", overrides=overrides), default_name="gp")
    return list(caught.value.problems)


@pytest.mark.xfail(raises=TypeError, strict=True, reason="difflib and `in KINDS` take no such keys")
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


@pytest.mark.xfail(strict=True, reason="pydantic leaves out checks between fields once one field is wrong")
def test_a_wrong_field_hides_no_other_mistake() -> None:
    said = mistakes(SEARCH + "train: {widht: 8, tick_kimg: 3, budget_kimg: 10}\npruner: {first_rung_kimg: 4}")

    assert [problem.split(": ")[1] for problem in said] == ["train.widht", "train", "pruner.first_rung_kimg"]


@pytest.mark.xfail(strict=True, reason="rules between fields see the defaults of searched fields only")
def test_a_search_that_offers_what_no_trial_can_be_given_is_refused() -> None:
    text = "search: {n_critic: {type: int, low: 1, high: 100}}\ntrain: {tick_kimg: 1, batch_size: 64}"

    assert mistakes(text)[0].startswith("gp.yaml:1: search.n_critic")  # 6.4 kimg do not fit into a tick


@pytest.mark.xfail(
    raises=UserError, strict=True, reason="rules between fields see defaults no trial is given"
)
def test_a_default_that_is_searched_over_is_no_mistake() -> None:
    text = "search: {n_critic: {type: int, low: 1, high: 2}}\ntrain: {tick_kimg: 0.2, budget_kimg: 2}"

    space_file.check(settings_file.parse(text, name="gp.yaml"), default_name="gp")


@pytest.mark.xfail(strict=True, reason="the lines of what an override replaced are still looked up")
def test_a_mistake_inside_an_override_is_laid_to_the_override() -> None:
    override = "search.gp_weight={type: float, low: -1, high: 100}"

    assert mistakes(SEARCH, override) == [
        f"--set {override}: search.gp_weight.low: must be greater than or equal to 0, got -1.0"
    ]


@pytest.mark.xfail(strict=True, reason="the mistake is found at the setting, above the overridden key")
def test_an_override_that_makes_a_range_wrong_is_named() -> None:
    (said,) = mistakes(SEARCH, "search.gp_weight.low=200")

    assert said.startswith("--set search.gp_weight.low=200: ")


@pytest.mark.xfail(strict=True, reason="an empty value of any type is taken for an absent section")
@pytest.mark.parametrize("key", ["sweep", "sampler", "enqueue"])
def test_a_section_that_is_zero_or_false_is_refused(key: str) -> None:
    assert mistakes(f"{SEARCH}{key}: 0") and mistakes(f"{SEARCH}{key}: false")


@pytest.mark.xfail(strict=True, reason="pydantic's own words for lists, patterns, unions and models")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "search: {gp_weight: {type: categorical, choices: []}}",
            "gp.yaml:1: search.gp_weight.choices: must ",
        ),
        (
            "search: {gp_weight: {type: categorical, choices: [1, [2]]}}",
            "gp.yaml:1: search.gp_weight.choices[1]: must ",
        ),
        (SEARCH + "study: {storage: x}", "gp.yaml:2: study.storage: must "),
        (SEARCH + "sweep: 7", "gp.yaml:2: sweep: must be `setting: value` lines"),
    ],
)
def test_every_mistake_is_one_line_that_says_what_must_hold(text: str, said: str) -> None:
    (problem,) = mistakes(text)

    assert problem.startswith(said)
    assert "Sweep" not in problem
