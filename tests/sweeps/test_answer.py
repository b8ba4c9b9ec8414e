from collections.abc import Callable

from sweeps.answer import answer, paragraph
from sweeps.records import TrialRecord
from sweeps.results import Results

MakeRecord = Callable[..., TrialRecord]
MakeResults = Callable[..., Results]

SCORES = {"fid_fresh": 26.04, "fid_at_infinity": 23.96, "sure_samples": 51.0, "classes_seen": 9.0}


def test_the_answer_says_the_winner_its_number_on_fresh_noise_its_samples_and_what_next(
    make_results: MakeResults, records: list[TrialRecord]
) -> None:
    lines = answer(make_results(records, fresh={"t003": SCORES}))

    assert lines[:4] == [
        "winner t003: gp_weight 0.5, n_critic 1",
        "  best FID 25.0 (26.0 on fresh noise, 24.0 extrapolated to infinitely many samples)",
        "  of 64 samples the classifier is sure of 51, in 9 classes",
        "  improving: the best FID fell by 50% in the last 2 of 4 ticks: the budget was too small",
    ]
    assert lines[-2:] == [
        "to try next:",
        "  the winner was still improving (the best FID fell by 50% in the last 2 of 4 ticks): give trials"
        " more, --set train.budget_kimg=27",
    ]
    assert answer(make_results(records))[:2] == ["winner t003: gp_weight 0.5, n_critic 1", "  best FID 25.0"]
    assert answer(make_results(records[3:])) == [
        "No trial is complete, so there is no winner: 1 pruned, 1 diverged, 1 failed."
    ]


def test_the_paragraph_says_what_won_by_how_much_how_sure_and_what_next(
    make_results: MakeResults, records: list[TrialRecord]
) -> None:
    assert paragraph(make_results(records, fresh={"t003": SCORES})) == (
        "**gp_weight 0.5, n_critic 1** (t003) is the best of 6 trials: FID 25.0, 26.0 on fresh noise."
        " The baseline t001 (gp_weight 0.761, n_critic 3) has 100.0 at the same 4 kimg, 4.0 times as much,"
        " and 2.0 times at equal core-seconds."
        " The baseline t002 (gp_weight 0.761, n_critic 3) has 60.0 at the same 4 kimg, 2.4 times as much, and"
        " 3.2 times at equal core-seconds."
        " The next, t002, has 60.0, which the draw of samples does not explain; what another seed would"
        " change, only finalists show."
        " To try next: the winner was still improving (the best FID fell by 50% in the last 2 of 4 ticks):"
        " give trials more, --set train.budget_kimg=27."
    )


def test_a_winning_baseline_is_called_one(make_results: MakeResults, records: list[TrialRecord]) -> None:
    said = paragraph(make_results(records[:1]))

    assert "It is a baseline: nothing that was proposed is better." in said
    assert "No other trial was trained to the end, so nothing says how sure that is." in said


def test_finalists_say_how_sure_it_is(make_record: MakeRecord, make_results: MakeResults) -> None:
    trials = [make_record(label, "complete", [fid]) for label, fid in (("t001", 20), ("t002", 30))]
    runs = [
        make_record(f"{label}-s{seed}", "complete", [fid], finalist_runs=4)
        for label, fids in (("t001", (26, 30)), ("t002", (21, 23)))
        for seed, fid in enumerate(fids, start=1)
    ]

    # The setting that is best over other seeds wins, not the trial with the lowest FID.
    said = paragraph(make_results([*trials, *runs]))
    assert "(t002) is the best of 2 trials: FID 30.0." in said
    assert (
        "Over 2 other seeds its FID 22.0 on average (sd 1.4), that of the next, t001, FID 28.0 on average"
        in said
    )


def test_before_the_first_trial_has_ended_the_paragraph_says_so(
    make_record: MakeRecord, make_results: MakeResults
) -> None:
    assert paragraph(make_results([make_record("t001", "", [50])])) == "No trial has ended yet."


def test_leaders_within_chance_are_said_to_be(make_record: MakeRecord, make_results: MakeResults) -> None:
    known = {"core_seconds": 1.0, "images_seen": 1000.0, "fid_standard_error": 1.0}
    records = [
        make_record(f"t00{n}", "complete", [], ticks={1: known | {"fid": fid}})
        for n, fid in enumerate((20.0, 21.0), start=1)
    ]

    assert "The next, t002 (21.0), cannot be told from it." in paragraph(make_results(records))
    assert "FID 20.0 +- 1.0" in paragraph(make_results(records))
