"""Signals, sent for real: to this process where it goes on, to another where it ends."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sweeps.interrupt import Interrupt, Interrupted

ROOT = Path(__file__).resolve().parents[2]
SIGNALS = [signal.SIGINT, signal.SIGTERM]
BUSY = """
import signal
from sweeps.interrupt import Interrupt
with Interrupt():
    try:
        for number in ({numbers}):
            signal.raise_signal(number)
            print("goes on", flush=True)
    finally:
        print("not at once", flush=True)
"""


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_stops_the_sweep_where_it_looks(number: signal.Signals) -> None:
    with Interrupt() as interrupt:
        interrupt.check()
        signal.raise_signal(number)
        for _ in range(2):
            with pytest.raises(Interrupted):
                interrupt.check()


def test_no_handler_of_exceptions_holds_an_interruption_up() -> None:
    assert not issubclass(Interrupted, Exception)


@pytest.mark.parametrize("numbers", [(2, 2), (15, 15), (2, 15), (15, 2)])
def test_the_second_signal_ends_the_process_at_once(numbers: tuple[int, int]) -> None:
    code = BUSY.format(numbers=f"{numbers[0]}, {numbers[1]}")
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)

    assert (done.returncode, done.stdout, done.stderr) == (130, "goes on\n", "")


def test_handlers_are_given_back() -> None:
    before = [signal.getsignal(number) for number in SIGNALS]
    with pytest.raises(ZeroDivisionError), Interrupt():
        assert all(signal.getsignal(number) not in before for number in SIGNALS)
        raise ZeroDivisionError

    assert [signal.getsignal(number) for number in SIGNALS] == before


ANYWHERE = """
import signal, sys
from sweeps.interrupt import Interrupt
with Interrupt() as interrupt:
    with interrupt.at_once(lambda: print("left", flush=True)):
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(15))  # as Ray does
    print("goes on", flush=True)
    with interrupt.at_once(lambda: print("left", flush=True)):
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(15))
        signal.raise_signal({number})
        while True:
            signal.pause()
"""


@pytest.mark.parametrize("number", [2, 15])
def test_where_nothing_can_be_left_in_order_the_first_signal_ends_the_process(number: int) -> None:
    command = [sys.executable, "-c", ANYWHERE.format(number=number)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)

    assert (done.returncode, done.stdout, done.stderr) == (130, "goes on\nleft\n", "Interrupted.\n")


def test_a_signal_that_came_before_does_not_begin_what_cannot_be_left() -> None:
    begun = False
    with Interrupt() as interrupt:
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(Interrupted), interrupt.at_once(lambda: None):
            begun = True

    assert not begun
