"""Files that a space file names are beside it; those of an override in the working folder."""

from pathlib import Path

import pytest

from sweeps import space_file
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
