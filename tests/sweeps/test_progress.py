import io
from collections.abc import Callable

import pytest
from rich.console import Console

from sweeps.progress import ENDED_SHOWN, View
from sweeps.records import Ending, TrialRecord

MakeRecord = Callable[..., TrialRecord]
LONG = "python -m mlflow ui --backend-store-uri sqlite:////" + "very/long/path/" * 20 + "[bold]mlflow.db"


class Screen:
    """A view on a terminal or a file, and what stands there."""

    def __init__(self, *, terminal: bool, width: int = 100) -> None:
        self._file = io.StringIO()
        self.console = Console(file=self._file, force_terminal=terminal, width=width, record=terminal)
        self.view = View(self.console)

    @property
    def text(self) -> str:
        return self._file.getvalue()

    def begin(self, wanted: int = 4, finalist_runs: int = 0) -> View:
        self.view.begin(
            name="gp-0001",
            wanted=wanted,
            finalist_runs=finalist_runs,
            budget_kimg=9,
            expected_kimg=9,
            cores=2,
        )
        return self.view


@pytest.mark.parametrize("terminal", [True, False])
def test_a_line_is_never_wrapped_nor_read_as_markup(terminal: bool) -> None:
    screen = Screen(terminal=terminal, width=40)
    screen.view.print(LONG)

    assert screen.text == LONG + "\n"


def test_what_takes_time_is_said_once() -> None:
    screen = Screen(terminal=False)
    for line in ("starting Ray", "starting Ray", "reading data", "starting Ray"):
        screen.view.say(line)

    assert screen.text.splitlines() == [
        f"  {what} ..." for what in ("starting Ray", "reading data", "starting Ray")
    ]


def test_without_a_terminal_each_tick_and_end_is_one_plain_line(make_record: MakeRecord) -> None:
    screen = Screen(terminal=False, width=20)
    view = screen.begin()
    done, running = make_record("t001", "complete", [90, 80]), make_record("t002", "", [50, 70])
    lost = make_record("t003", "", [], last_error="killed")
    view.update([], [])
    view.update([done, running, lost], ["t002"])
    view.tick(running)
    view.ended(make_record("t004", "pruned", [99.96]))
    view.ended(lost)  # of attempts that died a warning tells
    view.ended(make_record("t003", "failed", [50]))

    tick, pruned = screen.text.splitlines()
    assert tick.startswith("t002  2.0/9 kimg  fid 70.0  best 50.0  [1 of 4 ended, about ")
    assert tick.endswith(" left]  gp_weight 0.761, n_critic 3")
    assert pruned == "t004  pruned  best 100.0"
    assert "\x1b" not in screen.text


def test_an_fid_that_is_not_known_is_a_dash(make_record: MakeRecord) -> None:
    screen = Screen(terminal=False)
    screen.begin().tick(make_record("t001", "", [float("nan")], ticks={1: {"core_seconds": 1}}))

    assert "fid -  best -" in screen.text


def test_a_terminal_shows_a_live_table_of_what_runs_and_the_best_that_ended(make_record: MakeRecord) -> None:
    screen = Screen(terminal=True)
    view = screen.begin(wanted=20)
    ended = [make_record(f"t{n:03d}", "complete", [500 - n], baseline=n == 12) for n in range(1, 13)]
    running = make_record("t013", "", [50, 70, 60])
    view.update([*ended, running], ["t013"])
    view.tick(running)  # the table says it
    view.ended(ended[0])

    table = screen.console.export_text()
    title, head, first, *others = [line.rstrip() for line in table.strip().splitlines()]
    assert title.startswith("gp-0001  12 of 20 ended")
    assert head.split() == ["trial", "state", "kimg", "FID", "best", "FID", "curve", "verdict", "settings"]
    assert " ".join(first.split()) == "t013 running 3/9 60.0 50.0 ▁▂▁ - gp_weight 0.761, n_critic 3"
    assert len(others) == ENDED_SHOWN
    assert [line.split()[0] for line in others] == [f"t{n:03d}" for n in range(12, 12 - ENDED_SHOWN, -1)]
    assert [" * " in line for line in (first, *others)] == [False, True, *[False] * (ENDED_SHOWN - 1)]
    assert "complete (baseline)" in others[0] and "(baseline)" not in others[1]
    view.close()


