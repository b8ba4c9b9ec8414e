"""The kinds of search: a range of real numbers, a range of whole numbers, a list of choices."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from wgangp.config import is_multiple

Value = bool | int | float | str | None


class Section(BaseModel):
    """What all parts of a space file share: nothing is guessed, nothing unknown is passed over."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Range(Section):
    """Numbers from `low` to `high`, both included."""

    log: bool = False

    def check(self, low: float, high: float, step: float | None) -> None:
        if low >= high:
            raise ValueError(f"low must be below high, got {low:g} and {high:g}; swap or widen them")
        if self.log and low <= 0:
            raise ValueError(f"low must be above 0 with log, got {low:g}; raise it or remove log")
        if self.log and step is not None:
            raise ValueError("log and step cannot be combined; remove one")
        if step is not None and not is_multiple(high - low, step):
            raise ValueError(f"high - low must be a multiple of step ({step:g}), got {high - low:g}")


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
    low: int
    high: int
    step: int | None = Field(None, ge=1)

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


class Choices(Section):
    type: Literal["categorical"]
    choices: list[Value] = Field(min_length=1)

    @field_validator("choices")
    @classmethod
    def _distinct(cls, choices: list[Value]) -> list[Value]:
        if len({(type(choice), choice) for choice in choices}) < len(choices):
            raise ValueError("choices must be distinct; remove the repeated one")
        return choices

    def holds(self, value: Value) -> bool:
        """Whether a trial may be given `value`."""
        return any(value == choice and type(value) is type(choice) for choice in self.choices)

    def ends(self) -> list[Value]:
        """The values from which a field's own range and the machine's limits are checked."""
        return self.choices


Searched = FloatRange | IntRange | Choices
KINDS: dict[str, type[Searched]] = {"float": FloatRange, "int": IntRange, "categorical": Choices}
