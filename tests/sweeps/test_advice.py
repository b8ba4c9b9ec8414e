from collections.abc import Callable

import pytest

from sweeps.advice import advice
from sweeps.records import Ending, TrialRecord
from sweeps.results import Results

MakeRecord = Callable[..., TrialRecord]
MakeResults = Callable[..., Results]

FLAT = [50, 40, 30, 30, 30, 30, 30, 30, 30]
RATE = "search.critic_lr={type: float, low: 1e-4, high: 1e-2, log: true}"


def test_without_a_winner_nothing_is_advised(make_record: MakeRecord, make_results: MakeResults) -> None:
    assert advice(make_results([make_record("t001", "pruned", [9])])) == []


@pytest.mark.parametrize(
    ("override", "field", "value", "said"),
    [
        (RATE, "critic_lr", 9.5e-3, "upper end of what was searched (0.01): search further, --set"),
        (RATE, "critic_lr", 9.5e-3, "--set search.critic_lr.high=0.03"),
        (RATE, "critic_lr", 1.1e-4, "critic_lr 0.00011 lies at the lower end"),
        (RATE, "critic_lr", 1.1e-4, "--set search.critic_lr.low=3.33e-05"),
        (RATE, "critic_lr", 7e-3, ""),  # log(70) of log(100): within the last tenth, not the last twentieth
        ("search.n_critic={type: int, low: 1, high: 8}", "n_critic", 8, "search.n_critic.high=24"),
        ("search.n_critic={type: int, low: 1, high: 8}", "n_critic", 1, ""),  # it can be no lower
        ("search.n_critic={type: int, low: 3, high: 8}", "n_critic", 3, "search.n_critic.low=1"),
        ("search.adam_beta2={type: float, low: 0.5, high: 0.9}", "adam_beta2", 0.9, "adam_beta2.high=0.95"),
        ("search.adam_beta1={type: float, low: 0.0, high: 0.9}", "adam_beta1", 0.0, ""),
    ],
)
def test_a_winner_at_an_end_that_can_be_moved_asks_for_a_wider_search(
    override: str, field: str, value: float, said: str, make_record: MakeRecord, make_results: MakeResults
) -> None:
    params = {"gp_weight": 1.0, "n_critic": 4} | {field: value}
    found = advice(make_results([make_record("t001", "complete", FLAT, params=params)], override))

    assert (said in " ".join(found)) if said else found == [], found


def test_a_choice_has_no_end(make_record: MakeRecord, make_results: MakeResults) -> None:
    params = {"gp_weight": 1.0, "n_critic": 4, "penalty": "r1"}
    results = make_results(
        [make_record("t001", "complete", FLAT, params=params)],
        "search.penalty={type: categorical, choices: [two_sided, r1]}",
    )

    assert advice(results) == []


def test_a_winner_that_still_improves_asks_for_a_longer_budget(
    make_record: MakeRecord, make_results: MakeResults
) -> None:
    falling = [500, 400, 300, 200, 150, 100, 80, 60, 40]
    (line,) = advice(make_results([make_record("t001", "complete", falling)]))

    assert line == (
        "the winner was still improving (the best FID fell by 60% in the last 3 of 9 ticks): give trials"
        " more, --set train.budget_kimg=27"
    )


def test_two_leaders_that_cannot_be_told_apart_ask_for_finalists_once(
    make_record: MakeRecord, make_results: MakeResults
) -> None:
    def leaders(second: float) -> list[TrialRecord]:
        known = {"core_seconds": 1.0, "images_seen": 1000.0, "fid_standard_error": 1.0}
        return [
            make_record(f"t00{n}", "complete", [], ticks={1: known | {"fid": fid}})
            for n, fid in enumerate((20.0, second), start=1)
        ]

    (line,) = advice(make_results(leaders(21)))
    assert line.startswith("t001 and t002 cannot be told apart") and "--set finalists.count=3" in line
    assert advice(make_results(leaders(21), "finalists.count=2")) == []
    assert advice(make_results(leaders(30))) == []


def test_a_winner_that_wavers_asks_for_an_average_unless_it_has_one(
    make_record: MakeRecord, make_results: MakeResults
) -> None:
    wavering = [100, 90, 30, 60, 40, 70, 35, 60, 45]
    (line,) = advice(make_results([make_record("t001", "complete", wavering)]))
    assert line.endswith("score an average, --set train.ema_decay=0.999")

    averaged = {"gp_weight": 1.0, "n_critic": 3, "ema_decay": 0.99}
    search = "search.ema_decay={type: float, low: 0, high: 0.999}"
    record = make_record("t001", "complete", wavering, params=averaged)
    assert not [line for line in advice(make_results([record], search)) if "average" in line]


def test_many_that_diverged_ask_for_lower_rates(make_record: MakeRecord, make_results: MakeResults) -> None:
    def bad(n: int) -> TrialRecord:
        return make_record(f"t01{n}", "diverged", [], ending=Ending("diverged", "fid is not finite"))

    good = [make_record(f"t00{n}", "complete", FLAT) for n in range(1, 5)]
    lines = advice(make_results([*good, bad(1), bad(2), bad(3)]))
    assert "3 of 7 proposed trials diverged: lower the rates' upper ends" in lines
    assert not [line for line in advice(make_results([*good, bad(1), bad(2)])) if "diverged" in line]


def test_a_baseline_that_wins_asks_for_more_trials(
    make_record: MakeRecord, make_results: MakeResults
) -> None:
    records = [
        make_record("t001", "complete", FLAT, baseline=True),
        make_record("t002", "complete", [fid * 2 for fid in FLAT]),
    ]

    assert "no proposed setting beat a baseline: more trials, --resume gp-0001 --trials 4" in advice(
        make_results(records)
    )
