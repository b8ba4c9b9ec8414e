"""The driver is ended by SIGKILL at planned moments; `--resume` then ends the sweep as if it had not been."""

import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mlflow import MlflowClient

from tests.faults.conftest import ScriptedSweep
from tests.faults.kill_plan import FILES, Plan
from tests.faults.warm import Starter

SPACE = Path(__file__).with_name("killed.yaml")
TRIALS = 6
DIVERGES = {4: [{"tick": 2, "do": "diverge"}]}
BREAKS = DIVERGES | {3: [{"tick": 3, "do": "raise", "times": 1}]}
"""By gp_weight, for which see the space. The third trial fails, so that a resume has to copy it."""

ONCE = ["study", "space", "scored_with", "trials", "starts"]
ONCE += ["constraints:diverged", "last_error", "fail", "copy"]
OFTEN = ["trial", "attempts", "value", "rung", "tick", "checkpoints", "complete", "pruned"]
JOURNAL = [f"journal {kind}" for kind in ONCE + OFTEN]
"""What Optuna's journal is told, each record a write."""
OF_A_FAILURE = ["journal last_error", "journal fail", "journal copy"]
"""These come only if a trial fails."""
OUTBOX = ["picture kept", "line kept"]
MLFLOW = [
    *("run made", "line sent", "values logged", "picture sent", "thumbnail sent", "pictures tagged"),
    *("run ended", "file sent", "mark written", "mark moved", "picture dropped"),
]
CHECKPOINTS = ["checkpoint copied", "checkpoint dropped"]
MAKING = ["space named", "features frozen", "id named", "journal study", "journal trials", "store remembered"]
REPORT = ["wall hung", "table written", "report written", "page written"]
"""As trials end, and at the end."""
CLOSING = ["winner named", "winner scored", "scores written", *REPORT, "Ray shut down"]
MENDING = ["stale lock removed", "torn line kept", "torn line cut"]
WITH_A_HALF = {
    *JOURNAL,
    *("picture kept", "line kept", "mark written", "checkpoint copied", "checkpoint dropped"),
    *("features frozen", "winner scored", "torn line kept"),
}


class KilledSweep(ScriptedSweep):
    """A sweep of `killed.yaml` whose driver can be planned to die."""

    def __init__(
        self, out: Path, *, starter: Starter, cluster: dict[str, str], database: Path | None = None
    ) -> None:
        super().__init__(out, name="killed", trainer="tests.faults.watched_trainer")
        self.environment |= cluster | {"KILL_PLAN": str(self.cache)}
        self.plan, self.deaths, self.starter = Plan(self.cache), 0, starter
        self.plan.make()
        self.script(faults=BREAKS)
        if database:
            shutil.copy(database, out / "mlflow.db")

    def run(self, *arguments: str) -> int:
        status = super().run(*arguments)
        assert "Traceback" not in self.output, self.output
        return status

    def begin(self, number: int, *more: str) -> int:
        """The first start (0), or a resume; its exit status."""
        which = ["--resume", self.folder.name] if number else ["--space", str(SPACE)]
        return self.run(*which, *more)

    def begin_undisturbed(self, number: int) -> int:
        self.plan.make()
        return self.begin(number)

    def die(
        self, number: int, moment: str, *, count: int = 1, half: bool = False, more: Sequence[str] = ()
    ) -> None:
        """A start that dies at a moment."""
        self.plan.make(moment, count=count, half=half)
        status = self.begin(number, *more)
        assert (status, self.plan.died) == (-9, True), f"{moment} never came:\n{self.output}"
        self.deaths += 1

    def resume_to_the_end(self) -> None:
        """Resume as long as trials fail that would not have if the driver had lived."""
        for _ in range(2):
            status = self.begin_undisturbed(1)
            if status == 0:
                break
        assert status == 0, self.output

    def story(self) -> dict[str, Any]:
        """What came of each trial, leaving out what depends on the clock and on how often it was started."""
        return {
            label: (
                trial.params,
                trial.user_attrs.get("baseline", False),
                trial.value if trial.state.name == "COMPLETE" else trial.state.name,
                {key: _timeless(value) for key, value in sorted(trial.user_attrs.items()) if "tick_" in key},
            )
            for label, trial in self.trials().items()
        }


def _timeless(tick: dict[str, Any]) -> dict[str, Any]:
    return tick | {"metrics": {name: v for name, v in tick["metrics"].items() if "seconds" not in name}}


@dataclass(frozen=True)
class Undisturbed:
    """What came of it if nobody killed it: in each start, and of each trial."""

    moments: list[list[str]]
    story: dict[str, Any]

    def place(self, moment: str, which: str) -> tuple[int, int]:
        """In which start, and there for which time, a moment comes first, or last."""
        starts = [number for number, moments in enumerate(self.moments) if moment in moments]
        assert starts, f"{moment} never comes"
        start = starts[0] if which == "first" else starts[-1]
        return start, 1 if which == "first" else self.moments[start].count(moment)


