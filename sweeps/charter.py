"""What a sweep was started with and is held to, kept as attributes of its Optuna study.

space          the values of its space file
trials         how many it is to have in all
scored_with    digests of data and features
starts         versions and commit of its starts, where they changed; attempts refer to them by place
"""

import optuna

from sweeps.space import Space
from wgangp.errors import UserError


def note_space(study: optuna.Study, space: Space) -> None:
    """Keep the space at the first start."""
    if "space" not in study.user_attrs:
        study.set_user_attr("space", space.values())


def trials_wanted(study: optuna.Study, space: Space, *, extended_to: int | None) -> int:
    """How many trials are wanted in all; that only grows.

    Raises:
        UserError: `extended_to` is less than before.
    """
    known = study.user_attrs.get("trials")
    before = known or space.sweep.trials
    check_growth(before, extended_to=extended_to)
    wanted = before if extended_to is None else extended_to
    if wanted != known:
        study.set_user_attr("trials", wanted)
    return wanted


def check_growth(before: int, *, extended_to: int | None) -> None:
    """Raises: UserError, if a sweep of `before` trials would become smaller."""
    if extended_to is not None and extended_to < before:
        raise UserError(
            f"--trials: must be at least the {before} trials of this sweep, got {extended_to}; it only grows."
        )


def begin(study: optuna.Study, under: dict[str, str]) -> tuple[int, dict[str, str]]:
    """Note the conditions of a start; their place in `starts`, and the conditions of the start before."""
    starts = study.user_attrs.get("starts", [])
    before = starts[-1] if starts else under
    if not starts or before != under:
        starts = [*starts, under]
        study.set_user_attr("starts", starts)
    return len(starts) - 1, before


def hold_to(study: optuna.Study, facts: dict[str, str], *, sweep: str) -> None:
    """Note what trials are scored with at the first start, and hold later starts to it.

    Raises:
        UserError: with a line for each that is another now.
    """
    known = study.user_attrs.get("scored_with")
    if known is None:
        study.set_user_attr("scored_with", facts)
        return
    problems = [
        f"{sweep}: {name}: must be {known.get(name)} as its trials were scored with, got {value}."
        " Put back what was there, or start a new sweep."
        for name, value in facts.items()
        if value != known.get(name)
    ]
    if problems:
        raise UserError(*problems)
