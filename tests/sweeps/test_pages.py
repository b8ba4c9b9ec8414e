import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

from sweeps import page, plots, report, several, wall
from sweeps.folder import SweepFolder
from sweeps.records import TrialRecord
from sweeps.results import Results

from .conftest import FACTS
from .recorded import picture

MakeRecord = Callable[..., TrialRecord]
MakeResults = Callable[..., Results]
RATES = (
    "search.critic_lr={type: float, low: 1e-4, high: 1e-2, log: true}",
    "search.generator_lr={type: float, low: 1e-4, high: 1e-2, log: true}",
    "search.penalty={type: categorical, choices: [two_sided, r1]}",
)


def some(make_record: MakeRecord, count: int) -> list[TrialRecord]:
    """Trials of which every third is complete; the lower critic_lr, the better."""
    return [
        make_record(
            f"t{n:03d}",
            "pruned" if n % 3 else "complete",
            [200.0 + n] if n % 3 else [200.0 + n, 100, 90, 80, 70, 60, 55, 52, 50 + n],
            params={
                "gp_weight": 0.1 * 1.5**n,
                "n_critic": 1 + n % 8,
                "critic_lr": 1e-4 * 1.3**n,
                "generator_lr": 1e-4 * 1.1**n,
                "penalty": ["two_sided", "r1"][n % 2],
            },
        )
        for n in range(count)
    ]


def test_with_enough_trials_every_plot_is_there(make_record: MakeRecord, make_results: MakeResults) -> None:
    drawn = plots.plots(make_results(some(make_record, 12), *RATES))

    assert [plot.title for plot in drawn] == [
        *("Curves", "History", "Parallel coordinates", "Importances", "Slices", "Contour", "Rank")
    ]
    contour = next(plot for plot in drawn if plot.title == "Contour")
    axes = contour.figure.layout
    assert {axes.xaxis.title.text, axes.yaxis.title.text} == {"critic_lr", "generator_lr"}
    slices = next(plot for plot in drawn if plot.title == "Slices")
    # Pruned trials are in it, at the budget that all of them have.
    assert {len(trace.x) for trace in slices.figure.data} == {12}
    assert "1 kimg" in slices.shows


def test_with_few_trials_only_curves_are_drawn(make_record: MakeRecord, make_results: MakeResults) -> None:
    assert [plot.title for plot in plots.plots(make_results(some(make_record, 3), *RATES))] == [
        *("Curves", "History")
    ]
    assert plots.plots(make_results([])) == []


def test_the_setting_that_decides_is_the_most_important(
    make_record: MakeRecord, make_results: MakeResults
) -> None:
    random = np.random.default_rng(0)
    records = []
    for n in range(40):
        decides, does_not = random.uniform(-1, 2, size=2)
        params = {"gp_weight": 10**decides, "n_critic": round(1 + 7 * (does_not + 1) / 3)}
        records.append(make_record(f"t{n:03d}", "pruned", [100 * (decides + 1.1) ** 2], params=params))

    found = plots.importances(make_results(records))
    assert found is not None and (found.kimg, found.trials) == (1, 40)
    assert next(iter(found.shares)) == "gp_weight" and found.shares["gp_weight"] > 0.7


def test_the_page_needs_nothing_else_and_runs_no_text_as_html(
    make_record: MakeRecord, make_results: MakeResults, folder: SweepFolder
) -> None:
    results = make_results(some(make_record, 12), *RATES)
    (folder.path / "wall.png").write_bytes(picture(7))
    text = (
        "# gp-0001\n\n![wall](wall.png)\n\n<script>alert(1)</script>\n\n| a | b |\n| --- | --- |\n| x | 1 |\n"
    )
    found = page.html(text, results)

    assert not re.findall(r'(?:src|href)="(?!data:)', found.split("<h2>Curves")[0])
    assert not re.findall(r'<script[^>]+src="', found)
    assert "data:image/png;base64," in found and "&lt;script&gt;alert(1)" in found
    assert "<td>x</td>" in found
    # The program that draws comes along once.
    assert found.count("plotly.js v") == 1 and found.count('class="plotly-graph-div"') == 7


def grid(shade: int, side: int) -> bytes:
    """Samples as a tick has them: 8 by 8 images, the first of them white, the others no grey of a letter."""
    array = np.full((8 * side, 8 * side, 3), (shade, 0, 200), np.uint8)
    array[:side, :side] = 255
    file = io.BytesIO()
    Image.fromarray(array).save(file, "PNG")
    return file.getvalue()