def test_a_trial_that_ended_before_its_curves_said_anything_says_why(make_record: MakeRecord) -> None:
    screen = Screen(terminal=True, width=120)
    pruned = make_record("t001", "pruned", [99], ending=Ending("pruned", "not among the best 1/3 at 9 kimg"))
    complete = make_record("t002", "complete", [90, 80, 70, 70, 70, 70])
    screen.begin().update([pruned, complete], [])

    text = screen.console.export_text()
    assert "not among the best 1/3 at..." in text and "plateaued" in text
    screen.view.close()


def test_where_letters_are_few_there_is_no_curve(make_record: MakeRecord) -> None:
    file = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    screen = Screen(terminal=True)
    screen.view = View(Console(file=file, force_terminal=True, width=100))
    screen.begin().update([make_record("t001", "complete", [90, 80, 70, 70])], [])
    screen.view.close()

    file.seek(0)
    assert "verdict" in file.read()


def test_a_trial_that_waits_to_be_tried_again_says_so(make_record: MakeRecord) -> None:
    screen = Screen(terminal=True)
    screen.begin().update([make_record("t001", "", [50])], [])

    assert "waiting" in screen.console.export_text()
    screen.view.close()


def test_the_live_table_goes_and_lines_stay(make_record: MakeRecord) -> None:
    screen = Screen(terminal=True)
    view = screen.begin()
    view.update([make_record("t001", "", [50])], ["t001"])
    view.close()
    view.close()
    before = screen.text
    view.tick(make_record("t001", "", [50]))

    assert "t001" in screen.text[len(before) :]


def test_a_table_has_its_headings_and_every_row_whole() -> None:
    screen = Screen(terminal=False, width=20)
    screen.view.table([["", "trial", "gp_weight"], ["1", "t003 baseline", "0.5" * 9], ["", "t001", "10"]])

    lines = [line.split() for line in screen.text.splitlines()]
    assert lines == [["trial", "gp_weight"], ["1", "t003", "baseline", "0.5" * 9], ["t001", "10"]]


def test_the_time_left_follows_from_the_speed_so_far_and_what_is_missing(make_record: MakeRecord) -> None:
    screen = Screen(terminal=False)
    view = screen.begin(wanted=4)
    running = make_record("t001", "", [50] * 6, seconds=20, baseline=True)
    view.update([running], ["t001"])
    view.tick(running)
    # 3 kimg of this one and 9 of each of three others, at 20 core-seconds a kimg, on 2 cores: 300 s
    assert "[0 of 4 ended, about 5 min left]" in screen.text

    view.update([running, make_record("t002", "pruned", [50] * 2, seconds=20)], ["t001"])
    view.tick(running)
    # 3 kimg of the baseline and (4 x 9 + 2) / 5 of each of two others: 182 s
    assert "[1 of 4 ended, about 3 min left]" in screen.text


def test_in_a_narrow_window_only_the_settings_give_way(make_record: MakeRecord) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, color_system=None, width=60, record=True)
    view = View(console)
    view.begin(name="gp-0001", wanted=4, finalist_runs=0, budget_kimg=9, expected_kimg=9, cores=2)
    view.update([make_record("t001", "complete", [407.5] * 9, baseline=True)], [])
    view.close()
    view.table([["trial", "outcome", "generator_lr"], ["t001 " + "x" * 60, "complete", "0.000123"]])
    text = console.export_text()
    assert "t001 *  complete (baseline)" in text and "9/9" in text and "407.5" in text
    assert f"t001 {'x' * 60}  complete      0.000123" in text  # folded by the window, not cut
