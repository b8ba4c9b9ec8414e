"""Parts of a Markdown page, as lines."""

from typing import Any


def section(title: str, lines: list[str]) -> list[str]:
    return [f"## {title}", "", *lines, ""]


def items(lines: list[str]) -> list[str]:
    return [f"- {line}" for line in lines]


def table(rows: list[list[str]]) -> list[str]:
    """The first row is the heading."""
    head, *rest = [[each.replace("|", "\\|") for each in row] for row in rows]
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rest)]


def cell(value: Any) -> str:
    """Any value of a space file in a cell."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)
