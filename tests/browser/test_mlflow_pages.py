"""What a person sees of a finished sweep in MLflow's pages, in a real browser without a network."""

import json
import re

import pytest
from playwright.sync_api import Locator, Page, expect

from sweeps import shared_view
from tests.processes import until
from tests.real_sweep import Sweep

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SEARCHED = ["gp_weight", "n_critic", "critic_lr", "generator_lr", "batch_size", "optimizer"]


def experiment(sweep: Sweep) -> str:
    (found,) = [one for one in sweep.client().search_experiments() if one.name == "pages"]
    return found.experiment_id


def run_id(sweep: Sweep, outcome: str) -> str:
    label = next(label for label, how in sweep.outcomes().items() if how == outcome)
    return sweep.runs()[1][label].info.run_id


def names(page: Page) -> list[str]:
    """Of the runs in the table, from the top."""
    found = page.locator(".ag-pinned-left-cols-container [role=row]").all_inner_texts()
    return [match[0] for text in found if (match := re.search(r"pages-0001(-t\d+)?", text))]


def cells(page: Page, column: str) -> list[str]:
    """Of a column of the table, from the top."""
    rows = page.locator(".ag-center-cols-container [role=row]").all()
    rows.sort(key=lambda row: int(row.get_attribute("row-index") or 0))
    return [row.locator(f'[col-id*="{column}"]').first.inner_text() for row in rows]


def opened(page: Page, address: str, finished: Sweep, *, more: str = "") -> Page:
    """The view that the sweep's last lines lead to."""
    where = shared_view.address(experiment(finished), sweep="pages-0001")
    assert f"then open http://127.0.0.1:5000/{where}" in finished.output
    page.goto(f"{address}/{where}{more}")
    expect(page.get_by_text("8 matching runs")).to_be_visible()
    return page


def searched_for(page: Page, words: str) -> None:
    box = page.get_by_placeholder("metrics.rmse")
    box.fill(words)
    box.press("Enter")


def test_the_experiment_lists_the_sweep_with_its_trials_nested(
    page: Page, address: str, finished: Sweep
) -> None:
    page.goto(f"{address}/#/experiments/{experiment(finished)}/runs?workflowType=machine_learning")
    expect(page.get_by_text("9 matching runs")).to_be_visible()
    rows = page.locator(".ag-pinned-left-cols-container [role=row]")
    expect(rows).to_have_count(1)
    assert names(page) == ["pages-0001"]

    rows.locator("button[data-component-id*=runnamecellrenderer]").first.click()
    expect(rows).to_have_count(9)
    assert names(page)[0] == "pages-0001" and set(names(page)[1:]) == {
        f"pages-0001-t00{number}" for number in range(1, 9)
    }


def test_the_view_of_a_sweep_has_what_a_person_needs_first_and_the_best_on_top(
    page: Page, address: str, finished: Sweep
) -> None:
    opened(page, address, finished)
    expect(page.locator(".ag-pinned-left-cols-container [role=row]")).to_have_count(8)

    heads = page.locator(".ag-header-row-column [role=columnheader][aria-colindex]").all()
    places = {head.inner_text(): int(head.get_attribute("aria-colindex") or 0) for head in heads}
    first = ["best_fid", "outcome", "verdict", *SEARCHED]
    assert [name for name in sorted(places, key=places.__getitem__) if name in first] == first
    assert places["best_fid"] < places["fid"] and not places.keys() & {"seed", "adam_beta1"}
    fids = [float(text) for text in cells(page, "best_fid") if text != "-"]
    assert len(fids) >= 3 and fids == sorted(fids)
    assert not page.get_by_text("NaN").count()


def test_trials_are_filtered_by_their_outcome(page: Page, address: str, finished: Sweep) -> None:
    opened(page, address, finished)
    outcomes = list(finished.outcomes().values())

    for outcome in ("diverged", "failed", "complete"):
        searched_for(page, f"tags.outcome = '{outcome}' and tags.trial LIKE 't%'")
        count = outcomes.count(outcome)
        expect(page.get_by_text(f"{count} matching run")).to_be_visible()
        expect(page.locator(".ag-pinned-left-cols-container [role=row]")).to_have_count(count)


