"""Machines that are not as one would like them: what is inherited, not writable, not there."""

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.real_cluster import RunningCluster, running_cluster
from tests.real_sweep import HERE

ELSEWHERE = json.dumps(
    {"cluster": {"worker": ["127.0.0.1:9", "127.0.0.1:10"]}, "task": {"type": "worker", "index": 1}}
)
IGNORED = "TF_CONFIG is ignored"

LOOPBACK_UP = """
import fcntl, os, socket, struct, sys
SET_FLAGS, UP_AND_RUNNING = 0x8914, 0x1 | 0x40
fcntl.ioctl(socket.socket(), SET_FLAGS, struct.pack("16sh22x", b"lo", UP_AND_RUNNING))
os.execvp(sys.argv[1], sys.argv[1:])
"""


def completes(sweep: Any, space: str, *arguments: str) -> None:
    assert sweep.run("--space", space, *arguments) == 0, sweep.output
    sweep.assert_everything_agrees()
    sweep.assert_nothing_is_open(trials=len(sweep.trials()))


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder with a short name."""
    with tempfile.TemporaryDirectory(prefix="f-", dir="/tmp") as path:
        yield Path(path)


def test_a_cluster_configuration_from_elsewhere_is_ignored_with_a_word(sweep: Any, space: str) -> None:
    sweep.environment["TF_CONFIG"] = ELSEWHERE
    completes(sweep, space, "--trials", "3")

    assert [IGNORED in line for line in sweep.output.splitlines()].count(True) == 1


def test_one_run_alone_ignores_it_too(tmp_path: Path) -> None:
    settings = [
        "dataset=digits",
        "width=8",
        "batch_size=32",
        "fid_samples=500",
        "tick_kimg=1",
        "budget_kimg=1",
    ]
    command = [sys.executable, "-m", "wgangp.train", "--out", str(tmp_path)]
    command += [part for setting in settings for part in ("--set", setting)]
    done = subprocess.run(
        [*command, "--strategy", "mirrored", "--replicas", "2"],
        cwd=HERE.parent,
        env=os.environ | {"TF_CONFIG": ELSEWHERE},
        capture_output=True,
        text=True,
        timeout=200,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[0].startswith(IGNORED)


def test_temporary_files_may_have_a_long_name_with_spaces(sweep: Any, space: str) -> None:
    path = sweep.out / " and ".join(["a long name"] * 10)
    path.mkdir()
    assert len(str(path)) > 150
    sweep.environment["TMPDIR"] = str(path)
    completes(sweep, space)


def test_a_short_name_with_a_space_will_do_and_nothing_stays_there(
    sweep: Any, space: str, short: Path
) -> None:
    (short / "a b").mkdir()
    sweep.environment["TMPDIR"] = str(short / "a b")
    completes(sweep, space)

    assert not list((short / "a b").glob("gp-sweep-*"))


def test_no_home_no_cache_no_temporary_folder_no_working_folder_to_write_in(
    sweep: Any, space: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = "/dev/null/home"  # root may write anywhere else
    homes = ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "MPLCONFIGDIR")
    sweep.environment |= dict.fromkeys(homes, nowhere) | {"TMPDIR": "/tmp/there/is/no/such/folder"}
    sweep.within = ["env", "--chdir=/proc/self"]
    completes(sweep, space)


def test_no_network_is_needed(sweep: Any, space: str) -> None:
    sweep.within = ["unshare", "-rn", sys.executable, "-c", LOOPBACK_UP]
    completes(sweep, space)


def test_a_cluster_that_is_gone_is_told_in_one_line_at_once(sweep: Any, space: str) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        gone = f"127.0.0.1:{closed.getsockname()[1]}"
        said = {gone: "Connection refused", "nonsense": "must be host:port", "ray://127.0.0.1:1": "host:port"}
        for address, why in said.items():
            sweep.environment["RAY_ADDRESS"] = address
            assert sweep.run("--space", space) == 2
            (*_, line) = sweep.output.splitlines()
            assert line.startswith("RAY_ADDRESS: must be ") and why in line and address in line
            assert line.endswith(" Unset it to have one started.")
            assert "Traceback" not in sweep.output and not sweep.folder.exists()


@pytest.fixture(params=["with a token", "without"])
def cluster(request: pytest.FixtureRequest, short: Path) -> Iterator[RunningCluster]:
    with running_cluster(short, cpus=2, token=request.param == "with a token") as running:
        yield running


def test_a_cluster_that_runs_already_is_used_and_left_as_it_was(
    sweep: Any, space: str, cluster: RunningCluster
) -> None:
    head = cluster.head
    services = len(head.children(recursive=True))
    sweep.environment |= cluster.join | {"TF_CONFIG": ELSEWHERE}
    completes(sweep, space)

    assert sweep.output.count(IGNORED) == 1
    trained = {tick["pid"] for tick in sweep.ticks()}
    family = head.children(recursive=True)
    assert head.is_running() and len(family) >= services
    assert not [process for process in family if process.pid in trained]
