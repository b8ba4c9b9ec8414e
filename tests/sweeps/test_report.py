from collections.abc import Callable
from typing import Any

import pytest

from sweeps import report
from sweeps.folder import SweepFolder
from sweeps.records import Ending, TrialRecord, short, winner
from wgangp import settings_file, train
from wgangp.config import TrainConfig

MakeRecord = Callable[..., TrialRecord]

FACTS = {
    "features": "digits-lenet",
    "features_sha256": "ab" * 32,
    "features_accuracy": 0.9731,
    "scored_in": "digits-lenet features (accuracy on held-out images 0.973)",
    "trained_on": "mirrored, 2 CPUs, 0 GPUs, 2 replica(s)",
    "data_sha256": "cd" * 32,
    "dataset": "digits",
    "image_size": "8x8",
    "train_images": 1617,
    "heldout_images": 180,
}


@pytest.fixture
def records(make_record: MakeRecord) -> list[TrialRecord]:
    """A cheap and a dear baseline, a winner in between, and trials without a place."""
    return [
        make_record("t001", "complete", [400, 300, 200, 100], seconds=10, baseline=True),
        make_record("t002", "complete", [90, 80, 70, 60], seconds=40, baseline=True),
        make_record(
            "t003", "complete", [120, 50, 25, 30], seconds=20, params={"gp_weight": 0.5, "n_critic": 1}
        ),
        make_record("t004", "pruned", [10]),
        make_record(
            "t005",
            "diverged",
            [],
            ticks={1: {"core_seconds": 10, "images_seen": 1000}},
            ending=Ending("diverged", "fid is not finite"),
        ),
        make_record("t006", "failed", [], ending=Ending("failed", "killed")),
        make_record("t007", "", [500]),
    ]


def test_the_winner_is_the_best_of_the_complete(records: list[TrialRecord]) -> None:
    best = winner(records)

    assert best is not None and (best.label, best.best_fid) == ("t003", 25)
    assert winner(records[3:]) is None
    assert winner([]) is None


def test_only_complete_trials_have_a_place(records: list[TrialRecord]) -> None:
    head, *rows = report.ranking(records)

    assert head == ["", "trial", "best FID", "kimg", "core-s", "outcome", "gp_weight", "n_critic"]
    assert rows == [
        ["1", "t003", "25.0", "4", "80", "complete", "0.5", "1"],
        ["2", "t002 baseline", "60.0", "4", "160", "complete", "0.761", "3"],
        ["3", "t001 baseline", "100.0", "4", "40", "complete", "0.761", "3"],
        ["", "t004", "10.0", "1", "10", "pruned", "0.761", "3"],
        ["", "t007", "500.0", "1", "10", "waiting", "0.761", "3"],
        ["", "t005", "-", "1", "10", "diverged", "0.761", "3"],
        ["", "t006", "-", "0", "0", "failed", "0.761", "3"],
    ]
    assert report.ranking([]) == [head[:6]]


def test_the_winner_is_compared_at_equal_kimg_and_at_equal_core_seconds(records: list[TrialRecord]) -> None:
    cheap, dear = report.compare(records[2], records)

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
    (found,) = report.compare(best, [stopped, best, make_record("t003", "failed", [], baseline=True)])

    assert (found.kimg, found.at_kimg) == (2, (50, 100))
    assert (found.core_seconds, found.at_core_seconds) == (10, (120, 100))


def test_what_was_not_scored_by_then_is_not_compared(make_record: MakeRecord) -> None:
    best = make_record("t002", "complete", [120, 50], seconds=30)
    quick = make_record("t001", "complete", [200, 100], seconds=5, baseline=True)

    assert report.compare(best, [quick, best])[0].lines()[-1] == (
        "  at 10 core-seconds: not both were scored by then"
    )


def test_a_winning_baseline_is_not_compared_with_itself(records: list[TrialRecord]) -> None:
    assert [found.baseline.label for found in report.compare(records[0], records)] == ["t002"]


def test_the_answer_says_the_winner_its_number_on_fresh_noise_and_its_samples(
    records: list[TrialRecord],
) -> None:
    fresh = {"fid_fresh": 26.04, "sure_samples": 51.0, "classes_seen": 9.0}

    assert report.answer(records, fresh)[:3] == [
        "winner t003: gp_weight 0.5, n_critic 1",
        "  best FID 25.0 (26.0 on fresh noise)",
        "  of 64 samples the classifier is sure of 51, in 9 classes",
    ]
    assert report.answer(records, {})[:2] == ["winner t003: gp_weight 0.5, n_critic 1", "  best FID 25.0"]
    assert report.answer(records[3:], {}) == [
        "No trial is complete, so there is no winner: 1 pruned, 1 diverged, 1 failed."
    ]


def test_best_yaml_is_read_by_the_command_that_trains_one_run(
    folder: SweepFolder, records: list[TrialRecord]
) -> None:
    settings: dict[str, Any] = {
        "gp_weight": 0.5,
        "n_critic": 1,
        "critic_lr": 1e-5,
        "init_seed": 12345,
        "seed": 7,
    }
    config = TrainConfig(**settings).resolved()
    report.write_best(folder, records[2], config, facts=FACTS)

    file = settings_file.read(folder.best_yaml)
    assert train._config(file) == config
    assert file.values["from"] == {
        "sweep": "gp-0001",
        "trial": "t003",
        "best_fid": 25.0,
        "features": "digits-lenet",
        "features_sha256": "ab" * 32,
    }
    assert folder.best_yaml.read_text().startswith(
        "# The winner of gp-0001. Train it again, from the repository: python -m"
    )


def test_the_report_holds_answer_table_reasons_and_how_it_was_measured(
    folder: SweepFolder, records: list[TrialRecord]
) -> None:
    report.write(folder, records, facts=FACTS, fresh={}, ui="mlflow ui")

    assert folder.report.read_text().splitlines() == [
        "# gp-0001",
        "",
        *(f"    {line}" for line in report.answer(records, {})),
        "",
        "## Trials",
        "",
        "|  | trial | best FID | kimg | core-s | outcome | gp_weight | n_critic |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
        *(f"| {' | '.join(row)} |" for row in report.ranking(records)[1:]),
        "",
        "## Failed and diverged",
        "",
        "- t005 diverged: fid is not finite",
        "- t006 failed: killed",
        "",
        "## How it was measured",
        "",
        "- FID in digits-lenet features (accuracy on held-out images 0.973); the score of a trial is its"
        " best so far.",
        "- Data: digits, 8x8, 1617 training and 180 held-out images (sha256 cdcdcdcdcdcdcdcd).",
        "- Each trial: mirrored, 2 CPUs, 0 GPUs, 2 replica(s).",
        "- Cost: 15 kimg, 310 core-seconds in all.",
        "",
        "## To see more",
        "",
        "    mlflow ui",
    ]
    assert [path.name for path in folder.path.iterdir()] == ["report.md"]


@pytest.mark.parametrize(
    ("value", "said"),
    [(1e-4, "0.0001"), (0.76123, "0.761"), (12345.6, "1.23e+04"), (5, "5"), ("tanh", "tanh"), (None, "None")],
)
def test_settings_are_shown_with_three_digits(value: float | str | None, said: str) -> None:
    assert short(value) == said
