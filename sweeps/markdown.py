"""Parts of a Markdown page, as lines."""

import re
from typing import Any


def section(title: str, lines: list[str]) -> list[str]:
    return [f"## {title}", "", *lines, ""]


def items(lines: list[str]) -> list[str]:
    return [f"- {line}" for line in lines]


def table(rows: list[list[str]]) -> list[str]:
    """The first row is the heading; columns of numbers are right-aligned."""
    head, *rest = [[each.replace("|", "\\|") for each in row] for row in rows]
    aligned = ["---:" if _numbers(column) else "---" for column in zip(*rest, strict=True)]
    return [f"| {' | '.join(row)} |" for row in (head, aligned or ["---"] * len(head), *rest)]


def _numbers(column: tuple[str, ...]) -> bool:
    """Whether there are numbers in it, and nothing else but gaps."""
    said = [each for each in column if each not in ("", "-")]
    return bool(said) and all(re.fullmatch(r"[-+]?(\d[\d.,]*(e[-+]?\d+)?|inf|nan)%?", each) for each in said)


def cell(value: Any) -> str:
    """Any value of a space file in a cell."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)
