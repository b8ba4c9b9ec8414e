"""A finished sweep, MLflow's pages on it, and a browser that looks at them."""

import os
import shutil
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.processes import titled, until
from tests.real_sweep import Sweep

SPACE = Path(__file__).with_name("pages.yaml")
PATIENCE = 60_000
"""Milliseconds: a page is drawn in one or two thousand, but not on a machine that is busy."""

expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Sweep:
    """A sweep of which one trial failed, its worker killed; others diverge, are pruned, or end well."""
    sweep = Sweep(tmp_path_factory.mktemp("pages"), name="pages")

    def kill(driver: psutil.Process) -> None:
        # At work a trial's process goes by the name Tune gives it, between two ticks by ours.
        family = driver.children(recursive=True)
        worker, *_ = titled("ray::ResourceTrainable", family) + titled("ray::SweepTrial", family)
        worker.kill()

    status = sweep.run_until(lambda line: line.startswith("t001  3"), kill, "--space", str(SPACE))
    assert status == 1, sweep.output
    outcomes = list(sweep.outcomes().values())
    assert {"complete", "pruned", "diverged", "failed"} == set(outcomes), sweep.output
    return sweep


@pytest.fixture(scope="session")
def address(finished: Sweep) -> Iterator[str]:
    """Where `mlflow ui` shows them."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    database = f"sqlite:///{finished.out / 'mlflow.db'}"
    command = [sys.executable, "-m", "mlflow", "ui", "--backend-store-uri", database, "--port", str(port)]
    # Its runners of jobs, seven processes, have nothing to do here.
    environment = os.environ | {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    with (finished.out / "ui.txt").open("wb") as log:
        server = subprocess.Popen(
            [*command, "--workers", "1"], cwd=finished.out, stdout=log, stderr=log, env=environment
        )
    found = f"http://127.0.0.1:{port}"
    directly = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def answers() -> bool:
        with suppress(OSError):
            return directly.open(found, timeout=20).status == 200
        return False

    try:
        until(answers, seconds=180)
        yield found
    finally:
        family = [psutil.Process(server.pid), *psutil.Process(server.pid).children(recursive=True)]
        for process in family:
            with suppress(psutil.Error):
                process.kill()
        server.wait()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium")
    if not chromium:
        pytest.skip("there is no chromium; `make test-all` installs it on Debian")
    with (
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"]) as browser,
    ):
        yield browser


@pytest.fixture
def page(browser: Browser, tmp_path: Path) -> Iterator[Page]:
    """A window without a network beyond this machine; what breaks in it fails the test."""
    context = browser.new_context(viewport={"width": 2400, "height": 1200})
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    broken: list[str] = []
    page.on("pageerror", lambda error: broken.append(str(error)))
    context.route(
        lambda url: "//127.0.0.1" not in url and not url.startswith(("data:", "blob:")),
        lambda route: route.abort(),
    )
    yield page
    page.screenshot(path=tmp_path / "end.png")
    context.close()
    assert broken == []
