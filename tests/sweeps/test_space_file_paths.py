"""Files that a space file names are beside it; those of an override in the working folder."""

from pathlib import Path

import pytest

from sweeps import space_file, unchanged
from wgangp import settings_file
from wgangp.errors import UserError

SPACE = """\
search: {gp_weight: {type: float, low: 0.1, high: 100, log: true}}
train: {features: inception, inception: graphs/graph.pb}
"""


@pytest.fixture
def space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for place in ("beside", "working"):
        (tmp_path / place / "graphs").mkdir(parents=True)
        (tmp_path / place / "graphs" / "graph.pb").touch()
    path = tmp_path / "beside" / "gp.yaml"
    path.write_text(SPACE)
    monkeypatch.chdir(tmp_path / "working")
    return path


def test_a_file_is_looked_for_beside_the_space_file(space: Path) -> None:
    given = space_file.load(space)

    assert given.base.inception == str(space.parent / "graphs" / "graph.pb")
    assert given.values()["train"]["inception"] == given.base.inception  # frozen as it is found from anywhere


def test_a_file_of_an_override_is_in_the_working_folder(space: Path) -> None:
    given = space_file.load(space, overrides=["train.inception=graphs/graph.pb"])

    assert given.base.inception == str(Path.cwd() / "graphs" / "graph.pb")


def test_a_missing_file_is_said_with_its_whole_path(space: Path) -> None:
    (space.parent / "graphs" / "graph.pb").unlink()

    with pytest.raises(UserError) as caught:
        space_file.load(space)
    assert caught.value.problems == (
        f"gp.yaml:2: train.inception: must be a file, got {space.parent}/graphs/graph.pb. Check the path.",
    )


def test_a_file_may_be_named_from_home(space: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(Path.cwd()))

    given = space_file.load(space, overrides=["train.inception=~/graphs/graph.pb"])

    assert given.base.inception == str(Path.cwd() / "graphs" / "graph.pb")


@pytest.mark.parametrize("name", ["", ".", "~nobody-of-that-name/x", "x" * 300], ids=lambda name: name[:9])
def test_a_name_that_no_file_can_have_is_a_mistake_not_a_crash(space: Path, name: str) -> None:
    space.write_text(SPACE.replace("graphs/graph.pb", repr(name)))

    with pytest.raises(UserError) as caught:
        space_file.load(space)
    (problem,) = caught.value.problems
    assert problem.startswith(f"gp.yaml:2: train.inception: must be a file, got {space.parent}")


def test_with_frozen_features_the_file_need_not_be_there_any_more(space: Path, tmp_path: Path) -> None:
    given = space_file.load(space)
    folder = tmp_path / "gp-0001"
    (folder / "features").mkdir(parents=True)
    settings_file.dump(given.values(), folder / "space.yaml")
    (space.parent / "graphs" / "graph.pb").unlink()

    with pytest.raises(UserError, match=r"space\.yaml:\d+: train\.inception: must be a file, got"):
        space_file.load(folder / "space.yaml")
    (folder / "features" / "features.json").touch()
    assert space_file.load(folder / "space.yaml").values() == given.values()


def test_a_sweep_goes_on_wherever_the_file_was_before(space: Path) -> None:
    given = space_file.load(space)
    frozen = given.values()
    frozen["train"]["inception"] = "/elsewhere/graph.pb"

    unchanged.check_unchanged(given, frozen)
