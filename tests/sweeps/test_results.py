import math
from collections.abc import Callable

from sweeps.records import TrialRecord
from sweeps.results import ENOUGH, Results, frame, keep_scores, kept_scores

MakeRecord = Callable[..., TrialRecord]
MakeResults = Callable[..., Results]


def test_a_frame_has_a_row_for_each_trial_with_scores_outcome_and_settings(
    records: list[TrialRecord],
) -> None:
    found = frame(records)

    assert list(found.trial) == [f"t00{n}" for n in range(1, 8)]
    assert list(found.outcome) == [
        *("complete", "complete", "complete", "pruned", "diverged", "failed", "running")
    ]
    row = found[found.trial == "t003"].iloc[0]
    assert (row.best_fid, row.kimg, row.core_seconds, row.gp_weight, row.n_critic) == (25, 4, 80, 0.5, 1)
    assert found.baseline.sum() == 2
    assert math.isnan(found[found.trial == "t006"].best_fid.iloc[0])
    assert found[found.trial == "t006"].reason.iloc[0] == "killed"
    assert len(frame([])) == 0


def test_what_pruning_saved_is_the_rest_of_the_budget_at_each_trials_own_speed(
    make_record: MakeRecord, make_results: MakeResults
) -> None:
    slow, quick = make_record("t002", "pruned", [9], seconds=20), make_record("t003", "pruned", [9] * 3)
    done, failed = make_record("t001", "complete", [9] * 9), make_record("t004", "failed", [9])

    # of a budget of 9 kimg: 8 at 20 core-seconds each, and 6 at 10
    assert make_results([done, slow, quick, failed]).saved == (14, 220)
    assert make_results([done, failed]).saved == (0, 0)


def test_trials_compare_at_the_last_rung_that_enough_of_them_reached(
    make_record: MakeRecord, make_results: MakeResults
) -> None:
    early = [make_record(f"t{n:03d}", "pruned", [100 - n]) for n in range(1, ENOUGH)]
    later = [make_record("t100", "pruned", [50, 40, 30]), make_record("t101", "complete", [30] * 9)]
    unscored = make_record("t102", "diverged", [], ticks={1: {"core_seconds": 1, "images_seen": 1000}})

    assert make_results([*early, unscored]).milestone == 0
    assert make_results([*early, *later]).milestone == 1
    assert make_results([*early, later[0], *later[:1] * ENOUGH]).milestone == 3
    assert make_results([*later] * ENOUGH).milestone == 9
    assert [one.label for one in make_results([*early, *later]).scored_by(3)] == ["t100", "t101"]


def test_scores_on_fresh_noise_are_kept_with_the_winner_they_belong_to(
    make_results: MakeResults, records: list[TrialRecord]
) -> None:
    folder = make_results(records).folder
    assert kept_scores(folder) == ("", {})

    keep_scores(folder, "t003", {"t003": {"fid_fresh": 26.0}})
    assert kept_scores(folder) == ("t003", {"t003": {"fid_fresh": 26.0}})


def test_an_interruption_a_failed_trial_and_no_winner_show_in_the_exit_status(
    make_record: MakeRecord, make_results: MakeResults
) -> None:
    done, failed = make_record("t001", "complete", [9]), make_record("t002", "failed", [])

    assert make_results([done]).exit_status == 0
    assert make_results([done, failed]).exit_status == 1
    assert make_results([make_record("t001", "pruned", [9])]).exit_status == 1
    assert make_results([done, failed], interruption="interrupted").exit_status == 130
