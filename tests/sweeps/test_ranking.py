from collections.abc import Callable

from sweeps import ranking
from sweeps.finalists import finalists, winner
from sweeps.records import TrialRecord

MakeRecord = Callable[..., TrialRecord]
SEARCHED = ("gp_weight", "n_critic")


def test_the_winner_is_the_best_of_the_complete(records: list[TrialRecord]) -> None:
    best = winner(records)

    assert best is not None and (best.label, best.best_fid) == ("t003", 25)
    assert winner(records[3:]) is None
    assert winner([]) is None


def test_only_complete_trials_have_a_place(records: list[TrialRecord]) -> None:
    head, *rows = ranking.ranking(records)

    assert head == ["", "trial", "best FID", "+-", "kimg", "core-s", "outcome", "verdict", *SEARCHED]
    assert rows == [
        ["1", "t003", "25.0", "-", "4", "80", "complete", "improving", "0.5", "1"],
        ["2", "t002 baseline", "60.0", "-", "4", "160", "complete", "improving", "0.761", "3"],
        ["3", "t001 baseline", "100.0", "-", "4", "40", "complete", "improving", "0.761", "3"],
        ["", "t004", "10.0", "-", "1", "10", "pruned", "-", "0.761", "3"],
        ["", "t007", "500.0", "-", "1", "10", "waiting", "-", "0.761", "3"],
        ["", "t005", "-", "-", "1", "10", "diverged", "diverged", "0.761", "3"],
        ["", "t006", "-", "-", "0", "0", "failed", "-", "0.761", "3"],
    ]
    assert ranking.ranking([]) == [head[:8]]


def test_the_winner_is_compared_at_equal_kimg_and_at_equal_core_seconds(records: list[TrialRecord]) -> None:
    cheap, dear = ranking.compare(records[2], records)

    # 40 core-seconds are all four ticks of t001 and two of the winner.
    assert (cheap.baseline.label, cheap.kimg, cheap.at_kimg) == ("t001", 4, (25, 100))
    assert (cheap.core_seconds, cheap.at_core_seconds) == (40, (50, 100))
    # 80 core-seconds are all four ticks of the winner and two of t002.
    assert (dear.baseline.label, dear.kimg, dear.at_kimg) == ("t002", 4, (25, 60))
    assert (dear.core_seconds, dear.at_core_seconds) == (80, (25, 80))
    assert cheap.lines() == [
        "against t001 (gp_weight 0.761, n_critic 3):",
        "  at 4 kimg: FID 25.0 against 100.0, 4.0 times lower",
        "  at 40 core-seconds: FID 50.0 against 100.0, 2.0 times lower",
    ]


def test_a_baseline_that_did_not_come_far_is_compared_as_far_as_it_came(make_record: MakeRecord) -> None:
    best = make_record("t002", "complete", [120, 50, 25, 30])
    stopped = make_record("t001", "diverged", [200, 100], seconds=5, baseline=True)
    (found,) = ranking.compare(best, [stopped, best, make_record("t003", "failed", [], baseline=True)])

    assert (found.kimg, found.at_kimg) == (2, (50, 100))
    assert (found.core_seconds, found.at_core_seconds) == (10, (120, 100))


def test_what_was_not_scored_by_then_is_not_compared(make_record: MakeRecord) -> None:
    best = make_record("t002", "complete", [120, 50], seconds=30)
    quick = make_record("t001", "complete", [200, 100], seconds=5, baseline=True)

    assert ranking.compare(best, [quick, best])[0].lines()[-1] == (
        "  at 10 core-seconds: not both were scored by then"
    )


def test_a_winning_baseline_is_not_compared_with_itself(records: list[TrialRecord]) -> None:
    assert [found.baseline.label for found in ranking.compare(records[0], records)] == ["t002"]


def scored(make_record: MakeRecord, **fids: float) -> list[TrialRecord]:
    """Complete trials with this best FID, each known to 1."""

    def measured(fid: float) -> dict[int, dict[str, float]]:
        return {1: {"fid": fid, "fid_standard_error": 1.0, "core_seconds": 1}}

    return [make_record(label, "complete", [], ticks=measured(fid)) for label, fid in fids.items()]


def test_neighbours_within_two_standard_errors_of_their_difference_are_named(make_record: MakeRecord) -> None:
    records = scored(make_record, t001=20, t002=22.8, t003=25.7, t004=40)  # the error of a difference: 1.41

    (line,) = ranking.told_apart(records, [])
    assert line.endswith(": t001 and t002.")
    assert "2 standard errors of their FIDs alone; other seeds may move them further" in line
    assert ranking.told_apart(records[2:], [])[0].startswith("No two neighbours of the ranking differ")
    assert ranking.told_apart(records[:1], []) == []


def test_the_spread_over_seeds_widens_what_cannot_be_told_apart(make_record: MakeRecord) -> None:
    records = scored(make_record, t001=20, t002=22.8, t003=25.7, t004=40)
    runs = [make_record(f"t001-s{n}", "complete", [fid]) for n, fid in enumerate((18, 20, 22), start=1)]

    (line,) = ranking.told_apart([*records, *runs], finalists([*records, *runs]))
    # 2 x sqrt(1 + 1 + 2.28^2 + 2.57^2) = 7.4 for the second pair, 8.1 of the third
    assert line.endswith("the finalists' spread over seeds (10%) included: t001 and t002, t002 and t003.")


def test_what_has_no_error_is_not_said_to_be_close(make_record: MakeRecord) -> None:
    records = [make_record(f"t00{n}", "complete", [20 + n / 100]) for n in (1, 2)]

    assert ranking.told_apart(records, [])[0].startswith("No two neighbours")
