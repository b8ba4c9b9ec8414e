"""The command line as a stranger types it: from another directory, with nothing installed."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sweeps import space_file
from sweeps.folder import SweepFolder, claim
from wgangp import settings_file

ROOT = Path(__file__).resolve().parents[2]
RUN = ROOT / "sweeps" / "run.py"
SPACE = "search: {gp_weight: {type: float, low: 0.1, high: 100, log: true}}\nsweep: {trials: 4}\n"
WITHOUT = ("ray", "optuna", "mlflow", "tensorflow", "keras", "numpy")

Done = subprocess.CompletedProcess[str]
Type = Callable[..., Done]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The directory in which commands are typed."""
    path = tmp_path / "home"
    path.mkdir()
    return path


@pytest.fixture
def typed(home: Path) -> Type:
    """Runs `python .../sweeps/run.py` with these arguments in `home`."""

    def typed(*arguments: str | Path, **environment: str) -> Done:
        kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "MLFLOW_TRACKING_URI")}
        command = [sys.executable, RUN, *arguments]
        return subprocess.run(command, cwd=home, env=kept | environment, capture_output=True, text=True)

    return typed


@pytest.fixture
def sweep(home: Path) -> SweepFolder:
    """A sweep that was started with SPACE as gp.yaml in `home`."""
    (home / "gp.yaml").write_text(SPACE)
    folder = claim(home / "runs", "gp")
    settings_file.dump(space_file.load(home / "gp.yaml").values(), folder.space)
    return folder


def refused(done: Done) -> list[str]:
    """The lines of a mistake: exit status 2, all on standard error, no traceback."""
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    return done.stderr.splitlines()


def test_help_lists_the_options(typed: Type) -> None:
    done = typed("--help")

    assert (done.returncode, done.stderr) == (0, "")
    for option in ("--space", "--resume", "--trials", "--set", "--out", "--check", "--offline"):
        assert option in done.stdout


@pytest.mark.parametrize("arguments", [["--help"], ["--space", "gp.yaml", "--check", "--offline"]])
def test_help_and_the_offline_check_import_nothing_heavy(home: Path, arguments: list[str]) -> None:
    code = (
        "import json, runpy, sys; sys.argv = json.loads(sys.argv[1])\n"
        "try: runpy.run_path(sys.argv[0], run_name='__main__')\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps([str(RUN), *arguments])],
        cwd=home,
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )

    imported = json.loads(done.stdout.splitlines()[-1])
    assert "argparse" in imported and not set(imported) & set(WITHOUT)


def test_the_offline_check_of_a_sound_space_says_so_and_leaves_nothing(typed: Type, home: Path) -> None:
    done = typed("--space", "gp.yaml", "--check", "--offline")

    assert (done.returncode, done.stdout, done.stderr) == (0, "gp.yaml: no mistakes found in the text.\n", "")
    assert list(home.iterdir()) == []


def test_a_bare_name_is_looked_up_here_first_and_then_among_the_spaces_that_ship(
    typed: Type, home: Path
) -> None:
    assert typed("--space", "gp.yaml", "--check", "--offline").returncode == 0
    (home / "gp.yaml").write_text("serch: {}")
    here = ["gp.yaml:1: serch: unknown setting. Did you mean 'search'?"]
    here += ["gp.yaml: search: must name at least one setting to search."]
    assert refused(typed("--space", "gp.yaml", "--check", "--offline")) == here
    assert refused(typed("--space", home / "gp.yaml", "--check", "--offline")) == here
    shipped = ROOT / "search_spaces" / "gp.yaml"
    assert typed("--space", shipped, "--check", "--offline").returncode == 0
    for absent in ("other.yaml", "search_spaces/gp.yaml"):
        said = f"{absent}: cannot be read: No such file or directory. Check the path."
        assert refused(typed("--space", absent)) == [said]


@pytest.mark.parametrize("name", ["sweeps/__init__.py", "wgangp.py"])
def test_a_folder_whose_modules_would_be_taken_for_ours_is_refused(
    typed: Type, home: Path, name: str
) -> None:
    (home / "sweeps").mkdir()  # without code it does no harm
    (home / name).touch()

    (line,) = refused(typed("--space", "gp.yaml", "--check"))
    assert line.startswith(
        f"{home}: holds a Python package {name.partition('/')[0].removesuffix('.py')}, which"
    )
    assert line.endswith("; start from another folder.")


