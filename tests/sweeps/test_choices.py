from collections.abc import Callable

from sweeps import choices
from sweeps.records import TrialRecord
from sweeps.results import Results

MakeRecord = Callable[..., TrialRecord]
MakeResults = Callable[..., Results]


def test_each_choice_has_its_best_and_its_median_at_equal_budget(
    make_record: MakeRecord, make_results: MakeResults
) -> None:
    def trial(number: int, penalty: str, *fids: float) -> TrialRecord:
        params = {"gp_weight": 1.0, "n_critic": 3, "penalty": penalty}
        return make_record(f"t00{number}", "pruned", fids, params=params)

    records = [
        trial(1, "two_sided", 90),
        trial(2, "two_sided", 70, 20, 30),
        trial(3, "two_sided", 80),
        trial(4, "r1", 60),
        make_record("t005", "failed", [], params={"gp_weight": 1.0, "n_critic": 3, "penalty": "r1"}),
    ]
    search = "search.penalty={type: categorical, choices: [two_sided, r1, clip]}"

    assert choices.table(make_results(records, search))[1:] == [
        ["penalty", "two_sided", "3", "20.0", "t002", "80.0", "3"],
        ["penalty", "r1", "2", "60.0", "t004", "60.0", "1"],
        ["penalty", "clip", "0", "-", "-", "-", "0"],
    ]


def test_choices_of_the_same_look_are_kept_apart(make_record: MakeRecord, make_results: MakeResults) -> None:
    records = [
        make_record(f"t00{n}", "pruned", [n], params={"gp_weight": 1.0, "n_critic": 3, "options": option})
        for n, option in enumerate(([1, 2], "[1, 2]"), start=1)
    ]
    search = "search.options={type: categorical, choices: [[1, 2], '[1, 2]']}"

    assert [row[3] for row in choices.table(make_results(records, search))[1:]] == ["1.0", "2.0"]


def test_numbers_have_no_rows(make_record: MakeRecord, make_results: MakeResults) -> None:
    assert len(choices.table(make_results([make_record("t001", "pruned", [9])]))) == 1