def test_parallel_coordinates_scatter_and_curves_over_images_seen_are_drawn(
    page: Page, address: str, finished: Sweep
) -> None:
    opened(page, address, finished, more="&compareRunsMode=CHART")

    parallel = card(page, "Parallel Coordinates")
    for axis in (*SEARCHED, "best_fid"):
        expect(parallel.get_by_text(axis, exact=True).first).to_be_attached()
    scatter = card(page, "critic_lr vs. best_fid")
    expect(scatter.locator(".scatterlayer path.point").first).to_be_attached()
    expect(page.get_by_text("Over images seen")).to_be_attached()
    curves = card(page, "fid")
    expect(curves.get_by_text("Step", exact=True)).to_be_attached()
    # Critic steps and batches differ, and all curves end at the budget of 12 kimg.
    expect(curves.locator(".xtick text").last).to_have_text(re.compile("1[02]k"))


def card(page: Page, title: str) -> Locator:
    """The chart with this title, in view, for it is drawn only then."""
    heading = page.get_by_role("heading", name=title, exact=True)
    page.get_by_test_id("experiment-view-compare-runs-chart-area").hover()

    def reached() -> bool:
        if heading.count():
            return True
        page.mouse.wheel(0, 300)
        page.wait_for_timeout(300)
        return False

    until(reached)
    heading.first.scroll_into_view_if_needed()
    return page.locator('[data-testid="experiment-view-compare-runs-card"]').filter(has=heading).first


def test_selected_trials_are_compared(page: Page, address: str, finished: Sweep) -> None:
    opened(page, address, finished)
    rows = page.locator(".ag-pinned-left-cols-container [role=row]")
    for row in (0, 1):
        rows.nth(row).locator("input[type=checkbox]").first.check()
    page.get_by_test_id("runs-compare-button").click()

    expect(page.get_by_text("Comparing 2 Runs from 1 Experiment")).to_be_visible()
    expect(page.get_by_text("Parallel Coordinates Plot")).to_be_visible()


def test_samples_of_all_trials_stand_side_by_side_at_one_step(
    page: Page, address: str, finished: Sweep
) -> None:
    opened(page, address, finished, more="&compareRunsMode=CHART")
    samples = card(page, "samples")
    pictures = samples.locator("img")
    drawn = [run for run in finished.runs()[1].values() if "mlflow.loggedImages" in run.data.tags]
    expect(pictures).to_have_count(len(drawn))
    for picture in pictures.all():
        expect(picture).not_to_have_js_property("naturalWidth", 0)  # as it has until it is loaded
    expect(samples.get_by_role("spinbutton")).to_have_value("3000")

    samples.get_by_role("slider").focus()
    page.keyboard.press("ArrowRight")
    expect(samples.get_by_role("spinbutton")).to_have_value("6000")
    longer = [trial for trial in finished.trials().values() if "tick_2" in trial.user_attrs]
    expect(samples.get_by_text("No image logged at this step")).to_have_count(len(drawn) - len(longer))


@pytest.mark.parametrize("outcome", ["diverged", "failed", "pruned", "complete"])
def test_a_trial_opens_whatever_became_of_it(outcome: str, page: Page, address: str, finished: Sweep) -> None:
    page.goto(f"{address}/#/experiments/{experiment(finished)}/runs/{run_id(finished, outcome)}")

    expect(page.get_by_text("About this run")).to_be_visible()
    expect(page.get_by_role("status", name="outcome", exact=True)).to_contain_text(outcome)
    assert not page.get_by_text("Something went wrong").count()


def test_the_sweep_s_run_holds_report_table_and_wall(page: Page, address: str, finished: Sweep) -> None:
    parent, _ = finished.runs()
    at = f"{address}/#/experiments/{experiment(finished)}/runs/{parent.info.run_id}/artifacts"

    page.goto(f"{at}/report.html")
    report = page.frame_locator("iframe").first
    expect(report.get_by_role("heading", name="pages-0001")).to_be_visible()
    expect(report.locator(".plotly-graph-div").first).to_be_attached()
    tables = json.loads(parent.data.tags["mlflow.loggedArtifacts"])
    assert tables == [{"path": "trials.json", "type": "table"}]
    page.goto(f"{at}/wall.png")
    picture = page.locator("img").last
    expect(picture).to_be_visible()