@pytest.fixture(scope="session")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty database of MLflow, which takes seconds to make."""
    path = tmp_path_factory.mktemp("database") / "mlflow.db"
    MlflowClient(tracking_uri=f"sqlite:///{path}").search_experiments()
    return path


@pytest.fixture(scope="session")
def new(
    tmp_path_factory: pytest.TempPathFactory, starter: Starter, cluster: dict[str, str], database: Path
) -> Callable[[], KilledSweep]:
    def new() -> KilledSweep:
        out = tmp_path_factory.mktemp("killed")
        return KilledSweep(out, starter=starter, cluster=cluster, database=database)

    return new


@pytest.fixture
def sweep(new: Callable[[], KilledSweep]) -> Iterator[KilledSweep]:
    made = new()
    yield made
    shutil.rmtree(made.out)


def let_live(sweep: KilledSweep, *statuses: int) -> Undisturbed:
    """Start a sweep and resume it, with these exit statuses."""
    moments = []
    for number, status in enumerate(statuses):
        assert sweep.begin_undisturbed(number) == status, sweep.output
        moments.append(sweep.plan.passed)
    assert_all_is_well(sweep)
    assert Counter((tick["gp_weight"], tick["tick"]) for tick in sweep.ticks()).most_common(1)[0][1] == 1
    return Undisturbed(moments, sweep.story())


@pytest.fixture(scope="session")
def undisturbed(new: Callable[[], KilledSweep]) -> Undisturbed:
    """One start, in which a trial fails, and one resume, which copies it."""
    return let_live(new(), 1, 0)


@pytest.fixture(scope="session")
def unbroken(new: Callable[[], KilledSweep]) -> Undisturbed:
    """One start, in which no trial fails."""
    sweep = new()
    sweep.script(faults=DIVERGES)
    return let_live(sweep, 0)


def assert_all_is_well(sweep: KilledSweep, *, at_once: int = 1) -> None:
    """What is promised of a sweep that was resumed to its end."""
    sweep.assert_everything_agrees()
    sweep.assert_nothing_is_open(trials=TRIALS)
    trained = Counter((tick["gp_weight"], tick["tick"]) for tick in sweep.ticks())
    again = sum(times - 1 for times in trained.values())
    assert again <= at_once * sweep.deaths, trained


def killed_and_resumed(
    sweep: KilledSweep, undisturbed: Undisturbed, *deaths: tuple[int, str, int, bool]
) -> None:
    """Die as planned, in turn, then go on to the end: (start, moment, count, half) of each death."""
    first = deaths[0][0]
    for number in range(first):
        sweep.begin_undisturbed(number)
    for number, (_, moment, count, half) in enumerate(deaths):
        sweep.die(first + number, moment, count=count, half=half)
    sweep.resume_to_the_end()
    assert_all_is_well(sweep)
    assert sweep.story() == undisturbed.story


def test_the_table_of_moments_is_honest(undisturbed: Undisturbed, unbroken: Undisturbed) -> None:
    """Each moment of the table comes in a sweep, and whatever comes is in the table."""
    came = {moment for moments in undisturbed.moments for moment in moments}
    known = {*JOURNAL, *OUTBOX, *MLFLOW, *CHECKPOINTS, *MAKING, *CLOSING}
    assert came == known | {"folder claimed"}
    assert set(FILES.values()) <= known | {"folder claimed", *MENDING}
    times = Counter(moment for moments in undisturbed.moments for moment in moments)
    assert {moment for moment in JOURNAL if times[moment] == 1} == {f"journal {kind}" for kind in ONCE}
    assert known - {moment for moments in unbroken.moments for moment in moments} == set(OF_A_FAILURE)
    assert unbroken.story == undisturbed.story
    outcomes = {label: state for label, (_, _, state, _) in undisturbed.story.items()}
    assert [outcomes[label] for label in ("t002", "t004", "t005")] == ["PRUNED"] * 3
    assert len(undisturbed.story["t003"][3]) == len(undisturbed.story["t006"][3]) == 4


PLACES = [
    (moment, which)
    for moment in JOURNAL + OUTBOX + MLFLOW + CHECKPOINTS
    for which in ("first", "last")
    if which == "first" or moment.removeprefix("journal ") not in ONCE
]


@pytest.mark.parametrize(("moment", "which"), PLACES, ids=lambda word: word)
def test_killed_at_a_moment(
    sweep: KilledSweep, undisturbed: Undisturbed, unbroken: Undisturbed, moment: str, which: str
) -> None:
    """Before the first, then half-way through the next, if it has a half; or so in the last."""
    if moment in OF_A_FAILURE:
        times = 1 if moment == "journal copy" else 2
        sweep.script(faults=BREAKS | {3: [{"tick": 3, "do": "raise", "times": times}]})
        start, count = undisturbed.place(moment, which)
    else:
        sweep.script(faults=DIVERGES)
        start, count = unbroken.place(moment, which)
    half = moment in WITH_A_HALF
    if which == "first":
        killed_and_resumed(sweep, undisturbed, (start, moment, count, False), (start + 1, moment, 1, half))
    else:
        killed_and_resumed(sweep, undisturbed, (start, moment, count, half))


def test_killed_at_each_step_of_making_a_sweep(sweep: KilledSweep, undisturbed: Undisturbed) -> None:
    """Each start dies a step later, from a folder with nothing but its space to a study without trials."""
    sweep.die(0, MAKING[0])
    assert not (sweep.folder / "space.yaml").exists()
    sweep.folder = sweep.out / "killed-0002"  # what has no space is no sweep, and is left alone
    sweep.die(0, MAKING[1], half=True)
    for moment in MAKING[2:]:
        sweep.die(1, moment, half=moment.startswith("journal"))
    assert sweep.ticks() == []
    sweep.resume_to_the_end()
    assert_all_is_well(sweep)
    assert sweep.story() == undisturbed.story


def test_killed_before_its_folder_holds_anything_a_sweep_is_started_anew(
    sweep: KilledSweep, undisturbed: Undisturbed
) -> None:
    sweep.die(0, "folder claimed")
    assert sweep.begin_undisturbed(1) == 2
    assert "there is no such sweep" in sweep.output
    assert sweep.begin_undisturbed(0) == 1, sweep.output
    sweep.folder = sweep.out / "killed-0002"
    sweep.resume_to_the_end()
    assert sweep.story() == undisturbed.story


@pytest.mark.parametrize("half", [False, True], ids=["before", "half-way"])
def test_killed_at_each_step_of_closing_a_sweep(
    sweep: KilledSweep, undisturbed: Undisturbed, half: bool
) -> None:
    """Each start dies a step later, with all trials ended: none is trained again."""
    sweep.script(faults=DIVERGES)
    for number, moment in enumerate(CLOSING):
        sweep.die(number, moment, half=half and moment in WITH_A_HALF)
    sweep.resume_to_the_end()
    assert_all_is_well(sweep)
    assert len(sweep.ticks()) == sum(len(ticks) for *_, ticks in undisturbed.story.values())
    assert sweep.story() == undisturbed.story
    parent, _ = sweep.runs()
    assert parent.data.tags["outcome"] == "complete"
    assert parent.data.tags["winner_fid_fresh"] == "1.0"
    assert "(t006) is the best of 6 trials" in (sweep.folder / "report.md").read_text()


def test_killed_while_it_mends_a_torn_journal(sweep: KilledSweep, undisturbed: Undisturbed) -> None:
    """Before and half-way through each step of mending, then before the first write after it."""
    sweep.die(0, "journal tick", count=3, half=True)
    for number, moment in enumerate(MENDING):
        sweep.die(1 + number, moment)
    sweep.die(1, "torn line kept", half=True)
    sweep.die(1, "journal attempts")
    kept = (sweep.folder / "study.log.torn").read_text()
    assert kept.startswith('{"op_code": 8') and '"tick_3"' in kept
    sweep.resume_to_the_end()
    assert_all_is_well(sweep)
    assert sweep.story() == undisturbed.story


@pytest.mark.parametrize("within", ["journal rung", "journal tick"])
@pytest.mark.parametrize("moment", ["journal fail", "journal copy"])
def test_killed_within_a_report_then_as_its_trial_is_replaced(
    sweep: KilledSweep, undisturbed: Undisturbed, within: str, moment: str
) -> None:
    """A copy takes the place of a trial whose value, or rung, is there without its tick; twice here."""
    sweep.die(0, within, count=2)
    sweep.die(1, moment)
    sweep.die(1, within)
    sweep.die(1, moment, half=True)
    sweep.resume_to_the_end()
    assert_all_is_well(sweep)
    assert sweep.story() == undisturbed.story


@pytest.mark.parametrize("count", [1, 10, 66])
def test_killed_while_mlflow_makes_its_tables(
    sweep: KilledSweep, undisturbed: Undisturbed, count: int
) -> None:
    (sweep.out / "mlflow.db").unlink()
    sweep.die(0, "table of MLflow made", count=count)
    sweep.resume_to_the_end()
    assert_all_is_well(sweep)


def test_killed_again_and_again_with_two_at_once(sweep: KilledSweep) -> None:
    """What is proposed and pruned may then depend on who was faster; what was promised may not."""
    two = ["--set", "sweep.max_concurrent=2"]
    sweep.die(0, "checkpoint copied", count=3, half=True, more=two)
    for moment in ("journal tick", "journal checkpoints", "picture kept", "checkpoint dropped", "line sent"):
        sweep.die(1, moment, count=2)
    sweep.resume_to_the_end()
    assert_all_is_well(sweep, at_once=2)
