"""Tables as Markdown."""

from sweeps.markdown import table


def test_columns_of_numbers_are_right_aligned_and_gaps_are_no_words() -> None:
    rows = [
        ["", "trial", "FID", "gp_weight", "choice", "share", "none"],
        ["1", "t001", "24.3", "-", "3", "79%", "-"],
        ["", "t002 baseline", "inf", "5e-05", "r1", "1%", ""],
    ]
    assert table(rows) == [
        "|  | trial | FID | gp_weight | choice | share | none |",
        "| ---: | --- | ---: | ---: | --- | ---: | --- |",
        "| 1 | t001 | 24.3 | - | 3 | 79% | - |",
        "|  | t002 baseline | inf | 5e-05 | r1 | 1% |  |",
    ]


def test_a_bar_within_a_cell_ends_no_cell_and_a_heading_may_stand_alone() -> None:
    assert table([["a|b", "c"]]) == ["| a\\|b | c |", "| --- | --- |"]
