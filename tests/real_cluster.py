"""A Ray cluster of one machine that runs already when a sweep is started."""

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil


@dataclass(frozen=True)
class RunningCluster:
    """How to join it (variables of the environment, None for one that is to be absent), and its process."""

    join: dict[str, str | None]
    head: psutil.Process


@contextlib.contextmanager
def running_cluster(folder: Path, *, cpus: int, token: bool) -> Iterator[RunningCluster]:
    """As `ray start` makes one, with `folder` (of a short name) as home; ended with the block."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    if token:
        (folder / ".ray").mkdir()
        (folder / ".ray" / "auth_token").write_text("0123456789abcdef" * 4)
    join: dict[str, str | None] = {"HOME": str(folder), "RAY_AUTH_TOKEN": None, "RAY_AUTH_MODE": None}
    environment = {key: value for key, value in os.environ.items() if key not in join} | {"HOME": str(folder)}
    command = [str(Path(sys.executable).with_name("ray")), "start", "--head", "--block", f"--num-cpus={cpus}"]
    options = [f"--port={port}", "--node-ip-address=127.0.0.1", f"--temp-dir={folder}"]
    with subprocess.Popen(
        [*command, *options, "--include-dashboard=false", "--disable-usage-stats"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        head = psutil.Process(process.pid)
        try:
            assert process.stdout is not None
            assert any("Ray runtime started" in line for line in process.stdout)
            yield RunningCluster(join | {"RAY_ADDRESS": f"127.0.0.1:{port}"}, head)
        finally:
            family = [head, *head.children(recursive=True)]
            for member in family:
                with contextlib.suppress(psutil.NoSuchProcess):
                    member.kill()
            psutil.wait_procs(family, timeout=10)
