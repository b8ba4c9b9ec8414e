"""`--check` where corners of the space cannot run, or hardly."""

from pathlib import Path
from typing import Any

import pytest

from sweeps import probing, space_file
from sweeps.progress import View
from sweeps.sweep import plan

CORNERS = ["--set", "search.n_critic={type: int, low: 1, high: 8}", "--set", "enqueue=[]"]
"""Two: the cheap one has gp_weight 1 and n_critic 8, the dear one gp_weight 1000 and n_critic 1."""


def test_the_plan_tells_speed_time_and_disk(sweep: Any, space: str) -> None:
    assert sweep.run("--space", space, *CORNERS, "--check") == 0, sweep.output

    lines = sweep.output.splitlines()
    # 36 kimg at 1,000 images/s and 4 evaluations of 0.1 s; 3 trials, to the end, on two CPUs at once or one
    assert "  n_critic 8: 1,000 images/s, 36 s for 36 kimg" in lines
    assert any(line.startswith("  the sweep: ") for line in lines)
    assert any(
        line.startswith("  checkpoints of at most 2.0 MB, two for each trial: 12.0 MB;") for line in lines
    )
    assert "not tried" not in sweep.output
    assert not sweep.folder.exists()


def test_what_of_many_corners_was_not_tried_is_said(sweep: Any, space: str) -> None:
    many = "search.penalty={type: categorical, choices: [two_sided, one_sided, zero_centered, r1]}"
    assert sweep.run("--space", space, *CORNERS, "--set", many, "--check") == 0, sweep.output

    assert "trying n_critic 1, penalty r1" in sweep.output
    assert "  not tried: n_critic 8, penalty zero_centered and 1 more" in sweep.output.splitlines()


@pytest.mark.parametrize(("do", "why"), [("kill", "worker"), ("raise", "the script says so")])
def test_a_corner_that_cannot_run_is_named_and_the_others_are_tried(
    do: str, why: str, sweep: Any, space: str
) -> None:
    sweep.script(faults={1: [{"tick": 0, "do": do}]})

    assert sweep.run("--space", space, *CORNERS, "--check") == 2, sweep.output
    (line,) = [line for line in sweep.output.splitlines() if "cannot run here" in line]
    assert line.startswith("scripted.yaml: a trial with n_critic 8 cannot run here:") and why in line
    assert "trying n_critic 1" in sweep.output and "Traceback" not in sweep.output
    assert not sweep.folder.exists()


def test_a_corner_that_takes_for_ever_is_left_and_said(
    sweep: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, tmp_path: Path, space: str
) -> None:
    sweep.script(faults={1000: [{"tick": 0, "do": "hang", "seconds": 3600}]})
    monkeypatch.setenv("WGANGP_CACHE", str(sweep.cache))
    monkeypatch.setattr(probing, "PATIENCE", 5.0)
    overrides = [text for text in CORNERS if text != "--set"]
    read = space_file.load(Path(space), overrides=overrides)

    plan(read, out=tmp_path / "runs", view=View(), trainer="tests.scripted_trainer")

    said = capsys.readouterr().out
    assert "  n_critic 1: a step and two evaluations take over 5 s" in said
    assert "  n_critic 8: 1,000 images/s, 36 s for 36 kimg" in said