def hung(drawn: bytes | None, shade: int) -> np.ndarray:
    """Which pixels of the wall are of samples of this shade."""
    assert drawn is not None
    return (np.asarray(Image.open(io.BytesIO(drawn))) == (shade, 0, 200)).all(axis=-1)


def test_the_wall_hangs_the_best_trials_rung_by_rung_cut_between_images(
    make_record: MakeRecord, make_results: MakeResults, folder: SweepFolder
) -> None:
    best, worse = make_record("t002", "complete", [90] * 9), make_record("t001", "complete", [95] * 9)
    pruned = make_record("t003", "pruned", [50])
    for record, shade, ticks in ((best, 50, (1, 3, 9)), (worse, 100, (1, 3, 9)), (pruned, 150, (1,))):
        for tick in ticks:
            wall.keep(folder, record.label, tick, grid(shade, 28))
    drawn = wall.draw(make_results([worse, best, pruned], facts=FACTS | {"image_size": "28x28x1"}))

    # Six images of 28 pixels fit into 170.
    one = (6 * 28) ** 2 - 28**2
    assert [hung(drawn, shade).sum() for shade in (50, 100, 150)] == [3 * one, 3 * one, one]
    rows = [np.flatnonzero(hung(drawn, shade).any(axis=1))[0] for shade in (50, 100, 150)]
    assert rows == sorted(rows)  # complete ones by FID, then the others


def test_a_picture_of_points_hangs_whole_and_nothing_kept_is_no_wall(
    make_record: MakeRecord, make_results: MakeResults, folder: SweepFolder
) -> None:
    results = make_results([make_record("t001", "complete", [9] * 9)], facts=FACTS | {"image_size": "2"})
    assert wall.draw(results) is None

    wall.keep(folder, "t001", 9, grid(50, 32))
    assert hung(wall.draw(results), 50).sum() == 256**2 - 32**2


def test_a_picture_smaller_than_its_grid_hangs_whole(
    make_record: MakeRecord, make_results: MakeResults, folder: SweepFolder
) -> None:
    wall.keep(folder, "t001", 9, picture(7))  # 8 by 8 pixels
    (tiny := folder.samples / "t002" / "00009.png").parent.mkdir()
    Image.new("L", (2, 2), 7).save(tiny)
    records = [make_record(label, "complete", [9] * 9) for label in ("t001", "t002")]

    assert wall.draw(make_results(records)) is not None


def test_the_table_of_trials_is_one_that_mlflow_shows(
    make_results: MakeResults, records: list[TrialRecord], folder: SweepFolder
) -> None:
    report.write(make_results(records))

    table = json.loads(folder.table.read_text())
    assert table["columns"][:4] == ["trial", "outcome", "verdict", "best_fid"]
    assert len(table["data"]) == 7 and table["data"][2][0] == "t003"


def test_several_sweeps_are_compared_where_they_are_comparable(
    make_record: MakeRecord, make_results: MakeResults, tmp_path: Path
) -> None:
    one = make_results(some(make_record, 12), *RATES, folder=SweepFolder(tmp_path / "gp-0001"))
    other = make_results(
        [make_record("t001", "complete", [60, 40, 30], seconds=30)],
        "train.budget_kimg=3",
        "search.gp_weight.high=50",
        folder=SweepFolder(tmp_path / "gp-0002"),
    )
    text = several.markdown([one, other])

    assert "The lowest FID, **30.0**, is that of t001 in gp-0002" in text
    assert "| train.budget_kimg | 9 | 3 |" in text and "| search.gp_weight.high | 100 | 50 |" in text
    assert "| search.gp_weight.low" not in text
    # t000 has 90 after 3 kimg; 90 core-seconds are all of the other and all nine ticks of it.
    assert "- gp-0001 t000 against gp-0002 t001 at 3 kimg: FID 90.0 and 30.0" in text
    assert "- gp-0001 t000 against gp-0002 t001 at 90 core-seconds: FID 50.0 and 30.0" in text
    assert "compared at | 1 kimg, 12 trials | -" in text

    path = several.write([one, other], tmp_path)
    assert path.name == "report-gp-0001-gp-0002.md"
    assert "gp-0002 t001" in path.with_suffix(".html").read_text()


def test_sweeps_measured_with_other_features_are_said_not_to_compare(
    make_results: MakeResults, records: list[TrialRecord]
) -> None:
    other = make_results(records, facts=FACTS | {"features_sha256": "00" * 32})

    assert "**Their FIDs do not compare**" in several.markdown([make_results(records), other])
