"""The main faults once more with the real trainer: what comes out is what came without them, tick by tick."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.faults.kill_plan import Plan
from tests.real_sweep import HERE, Sweep

TRIALS = 3
TIMED = {"core_seconds", "startup_seconds", "images_per_second"}


class BreakingSweep(Sweep):
    """A sweep of real digits, one trial at a time, that can be told to break."""

    def __init__(self, out: Path, *, cache: Path) -> None:
        super().__init__(out, trainer="tests.faults.breaking_trainer")
        self.plan = Plan(out / "plan")
        self.plan.folder.mkdir()
        self.plan.make()
        self.environment |= {"WGANGP_CACHE": str(cache), "KILL_PLAN": str(self.plan.folder)}

    def start(self, *more: str) -> Any:
        sizes = ["--set", "sweep.max_concurrent=1", "--set", "sweep.retries=0"]
        first = ["--space", str(HERE / "digits.yaml"), *sizes, "--trials", str(TRIALS)]
        return super().start(*([] if "--resume" in more else first), *more)

    def tell(self, what: str) -> None:
        """Break once: `raise` or `kill`."""
        (self.plan.folder / "break").write_text(what)

    @property
    def told(self) -> bool:
        return not (self.plan.folder / "break").exists()

    def attempts(self) -> dict[str, int]:
        return {label: len(trial.user_attrs["attempts"]) for label, trial in self.trials().items()}

    def curves(self) -> dict[str, Any]:
        """Settings, ending and all that was measured of each trial, but for what depends on the clock."""
        return {
            label: (
                trial.params,
                trial.state,
                {
                    key: {name: value for name, value in tick["metrics"].items() if name not in TIMED}
                    for key, tick in sorted(trial.user_attrs.items())
                    if key.startswith("tick_")
                },
            )
            for label, trial in self.trials().items()
        }

    def assert_all_is_well(self) -> None:
        self.assert_everything_agrees()
        self.assert_nothing_is_open(trials=TRIALS)


@pytest.fixture(scope="session")
def new(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], BreakingSweep]:
    cache = tmp_path_factory.mktemp("cache")
    return lambda: BreakingSweep(tmp_path_factory.mktemp("breaking"), cache=cache)


@pytest.fixture
def sweep(new: Callable[[], BreakingSweep]) -> BreakingSweep:
    return new()


@pytest.fixture(scope="session")
def undisturbed(new: Callable[[], BreakingSweep]) -> BreakingSweep:
    sweep = new()
    assert sweep.run() == 0, sweep.output
    sweep.assert_all_is_well()
    assert len(sweep.curves()["t001"][2]) == 4
    return sweep


def test_a_trial_that_raised_fails_and_resume_goes_on_from_its_checkpoint(
    sweep: BreakingSweep, undisturbed: BreakingSweep
) -> None:
    sweep.tell("raise")
    assert sweep.run() == 1, sweep.output
    assert sweep.told
    assert sweep.outcomes()["t001"] == "failed"
    assert sweep.trials()["t001"].user_attrs["last_error"] == "RuntimeError: told to"
    sweep.assert_everything_agrees()

    assert sweep.run("--resume", sweep.folder.name) == 0, sweep.output
    sweep.assert_all_is_well()
    assert sweep.attempts() == {"t001": 2, "t002": 1, "t003": 1}
    assert sweep.curves() == undisturbed.curves()


def test_a_worker_that_was_killed_is_replaced_and_goes_on_from_the_last_checkpoint(
    sweep: BreakingSweep, undisturbed: BreakingSweep
) -> None:
    sweep.tell("kill")
    assert sweep.run("--set", "sweep.retries=1") == 0, sweep.output
    assert sweep.told
    assert "died" in sweep.trials()["t001"].user_attrs["last_error"]
    sweep.assert_all_is_well()
    assert sweep.attempts() == {"t001": 2, "t002": 1, "t003": 1}
    assert sweep.curves() == undisturbed.curves()


def test_a_driver_killed_in_its_last_trial_then_while_a_checkpoint_is_copied_loses_nothing(
    sweep: BreakingSweep, undisturbed: BreakingSweep
) -> None:
    ticks = undisturbed.plan.passed.count("journal tick")
    sweep.plan.make("journal tick", count=ticks)
    assert sweep.run() == -9 and sweep.plan.died, sweep.output
    assert list(sweep.trials()) == ["t001", "t002", "t003"]
    sweep.plan.make("checkpoint copied", count=1, half=True)
    assert sweep.run("--resume", sweep.folder.name) == -9 and sweep.plan.died, sweep.output

    sweep.plan.make()
    assert sweep.run("--resume", sweep.folder.name) == 0, sweep.output
    sweep.assert_all_is_well()
    assert sweep.attempts() == {"t001": 1, "t002": 1, "t003": 3}
    assert sweep.curves() == undisturbed.curves()
