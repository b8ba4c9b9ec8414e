from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from sweeps import report, wall
from sweeps.answer import paragraph
from sweeps.folder import SweepFolder
from sweeps.ranking import ranking, told_apart
from sweeps.records import TrialRecord, short
from sweeps.results import Results
from wgangp import opening, settings_file
from wgangp.config import TrainConfig

from .conftest import FACTS
from .recorded import picture

MakeRecord = Callable[..., TrialRecord]
MakeResults = Callable[..., Results]


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
    best = replace(records[2], checkpoints=[folder.trials / "001" / "t003" / "checkpoint_000003"])
    report.write_best(folder, best, config, facts=FACTS)

    file = settings_file.read(folder.best_yaml)
    assert opening.config_of(file) == config
    assert file.values["from"] == {
        "sweep": "gp-0001",
        "trial": "t003",
        "best_fid": 25.0,
        "features": "digits-lenet",
        "features_sha256": "ab" * 32,
        "checkpoint": "trials/001/t003/checkpoint_000003",
    }
    assert folder.best_yaml.read_text().startswith(
        "# The winner of gp-0001. Train it again, from the repository: python -m"
    )


def test_the_report_holds_answer_table_reasons_and_how_it_was_measured(
    make_results: MakeResults, records: list[TrialRecord]
) -> None:
    results = make_results(records)

    assert report.markdown(results).splitlines() == [
        "# gp-0001",
        "",
        paragraph(results),
        "",
        "## Trials",
        "",
        "|  | trial | best FID | +- | kimg | core-s | outcome | verdict | gp_weight | n_critic |",
        "| ---: | --- | ---: | --- | ---: | ---: | --- | --- | ---: | ---: |",
        *(f"| {' | '.join(row)} |" for row in ranking(records)[1:]),
        "",
        *told_apart(records, []),
        "",
        "## What mattered",
        "",
        "Too few to say: 8 trials at equal budget are needed, and 2 searched settings.",
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
        "- Data: digits, 8x8x1, 1617 training and 180 held-out images (sha256 cdcdcdcdcdcdcdcd).",
        "- Each trial: mirrored, 2 CPUs, 0 GPUs, 2 replica(s).",
        "- Cost: 15 kimg, 310 core-seconds in all. Pruning saved 8 kimg (35%), about 80 core-seconds.",
        "",
        "## To see more",
        "",
        "    mlflow ui",
    ]


def test_a_cost_to_compare_with_is_a_table_of_its_own(
    make_results: MakeResults, records: list[TrialRecord]
) -> None:
    lines = report.markdown(make_results(records, "compare=[core_seconds]")).splitlines()

    start = lines.index("## FID against cost")
    assert lines[start + 2 : start + 6] == [
        "| for | best FID | trial | kimg | settings |",
        "| --- | ---: | --- | ---: | --- |",
        "| 10 core-seconds | 10.0 | t004 | 1 | gp_weight 0.761, n_critic 3 |",
        "",
    ]


def test_importances_are_over_trials_of_equal_budget_and_say_which(
    make_record: MakeRecord, make_results: MakeResults
) -> None:
    # What matters is gp_weight alone, in trials of which most were pruned at the first rung.
    records = [
        make_record(
            f"t{n:03d}",
            "pruned",
            [10.0 * (n % 9 + 1)],
            params={"gp_weight": 0.1 * 2 ** (n % 9), "n_critic": n},
        )
        for n in range(1, 9)
    ]
    records.append(make_record("t009", "complete", [5.0] * 9))

    line = report.markdown(make_results(records)).split("## What mattered\n\n")[1].splitlines()[0]
    assert line.startswith("For the FID at 1 kimg, over the 9 trials that were trained so far: gp_weight ")


def test_a_report_is_two_pages_a_table_and_the_wall_with_nothing_half_written(
    make_results: MakeResults, records: list[TrialRecord], folder: SweepFolder
) -> None:
    wall.keep(folder, "t003", 1, picture(100))
    report.write(make_results(records))

    assert sorted(path.name for path in folder.path.iterdir()) == [
        *("report.html", "report.md", "samples", "trials.json", "wall.png")
    ]
    assert "![wall](wall.png)" in folder.report.read_text()
    assert "<h1>gp-0001</h1>" in folder.page.read_text()


@pytest.mark.parametrize(
    ("value", "said"),
    [(1e-4, "0.0001"), (0.76123, "0.761"), (12345.6, "1.23e+04"), (5, "5"), ("tanh", "tanh"), (None, "None")],
)
def test_settings_are_shown_with_three_digits(value: float | str | None, said: str) -> None:
    assert short(value) == said
