"""The command line of one run: what it refuses at once, and a run that changes its strategy."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.wgangp.under import ROOT
from wgangp import opening, settings_file
from wgangp import train as module
from wgangp.errors import UserError

RUN = {
    "dataset": "digits",
    "width": 4,
    "batch_size": 32,
    "tick_kimg": 0.64,
    "budget_kimg": 1.28,
    "fid_samples": 100,
}


def train(out: Path, cache: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "wgangp.train", "--out", str(out), *arguments],
        cwd=ROOT,
        env={**os.environ, "WGANGP_CACHE": str(cache)},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--strategy", "tpu"],
            "--strategy: tpu needs a TPU, but this machine has none and TPU_NAME names none."
            " Use auto, or run it on a machine with a TPU.",
        ),
        (
            ["--strategy", "mirrored", "--placement", "split"],
            "--placement: must be together under --strategy mirrored, got split.",
        ),
        (["--replicas", "-2"], "--replicas: must be at least 1, got -2."),
        (
            ["--strategy", "one_device", "--replicas", "2"],
            "--replicas: goes with --strategy mirrored, not with --strategy one_device; leave it out.",
        ),
        (
            ["--placement", "split", "--replicas", "2"],
            "--replicas: goes with --strategy mirrored, not with --placement split; leave it out.",
        ),
        (
            ["--set", "precision=float16"],
            "--set precision=float16: precision: must not be float16: its range is too small for the gradient"
            " of a gradient, and scaling the loss does not help the penalty. Use bfloat16",
        ),
    ],
)
def test_what_cannot_be_is_one_line_before_anything_starts(
    tmp_path: Path, arguments: list[str], said: str
) -> None:
    ended = train(tmp_path, tmp_path, "--set", "dataset=digits", *arguments)

    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", said + "\n")
    assert not list(tmp_path.iterdir())


def test_with_frozen_features_inception_need_not_be_there_any_more(tmp_path: Path) -> None:
    gone = str(tmp_path / "graph.pb")
    file = settings_file.parse(f"features: inception\ninception: {gone}", name="settings.yaml")

    assert opening.config_of(file, tmp_path / "features").inception == gone
    with pytest.raises(UserError, match=r"settings\.yaml:2: inception: must be a file, got "):
        opening.config_of(file, None)


@pytest.mark.parametrize(
    ("best", "arguments", "said"),
    [
        ("gp_weight: 1", [], "--continue: goes with a sweep's best.yaml, in its place; best.yaml is none."),
        (
            "from: {checkpoint: trials/t001}",
            [],
            "--continue: the winner's checkpoint is gone: {folder}/trials/t001. Train it anew without.",
        ),
        (
            "from: {checkpoint: whole}",
            ["--set", "lr_schedule=linear"],
            "--continue: goes with lr_schedule: constant, got linear: its rates have come to 0 by the end of"
            " the budget. Train it anew with a longer one.",
        ),
    ],
)
def test_what_cannot_be_continued_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], best: str, arguments: list[str], said: str
) -> None:
    for name in ("features/features.json", "whole/manifest.json"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("{}")
    (tmp_path / "best.yaml").write_text(best)

    assert module.main([str(tmp_path / "best.yaml"), "--continue", "--out", str(tmp_path), *arguments]) == 2
    assert capsys.readouterr().err == said.format(folder=tmp_path) + "\n"
    assert not list(tmp_path.glob("train-*"))


@pytest.mark.slow
def test_a_winner_goes_on_as_if_its_budget_had_been_longer(tmp_path: Path, cache: Path) -> None:
    settings = [word for key, value in RUN.items() for word in ("--set", f"{key}={value}")]
    longer = ["--set", "budget_kimg=2.56"]
    out, one = tmp_path / "runs", ["--replicas", "1"]
    assert train(out, cache, *settings, *one).returncode == 0
    assert train(out, cache, *settings, *longer, *one).returncode == 0
    short, whole = out / "train-0001", out / "train-0002"
    assert (short / "generator.keras").exists()
    # What a sweep leaves: best.yaml beside the frozen features, and its last checkpoint.
    values = settings_file.read(short / "settings.yaml").values
    origin = {"trial": "t001", "checkpoint": "checkpoints/tick-000002"}
    settings_file.dump(values | {"from": origin}, short / "best.yaml", comment="The winner.")

    enough = train(out, cache, str(short / "best.yaml"), "--continue", *one)
    assert enough.returncode == 2
    assert enough.stderr == (
        "--continue: budget_kimg must be above the 1.28 kimg that the winner has had, got 1.28; add --set"
        " budget_kimg=3.84.\n"
    )
    other = train(out, cache, str(short / "best.yaml"), "--continue", *longer, "--set", "batch_size=16")
    assert other.returncode == 2 and "does not fit: batch_size must be 16, got 32." in other.stderr
    assert not (out / "train-0003").exists()
    went_on = train(out, cache, str(short / "best.yaml"), "--continue", *longer, *one)
    assert went_on.returncode == 0, went_on.stderr

    def rows(folder: Path) -> list[dict[str, str]]:
        with (folder / "metrics.csv").open() as file:
            return [row | {"images_per_second": ""} for row in csv.DictReader(file)]

    assert rows(out / "train-0003") == rows(whole)[2:]
    assert len(list((out / "train-0003" / "checkpoints").iterdir())) == 2


@pytest.mark.slow
def test_a_run_goes_on_under_another_strategy(tmp_path: Path, cache: Path) -> None:
    """Interrupted after its first tick on one device, it ends as it would have, on two replicas."""
    settings = [word for key, value in RUN.items() for word in ("--set", f"{key}={value}")]
    whole = train(tmp_path / "whole", cache, *settings, "--set", "precision=float64")
    assert whole.returncode == 0, whole.stderr
    begun = train(
        tmp_path / "begun", cache, *settings, "--set", "precision=float64", "--set", "budget_kimg=0.64"
    )
    assert begun.returncode == 0, begun.stderr
    run = tmp_path / "begun" / "train-0001"
    frozen = (run / "settings.yaml").read_text()
    (run / "settings.yaml").write_text(frozen.replace("budget_kimg: 0.64", "budget_kimg: 1.28"))
    on_two = ["--strategy", "mirrored", "--replicas", "2"]
    resumed = train(tmp_path / "begun", cache, "--resume", str(run), *on_two)
    assert resumed.returncode == 0, resumed.stderr

    def rows(folder: Path) -> list[dict[str, str]]:
        with (folder / "metrics.csv").open() as file:
            return list(csv.DictReader(file))

    ended, expected = rows(run)[-1], rows(tmp_path / "whole" / "train-0001")[-1]
    assert ended["tick"] == expected["tick"] == "2"
    for name in ("fid", "critic_loss", "gradient_penalty", "generator_loss"):
        assert float(ended[name]) == pytest.approx(float(expected[name]), rel=1e-8)
