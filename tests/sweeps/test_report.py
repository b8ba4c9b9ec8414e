from collections.abc import Callable
from typing import Any

import pytest

from sweeps import report
from sweeps.folder import SweepFolder
from sweeps.records import TrialRecord, short
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
    "reference_images": 1617,
    "heldout_images": 180,
}


def test_the_answer_says_the_winner_its_number_on_fresh_noise_and_its_samples(
    records: list[TrialRecord],
) -> None:
    scores = {"fid_fresh": 26.04, "fid_at_infinity": 23.96, "sure_samples": 51.0, "classes_seen": 9.0}

    assert report.answer(records, {"t003": scores})[:4] == [
        "winner t003: gp_weight 0.5, n_critic 1",
        "  best FID 25.0 (26.0 on fresh noise, 24.0 extrapolated to infinitely many samples)",
        "  of 64 samples the classifier is sure of 51, in 9 classes",
        "  improving: the best FID fell by 50% in the last 2 of 4 ticks: the budget was too small",
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
    report.write(
        folder, records, facts=FACTS, fresh={}, milestones=[1, 3], costs=[], tick_kimg=1, ui="mlflow ui"
    )

    assert folder.report.read_text().splitlines() == [
        "# gp-0001",
        "",
        *(f"    {line}" for line in report.answer(records, {})),
        "",
        "## Trials",
        "",
        "|  | trial | best FID | +- | kimg | core-s | outcome | verdict | gp_weight | n_critic |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
        *(f"| {' | '.join(row)} |" for row in report.ranking(records)[1:]),
        "",
        *report.told_apart(records, []),
        "",
        "## What the curves say",
        "",
        "- t001 improving: the best FID fell by 67% in the last 2 of 4 ticks: the budget was too small",
        "- t002 improving: the best FID fell by 25% in the last 2 of 4 ticks: the budget was too small",
        "- t003 improving: the best FID fell by 50% in the last 2 of 4 ticks: the budget was too small",
        "- t005 diverged: fid is not finite",
        "",
        "## Early against late",
        "",
        "- 1 kimg: 3 trials went on to the end, too few to say (at least 8 are needed)",
        "- 3 kimg: 3 trials went on to the end, too few to say (at least 8 are needed)",
        "",
        "## Failed and diverged",
        "",
        "- t005 diverged: fid is not finite",
        "- t006 failed: killed",
        "",
        "## How it was measured",
        "",
        "- FID in digits-lenet features (accuracy on held-out images 0.973), against 1617 training images;"
        " the score of a trial is its best so far. +-: standard error over the draw of the generated images.",
        "- Data: digits, 8x8, 1617 training and 180 held-out images (sha256 cdcdcdcdcdcdcdcd).",
        "- Each trial: mirrored, 2 CPUs, 0 GPUs, 2 replica(s).",
        "- Cost: 15 kimg, 310 core-seconds in all.",
        "",
        "## To see more",
        "",
        "    mlflow ui",
    ]
    assert [path.name for path in folder.path.iterdir()] == ["report.md"]


def test_a_cost_to_compare_with_is_a_table_of_its_own(
    folder: SweepFolder, records: list[TrialRecord]
) -> None:
    report.write(
        folder,
        records,
        facts=FACTS,
        fresh={},
        milestones=[],
        costs=["core_seconds"],
        tick_kimg=1,
        ui="mlflow ui",
    )

    lines = folder.report.read_text().splitlines()
    start = lines.index("## FID against cost")
    assert lines[start + 2 : start + 6] == [
        "| for | best FID | trial | kimg | settings |",
        "| --- | --- | --- | --- | --- |",
        "| 10 core-seconds | 10.0 | t004 | 1 | gp_weight 0.761, n_critic 3 |",
        "",
    ]


@pytest.mark.parametrize(
    ("value", "said"),
    [(1e-4, "0.0001"), (0.76123, "0.761"), (12345.6, "1.23e+04"), (5, "5"), ("tanh", "tanh"), (None, "None")],
)
def test_settings_are_shown_with_three_digits(value: float | str | None, said: str) -> None:
    assert short(value) == said
