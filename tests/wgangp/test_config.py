"""What settings say of themselves; how a file's mistakes are said is tested with space files."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from wgangp.config import TrainConfig


def test_resolving_writes_out_the_seeds_that_follow_the_seed() -> None:
    given = TrainConfig(seed=3, evaluation_seed=5)

    resolved = given.resolved()

    assert (resolved.init_seed, resolved.evaluation_seed) == (3, 5)
    assert resolved.resolved() == resolved
    assert given.init_seed is None


def test_inception_of_the_environment_is_written_out_where_the_settings_name_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for named, expected in {
        "graph.pb": tmp_path / "graph.pb",
        "~/graph.pb": tmp_path / "home" / "graph.pb",
        "/graph.pb": "/graph.pb",
        "": None,
    }.items():
        monkeypatch.setenv("WGANGP_INCEPTION", named)
        assert TrainConfig(features="inception").resolved().inception == (expected and str(expected))

    monkeypatch.setenv("WGANGP_INCEPTION", "graph.pb")
    assert TrainConfig(features="inception", inception="/x.pb").resolved().inception == "/x.pb"
    assert TrainConfig().resolved().inception is None
    monkeypatch.delenv("WGANGP_INCEPTION")
    assert TrainConfig(features="inception").resolved().inception is None


def test_a_file_of_inception_is_refused_with_other_features() -> None:
    with pytest.raises(ValidationError) as caught:
        TrainConfig(inception="/x.pb")

    assert str(caught.value.errors()[0]["ctx"]["error"]) == (
        "inception must be left out with features: classifier; set features: inception to use it"
    )


@pytest.mark.parametrize("scores", [["kid"], [], ["fid", "fid"], ["fid", "FID"], "fid", ("fid",), [["fid"]]])
def test_scores_name_fid_and_each_score_once(scores: object) -> None:
    with pytest.raises(ValidationError):
        TrainConfig(scores=scores)  # type: ignore[arg-type]
    assert TrainConfig(scores=["recall", "fid"]).scores == ["recall", "fid"]
