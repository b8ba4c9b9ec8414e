"""Settings that only matter with another's value, and choices of any kind."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from sweeps import ranking, space_file
from sweeps.records import Ending, Metrics
from sweeps.space import Space
from sweeps.study import SweepStudy
from wgangp import settings_file
from wgangp.errors import UserError

OpenStudy = Callable[..., SweepStudy]
PENALTIES = (
    "search.penalty={type: categorical, choices: [two_sided, r1, clip]}",
    "search.weight_clip={type: float, low: 0.001, high: 0.1, when: {penalty: clip}}",
    "search.gp_weight={type: float, low: 0.1, high: 100, log: true, when: {penalty: [two_sided, r1]}}",
)
DEEP = ("search.drift={type: float, low: 0.1, high: 1, when: {n_critic: [1, 2, 3], weight_clip: 0.05}}",)


def of(penalty: str) -> set[str]:
    return {"n_critic", "penalty"} | ({"weight_clip"} if penalty == "clip" else {"gp_weight"})


@pytest.mark.parametrize("sampler", ["tpe", "random", "qmc", "cmaes"])
def test_a_trial_is_given_what_matters_and_the_rest_stays_at_its_default(
    open_study: OpenStudy, measured: Callable[..., Metrics], sampler: str
) -> None:
    asked = (*PENALTIES, f"sampler={{name: {sampler}, n_startup_trials: 4}}", "sweep.trials=24")
    study = open_study(*asked)
    for number in range(24):
        given = study.ask()
        assert given.config.weight_clip == given.params.get("weight_clip", 0.01)
        assert given.config.gp_weight == given.params.get("gp_weight", 10)
        study.report(given.label, tick=1, metrics=measured(number, 1), ending=Ending("complete"))
        study.end(given.label)
        if number % 8 == 0:
            study = open_study(*asked)

    records = study.records()
    assert all(set(record.params) == of(str(record.params["penalty"])) for record in records)
    assert {record.params["penalty"] for record in records} == {"two_sided", "r1", "clip"}
    assert len({record.params.get("weight_clip") for record in records}) > 3
    head, *rows = ranking.ranking(records)
    columns = {name: head.index(name) for name in ("penalty", "weight_clip", "gp_weight")}
    for row in rows:
        assert (row[columns["weight_clip"]] == "-") == (row[columns["penalty"]] != "clip")
        assert (row[columns["gp_weight"]] == "-") == (row[columns["penalty"]] == "clip")


def test_a_condition_may_hang_on_one_that_hangs_on_another(make_space: Callable[..., Space]) -> None:
    space = make_space(
        *PENALTIES,
        "search.weight_clip={type: categorical, choices: [0.01, 0.05], when: {penalty: clip}}",
        *DEEP,
        "enqueue=[{penalty: clip, weight_clip: 0.05, n_critic: 1, drift: 0.5}, {n_critic: 1}]",
    )

    assert [sorted(baseline.params) for baseline in space.enqueue] == [
        ["drift", "n_critic", "penalty", "weight_clip"],
        ["gp_weight", "n_critic", "penalty"],
    ]


def test_conditions_come_back_from_the_frozen_space_as_they_were(make_space: Callable[..., Space]) -> None:
    space = make_space(*PENALTIES)
    again = space_file.check(
        settings_file.SettingsFile(name="space.yaml", values=space.values(), lines={}), default_name="gp"
    )

    assert again.search == space.search
    assert again.values() == space.values()


MISTAKES = {
    "when: {penalties: clip}": [
        "search.weight_clip.when.penalties: unknown setting. Did you mean 'penalty'?",
    ],
    "when: {batch_size: 64}": [
        "search.weight_clip.when.batch_size: is not searched; a condition is of another searched setting."
    ],
    "when: {penalty: clipped}": [
        "search.weight_clip.when.penalty: no trial is given 'clipped'; take a value of its search."
    ],
    "when: {n_critic: [2, 9]}": [
        "search.weight_clip.when.n_critic: no trial is given 9; take a value of its search."
    ],
    "when: {weight_clip: 0.05}": [
        "search.weight_clip.when: must not go round in a circle, got weight_clip; remove one."
    ],
    "when: {gp_weight: 1}": [
        "search.gp_weight.when: must not go round in a circle, got gp_weight, weight_clip; remove one."
    ],
    "when: {}": [
        "search.weight_clip.when: must be `setting: value` of another searched setting, got none; or"
        " remove it"
    ],
    "when: clip": [
        "search.weight_clip.when: must be `setting: value` of another searched setting, got 'clip'; or"
        " remove it"
    ],
}


@pytest.mark.parametrize(("change", "said"), MISTAKES.items(), ids=MISTAKES)
def test_conditions_that_cannot_be_are_refused(
    make_space: Callable[..., Space], change: str, said: list[str]
) -> None:
    circle = "search.gp_weight={type: float, low: 0.1, high: 100, when: {weight_clip: 0.01}}"
    with pytest.raises(UserError) as caught:
        make_space(
            *PENALTIES,
            *([circle] if "gp_weight" in change else []),
            f"search.weight_clip={{type: float, low: 0.001, high: 0.1, {change}}}",
        )

    assert [problem.rpartition("}: ")[2] for problem in caught.value.problems] == said


def test_a_baseline_names_nothing_that_does_not_matter_in_it(make_space: Callable[..., Space]) -> None:
    with pytest.raises(UserError) as caught:
        make_space(*PENALTIES, "enqueue=[{penalty: clip, gp_weight: 1}, {penalty: r1, weight_clip: 0.05}]")

    assert [problem.partition("]: ")[2] for problem in caught.value.problems] == [
        "enqueue[0].gp_weight: does not matter here, only with penalty 'two_sided' or 'r1'; remove it.",
        "enqueue[1].weight_clip: does not matter here, only with penalty 'clip'; remove it.",
    ]


KINDS: list[Any] = [
    None,
    {"sizes": [3, 4], "deep": True},
    {"sizes": [3, 4]},
    [1, [2, "x"]],
    "json: x",
    "",
    2.5,
]


def test_choices_of_any_kind_come_back_from_the_journal(open_study: OpenStudy) -> None:
    asked = (
        f"search.options={{type: categorical, choices: {json.dumps(KINDS)}}}",
        "enqueue=[{options: {deep: true, sizes: [3, 4]}}]",
        "sweep.trials=40",
        "sampler.name=random",
    )
    study = open_study(*asked)
    given = [study.ask() for _ in range(40)]

    assert given[0].params["options"] == KINDS[1]
    assert all(one.config.options == one.params["options"] for one in given)
    for kind in KINDS:
        assert any(one.params["options"] == kind for one in given)
    again = open_study(*asked)
    assert [record.params for record in again.records()] == [one.params for one in given]


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        ("[{a: 1}, {a: 1}]", "must be distinct, got {'a': 1} twice; remove one"),
        ("[{a: 1, b: 2}, {b: 2, a: 1}]", "must be distinct, got {'b': 2, 'a': 1} twice; remove one"),
        ("[1, true]", "must be distinct, got true twice; remove one"),
        ("[1, 1.0]", "must be distinct, got 1.0 twice; remove one"),
        (
            "[2020-01-01]",
            "must be a number, a word, true, false, null, or a list or mapping of them with words",
        ),
        ("[[.inf]]", "must be a number, a word, true, false, null, or a list or mapping of them with words"),
    ],
)
def test_choices_that_cannot_be_kept_or_told_apart_are_refused(
    make_space: Callable[..., Space], choices: str, said: str
) -> None:
    with pytest.raises(UserError) as caught:
        make_space(f"search.options={{type: categorical, choices: {choices}}}")

    (problem,) = caught.value.problems
    assert said in problem
