"""The kinds of search: a range of real numbers, a range of whole numbers, a list of choices."""

import json
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    field_validator,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue

from wgangp.rules import is_multiple
from wgangp.wording import Clash, show

Value = bool | int | float | str | list[Any] | dict[str, Any] | None
"""Whatever JSON can say."""
Whole = Annotated[int, Field(ge=-(2**31), le=2**31)]
"""No setting goes further, and no sum of two of them is too large for a float."""


class Section(BaseModel):
    """What all parts of a space file share: nothing is guessed, nothing unknown is passed over."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


_CONDITIONS: JsonSchemaValue = {"type": ["object", "null"], "minProperties": 1}


class Search(Section):
    """What all kinds share.

    Attributes:
        when: of other searched settings, the values with which this one matters; None: it always does.
    """

    when: Annotated[dict[str, list[Any]] | None, WithJsonSchema(_CONDITIONS)] = None

    @field_validator("when", mode="before")
    @classmethod
    def _lists(cls, when: Any) -> Any:
        """One value may be written without brackets."""
        if when is None:
            return None
        if not when or not isinstance(when, dict):
            got = show(when) if when else "none"
            raise ValueError(f"must be `setting: value` of another searched setting, got {got}; or remove it")
        return {field: values if isinstance(values, list) else [values] for field, values in when.items()}


class Range(Search):
    """Numbers from `low` to `high`, both included."""

    log: bool = False

    def check(self, low: float, high: float, step: float | None) -> None:
        if low >= high:
            raise Clash(
                f"low must be below high, got {low:g} and {high:g}; swap or widen them",
                fields=("low", "high"),
            )
        if self.log and low <= 0:
            raise Clash(
                f"low must be above 0 with log, got {low:g}; raise it or remove log", fields=("low", "log")
            )
        if self.log and step is not None:
            raise Clash("log and step cannot be combined; remove one", fields=("step", "log"))
        if step is not None and not is_multiple(high - low, step):
            raise Clash(
                f"high - low must be a multiple of step ({step:g}), got {high - low:g}",
                fields=("step", "low", "high"),
            )


class FloatRange(Range):
    type: Literal["float"]
    low: float
    high: float
    step: float | None = Field(None, gt=0)

    @model_validator(mode="after")
    def _sound(self) -> "FloatRange":
        self.check(self.low, self.high, self.step)
        return self

    def holds(self, value: Value) -> bool:
        """Whether a trial may be given `value`."""
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not self.low <= value <= self.high
        ):
            return False
        return self.step is None or value == self.low or is_multiple(value - self.low, self.step)

    def ends(self) -> list[Value]:
        """The values from which a field's own range and the machine's limits are checked."""
        return [self.low, self.high]


class IntRange(Range):
    type: Literal["int"]
    low: Whole
    high: Whole
    step: Annotated[Whole, Field(ge=1)] | None = None

    @model_validator(mode="after")
    def _sound(self) -> "IntRange":
        self.check(self.low, self.high, self.step)
        return self

    def holds(self, value: Value) -> bool:
        """Whether a trial may be given `value`."""
        if isinstance(value, bool) or not isinstance(value, int) or not self.low <= value <= self.high:
            return False
        return (value - self.low) % (self.step or 1) == 0

    def ends(self) -> list[Value]:
        """The values from which a field's own range and the machine's limits are checked."""
        return [self.low, self.low + (self.step or 1), self.high]


def _of_json(value: Any) -> Any:
    try:
        same = json.loads(json.dumps(value, allow_nan=False)) == value
    except (TypeError, ValueError):
        same = False
    if not same:
        raise ValueError(
            "must be a number, a word, true, false, null, or a list or mapping of them with words as keys,"
            f" got {show(value)}"
        )
    return value


class Choices(Search):
    type: Literal["categorical"]
    choices: list[Annotated[Any, BeforeValidator(_of_json)]]

    @field_validator("choices")
    @classmethod
    def _distinct(cls, choices: list[Value]) -> list[Value]:
        if not choices:
            raise ValueError("must hold at least one value, got []; add the values to choose from")
        repeated = [choice for index, choice in enumerate(choices) if choice in choices[:index]]
        if repeated:
            raise ValueError(f"must be distinct, got {show(repeated[0])} twice; remove one")
        return choices

    def holds(self, value: Value) -> bool:
        """Whether a trial may be given `value`."""
        return among(value, self.choices)

    def ends(self) -> list[Value]:
        """The values from which a field's own range and the machine's limits are checked."""
        return self.choices


def among(value: Value, choices: list[Value]) -> bool:
    """Whether `value` is one of `choices`, of the same type."""
    return any(value == choice and type(value) is type(choice) for choice in choices)


Searched = FloatRange | IntRange | Choices
KINDS: dict[str, type[Searched]] = {"float": FloatRange, "int": IntRange, "categorical": Choices}

_MARK = "json: "


def stored(value: Value) -> bool | int | float | str | None:
    """As Optuna's storages keep it: lists and mappings as text."""
    if isinstance(value, list | dict) or (isinstance(value, str) and value.startswith(_MARK)):
        return _MARK + json.dumps(value, sort_keys=True)
    return value


def restored(value: Any) -> Value:
    """What `stored` was given."""
    return json.loads(value[len(_MARK) :]) if isinstance(value, str) and value.startswith(_MARK) else value
