from collections.abc import Callable

from sweeps import pareto
from sweeps.records import TrialRecord

MakeRecord = Callable[..., TrialRecord]


def test_nobody_on_the_front_is_beaten_for_less(make_record: MakeRecord) -> None:
    records = [
        make_record("t001", "complete", [90, 60, 70, 40], seconds=10),
        make_record("t002", "complete", [80, 50, 30, 20], seconds=30),
        make_record("t003", "pruned", [95, 55], seconds=12),  # 55 for 24 core-seconds
        make_record("t004", "failed", []),
        make_record("t001-s1", "complete", [1], seconds=1),  # comes after the choice
    ]

    # t001 at its second tick, t003 at its second, then t001 has 40 for 40, and t002 has 30 and 20 for more
    points = [
        (point.trial.label, point.tick, point.cost, point.fid)
        for point in pareto.front(records, "core_seconds")
    ]
    assert points == [("t001", 2, 20, 60), ("t003", 2, 24, 55), ("t001", 4, 40, 40), ("t002", 4, 120, 20)]
    assert pareto.table(records, ["core_seconds"], tick_kimg=9) == [
        ["for", "best FID", "trial", "kimg", "settings"],
        ["20 core-seconds", "60.0", "t001", "18", "gp_weight 0.761, n_critic 3"],
        ["24 core-seconds", "55.0", "t003", "18", "gp_weight 0.761, n_critic 3"],
        ["40 core-seconds", "40.0", "t001", "36", "gp_weight 0.761, n_critic 3"],
        ["120 core-seconds", "20.0", "t002", "36", "gp_weight 0.761, n_critic 3"],
    ]


def test_of_equals_at_one_cost_the_first_stands_and_a_tick_without_a_score_is_none(
    make_record: MakeRecord,
) -> None:
    records = [
        make_record("t001", "complete", [50, 40]),
        make_record("t002", "complete", [50, 40]),
        make_record("t003", "diverged", [], ticks={1: {"core_seconds": 1, "images_seen": 1000}}),
    ]

    assert [(point.trial.label, point.tick) for point in pareto.front(records, "core_seconds")] == [
        ("t001", 2)
    ]
    assert pareto.front([], "core_seconds") == []
