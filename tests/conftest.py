"""Settings of every test run: quiet, no telemetry, and `--no-skips`, under which a skip is a failure."""

import fcntl
import os
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

# Their tests run short of the machine's memory on purpose: never two at once.
ALONE = ("test_workers.py", "test_gangs.py")

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"  # errors only; read once, when TensorFlow is first imported
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--no-skips", action="store_true", help="count every skipped test or file as failed")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Those that run alone lie far apart, or one process would wait for the other."""
    items.sort(key=lambda item: item.path.name != ALONE[0])


@pytest.fixture(autouse=True)
def _alone(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.path.name not in ALONE:
        yield
        return
    with (Path(tempfile.gettempdir()) / "gp-sweep-tests.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    return fail_if_skipped(report, config=item.config)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    return fail_if_skipped(report, config=collector.config)


def fail_if_skipped(report: Report, *, config: pytest.Config) -> Report:
    """Turn a skip into a failure under `--no-skips`. An expected failure (xfail) has run and stays one."""
    expected_failure = hasattr(report, "wasxfail")
    if config.getoption("--no-skips") and report.skipped and not expected_failure:
        report.outcome = "failed"
        report.longrepr = f"skipped, which --no-skips counts as a failure: {report.longrepr}"
    return report
