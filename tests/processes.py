"""The processes of a sweep, seen from outside."""

import contextlib
import time
from collections.abc import Callable, Iterable
from typing import Any

import psutil


def until(true: Callable[[], Any], *, seconds: float = 180) -> float:
    """Wait; how long it took.

    Three minutes are patience: nothing is claimed, and a busy machine may take them. Claims name seconds.
    """
    begin = time.monotonic()
    while not true():
        assert time.monotonic() < begin + seconds, "it never came true"
        time.sleep(0.05)
    return time.monotonic() - begin


def titled(title: str, processes: Iterable[psutil.Process]) -> list[psutil.Process]:
    """Those that live and have `title` in their command."""
    found = []
    for process in processes:
        with contextlib.suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE and title in " ".join(process.cmdline()):
                found.append(process)
    return found


def of_sweep(sweep: Any, title: str) -> list[psutil.Process]:
    """All that a sweep starts inherit its cache."""
    found = []
    for process in titled(title, psutil.process_iter()):
        with contextlib.suppress(psutil.Error):
            if process.environ().get("WGANGP_CACHE") == str(sweep.cache):
                found.append(process)
    return found


def members(sweep: Any) -> list[psutil.Process]:
    return of_sweep(sweep, "ray::Member")


def controllers(sweep: Any) -> list[psutil.Process]:
    """The workers of Ray Tune, which at work go by a name of its own."""
    return of_sweep(sweep, "ray::ResourceTrainable") + of_sweep(sweep, "ray::SweepTrial")


def alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    return [each for each in processes if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]


def member(sweep: Any, weight: int, which: str) -> psutil.Process:
    """The process that did the last tick of a trial as this member of its gang, such as `worker 1`."""
    pids = [tick["pid"] for tick in sweep.ticks() if (tick["gp_weight"], tick["member"]) == (weight, which)]
    return psutil.Process(pids[-1])