@pytest.mark.parametrize("check", [["--check", "--offline"], ["--check"], []])
def test_all_mistakes_of_a_space_and_its_overrides_are_said_and_nothing_is_made(
    typed: Type, home: Path, check: list[str]
) -> None:
    (home / "gp.yaml").write_text(SPACE + "train: {widht: 3}\nsampler: {name: bohb}\n")
    done = typed("--space", "gp.yaml", *check, "--set", "train.seed=-1", "--trials", "0")

    assert refused(done) == [
        "gp.yaml:4: sampler.name: must be 'tpe', 'random', 'qmc', 'gp' or 'cmaes', got 'bohb'",
        "--set sweep.trials=0: sweep.trials: must be greater than or equal to 1, got 0",
        "--set train.seed=-1: train.seed: must be greater than or equal to 0, got -1",
        "gp.yaml:3: train.widht: unknown setting. Did you mean 'width'?",
    ]
    assert [path.name for path in home.iterdir()] == ["gp.yaml"]


@pytest.mark.parametrize("check", [["--check", "--offline"], []])
def test_a_store_mlflow_no_longer_writes_is_refused_before_anything_starts(
    typed: Type, home: Path, check: list[str]
) -> None:
    (said,) = refused(typed("--space", "gp.yaml", *check, MLFLOW_TRACKING_URI="./mlruns"))

    assert said.startswith("MLFLOW_TRACKING_URI: must be a database")
    assert list(home.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "--space: say which space file to run, for example --space gp.yaml (or --resume)."),
        (["--resume", "gp-0001", "--set", "train.width=8"], "--set: cannot change a sweep that was started"),
        (["--resume", "--set", "train.width=8"], "--set: cannot change a sweep that was started"),
        (
            ["--resume", "gp-0009"],
            "--resume gp-0009: there is no such sweep under {home}/runs. Known: gp-0001.",
        ),
        (["--resume", "gp-0001", "--space", "absent.yaml"], "absent.yaml: cannot be read"),
        (["--space", "gp.yaml", "--offline"], "--offline: goes with --check, which starts no trial"),
        (["--resume", "gp-0001", "--offline"], "--offline: goes with --check, which starts no trial"),
        (["--space", "gp.yaml", "--trials", "0"], "--set sweep.trials=0: sweep.trials: must be greater than"),
        (["--resume", "gp-0001", "--trials", "0"], "--trials: must be at least the 4 trials of this sweep"),
        (["--resume", "gp-0001", "--trials", "3"], "--trials: must be at least the 4 trials of this sweep"),
        (["--resume", "--trials", "8"], "--resume: say which sweep; alone it lists them."),
        (["--resume", "--check"], "--resume: say which sweep; alone it lists them."),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    typed: Type, home: Path, sweep: SweepFolder, arguments: list[str], said: str
) -> None:
    (line,) = refused(typed(*arguments))

    assert line.startswith(said.format(home=home.resolve()))


def test_resume_alone_lists_what_can_be_resumed(typed: Type, home: Path, sweep: SweepFolder) -> None:
    second = claim(home / "runs", "gp")
    assert typed("--resume").stdout == "gp-0001  interrupted: 0 of 4 trials ended\n"
    second.space.write_text("name: gp\n")
    assert typed("--resume").stdout.splitlines() == [
        "gp-0001  interrupted: 0 of 4 trials ended",
        "gp-0002  cannot be read: space.yaml: search: must name at least one setting to search.",
    ]
    with sweep.locked():
        assert typed("--resume").stdout.startswith(f"gp-0001  running (process {os.getpid()} on ")
    assert typed("--resume", "--out", "elsewhere").stdout == "No sweeps under elsewhere.\n"
    assert not (home / "elsewhere").exists()


def test_the_offline_check_of_a_sweep_reads_its_space_and_starts_nothing(
    typed: Type, sweep: SweepFolder
) -> None:
    done = typed("--resume", "gp-0001", "--check", "--offline")

    assert (done.returncode, done.stdout) == (
        0,
        "  gp-0001: 0 of 4 trials ended\n  4 trials still to be proposed\n",
    )
    assert [path.name for path in sweep.path.iterdir()] == ["space.yaml"]


def test_a_changed_space_is_refused_key_by_key(typed: Type, home: Path, sweep: SweepFolder) -> None:
    before = sweep.space.read_bytes()
    changed = SPACE.replace("high: 100", "high: 50").replace("trials: 4", "trials: 40, seed: 1")
    (home / "gp.yaml").write_text(changed)

    assert refused(typed("--resume", "gp-0001", "--space", "gp.yaml")) == [
        "gp.yaml:1: search.gp_weight.high: must be 100.0 as the sweep was started with, got 50.0",
        "gp.yaml:2: sweep.seed: must be 0 as the sweep was started with, got 1",
        "Start a new sweep to change settings; only --trials can grow.",
    ]
    assert sweep.space.read_bytes() == before
    assert [path.name for path in sweep.path.iterdir()] == ["space.yaml"]
