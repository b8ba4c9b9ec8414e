"""The command line of one run: what it refuses at once, and a run that changes its strategy."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.wgangp.under import ROOT
from wgangp import settings_file
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

    assert module._config(file, tmp_path / "features").inception == gone
    with pytest.raises(UserError, match=r"settings\.yaml:2: inception: must be a file, got "):
        module._config(file, None)


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
