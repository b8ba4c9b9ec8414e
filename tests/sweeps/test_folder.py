import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sweeps import folder as folders
from sweeps.folder import SweepFolder
from wgangp.errors import UserError

ROOT = Path(__file__).resolve().parents[2]


def python(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )


@pytest.mark.parametrize(
    ("there", "next_one"),
    [
        ([], "gp-0001"),
        (["gp-0001", "gp-0002"], "gp-0003"),
        (["gp-0007"], "gp-0008"),
        (["gp-0002-old", "gp-x", "gpu-0009", "gp.0009", "gp-"], "gp-0001"),
        (["gp-9999"], "gp-10000"),
    ],
)
def test_a_sweep_takes_the_next_free_number(tmp_path: Path, there: list[str], next_one: str) -> None:
    for name in there:
        (tmp_path / "runs" / name).mkdir(parents=True)
    claimed = folders.claim(tmp_path / "runs", "gp")

    assert claimed == SweepFolder((tmp_path / "runs" / next_one).resolve())
    assert claimed.path.is_dir()


def test_two_sweeps_that_start_at_once_get_different_numbers(tmp_path: Path) -> None:
    claim = (
        "import sys; from pathlib import Path; from sweeps.folder import claim\n"
        "for _ in range(40): print(claim(Path(sys.argv[1]), 'gp').name)"
    )
    with ThreadPoolExecutor(2) as both:
        names = [
            line
            for done in both.map(lambda _: python(claim, tmp_path), range(2))
            for line in done.stdout.split()
        ]

    assert sorted(names) == [f"gp-{number:04d}" for number in range(1, 81)]


def test_a_number_taken_in_between_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gp-0001").mkdir()
    monkeypatch.setattr(Path, "glob", lambda *_: iter(()))  # the other one was not there yet

    assert folders.claim(tmp_path, "gp").name == "gp-0002"


def test_a_running_sweep_keeps_others_out_and_says_who_runs_it(folder: SweepFolder) -> None:
    knock = (
        "import sys; from pathlib import Path; from sweeps.folder import SweepFolder\n"
        "try:\n    with SweepFolder(Path(sys.argv[1])).locked(): print('in')\n"
        "except Exception as error: print(error)"
    )
    with folder.locked():
        said = python(knock, folder.path).stdout
    assert re.fullmatch(
        rf"gp-0001: is running already: process {os.getpid()} on \S+ since [\d-]+ [\d:]+\."
        r" Wait for it or end it\.\n",
        said,
    )
    assert python(knock, folder.path).stdout == "in\n"


def test_the_lock_holds_within_one_process_and_goes_with_an_error(folder: SweepFolder) -> None:
    with pytest.raises(ZeroDivisionError), folder.locked():
        with pytest.raises(UserError, match="is running already"), folder.locked():
            raise AssertionError
        raise ZeroDivisionError
    with folder.locked():
        assert (folder.path / "lock").read_text().count("process") == 1


def test_a_sweep_is_found_by_name_or_path_once_its_space_is_frozen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "runs"
    first, second = folders.claim(out, "gp"), folders.claim(out, "gp")
    first.space.write_text("name: gp\n")
    monkeypatch.chdir(out)

    assert folders.existing(out) == [first]
    for out_given, name in (
        (out, "gp-0001"),
        (Path("."), "gp-0001"),
        (tmp_path, "gp-0001"),
        (out, str(first.path)),
    ):
        assert folders.find(out_given, name) == first
    under, at = f"under {out.resolve()}", "at {}, which has no space.yaml"
    for name, where in (
        ("gp-0009", under),
        ("gp-0002", at.format(second.path)),
        ("..", at.format(Path("..").resolve())),
        (str(second.path), at.format(second.path)),
    ):
        with pytest.raises(UserError) as caught:
            folders.find(out, name)
        assert str(caught.value) == (f"--resume {name}: there is no such sweep {where}. Known: gp-0001.")


def test_without_sweeps_none_are_known(tmp_path: Path) -> None:
    assert folders.existing(tmp_path / "absent") == []
    with pytest.raises(UserError, match=r"Known: none\.$"):
        folders.find(tmp_path / "absent", "gp-0001")


def test_each_start_has_its_part_of_the_trials(folder: SweepFolder) -> None:
    assert folder.next_invocation() == "001"
    for name in ("001", "002", "notes", "3x"):
        (folder.trials / name).mkdir(parents=True)
    assert folder.next_invocation() == "003"


def test_the_cache_lies_under_out_unless_the_environment_says_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WGANGP_CACHE", raising=False)
    assert folders.cache(tmp_path / "runs") == (tmp_path / "runs" / "cache").resolve()
    monkeypatch.setenv("WGANGP_CACHE", str(tmp_path / "elsewhere"))
    assert folders.cache(tmp_path / "runs") == (tmp_path / "elsewhere").resolve()
