"""Outbox -> MLflow: one thread sends what waits, and training never waits for it.

When MLflow cannot be reached the thread tries again until it can; what one line holds that MLflow will never
take is written down and passed over. The thread touches neither log nor terminal: what a person should know
waits until the driver asks for it by `tell`.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from sweeps import store
from sweeps.folder import SweepFolder
from sweeps.outbox import Outbox
from sweeps.sending import NotStored, Sender, reason
from wgangp.wording import count

log = logging.getLogger(__name__)

PICTURES_PATIENCE = 20
"""Seconds for which a picture that cannot be stored holds up what comes behind it."""


class Tracker:
    """Sends the outbox from its own thread between `start` and `finish`."""

    def __init__(
        self, folder: SweepFolder, outbox: Outbox, *, sweep_id: str, experiment: str, uri: str
    ) -> None:
        self._folder, self._outbox = folder, outbox
        self._sweep_id, self._experiment, self._uri = sweep_id, experiment, uri
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tracking", daemon=True)
        self._sender: Sender | None = None
        self._news: deque[tuple[int, str]] = deque()
        self._refused: list[dict[str, Any]] = []
        self._pictures_fail_since: float | None = None
        self._takes_pictures = True
        self.experiment_id = ""
        """Of the sweep in MLflow; empty until it has answered."""
        self.trouble: str | None = None
        """Why the last try failed, while it does."""

    def start(self) -> None:
        if not store.remembers(self._folder):
            store.remember(self._folder, self._uri)
        self._outbox.send_refused_again()
        self._thread.start()

    def tell(self, say: Callable[[str], None]) -> None:
        """Say what happened since, from the thread that calls; warnings go to the log, which shows them."""
        while self._news:
            level, line = self._news.popleft()
            if level == logging.WARNING:
                log.warning("%s", line)
            else:
                say(line)

    def finish(
        self,
        *,
        patience: float,
        say: Callable[[str], None] = log.info,
        check: Callable[[], None] = lambda: None,
    ) -> int:
        """Send what waits; the number of lines left unsent.

        Args:
            patience: seconds after which what is left is left.
            say: is given what a person should know meanwhile.
            check: called all the time; what it raises ends the wait and goes on to the caller.
        """
        began = time.monotonic()
        said = False
        try:
            while self._outbox.unsent and self._thread.is_alive() and time.monotonic() < began + patience:
                check()
                self.tell(say)
                if not said and time.monotonic() > began + 1:
                    said = True
                    records = count(self._outbox.unsent, "record")
                    why = f", which cannot be reached ({self.trouble})" if self.trouble else ""
                    say(
                        f"  sending {records} to MLflow{why} for up to {patience:g} s;"
                        " Ctrl-C leaves them to --resume ..."
                    )
                time.sleep(0.05)
        finally:
            self._stop.set()
        self._thread.join(timeout=max(0.1, began + patience - time.monotonic()))
        self.tell(say)
        return self._outbox.unsent

    def last_words(self) -> list[str]:
        """What has not reached MLflow and what becomes of it, for the end of a start."""
        lines = []
        if unsent := self._outbox.unsent:
            why = f" ({self.trouble})" if self.trouble else ""
            lines.append(f"{count(unsent, 'record')} not yet in MLflow{why}; --resume sends what is left.")
        if self._refused:
            lines.append(
                f"{len(self._refused)} records were not taken whole by MLflow, the first is"
                f" {_in_words(self._refused[0])}. --resume tries again; all are in {self._outbox.refused}"
            )
        return lines

    def _run(self) -> None:
        pause = 0.2
        while not self._stop.is_set():
            try:
                self._send_waiting()
                pause = 0.2
            # Whatever MLflow, its database or the network raises: training goes on.
            except Exception as error:
                self._failed(error)
                pause = min(pause * 2, 5.0)
            self._stop.wait(pause)

    def _send_waiting(self) -> None:
        sender = self._sender = self._sender or self._connect()
        lines = list(self._outbox.waiting())
        for line, mark in lines:
            if self._stop.is_set():
                return
            refused = sender.send(line, pictures=self._takes_pictures)
            if refused:
                self._note_refused(line, refused)
            if "samples" in line and not refused:  # before the mark is moved, or it might stay for good
                (self._outbox.folder / line["samples"]).unlink(missing_ok=True)
            self._outbox.mark_sent(mark)
            self._answered()
        if not lines:
            self._answered()

    def _connect(self) -> Sender:
        sender = Sender(self._folder, sweep_id=self._sweep_id, experiment=self._experiment, uri=self._uri)
        if self._outbox.sent and not sender.knows_the_sweep():
            self._outbox.mark_sent(0)
            where = store.without_secrets(self._uri)
            self._warn(
                f"{where} has no records of {self._folder.name}: all are sent again, but for the pictures"
                " that were sent before"
            )
        self.experiment_id = sender.experiment_id
        store.remember(self._folder, self._uri)  # only now: it may have been mistyped
        return sender

    def _failed(self, error: Exception) -> None:
        self._sender = None  # the next one looks up what had arrived
        why = reason(error)
        if self.trouble is None:
            self._warn(
                f"MLflow cannot be reached ({why}): training goes on; what is to be recorded waits in"
                f" {self._outbox.folder}"
            )
        self.trouble = why
        if not isinstance(error, NotStored):
            self._pictures_fail_since = None
            return
        self._pictures_fail_since = self._pictures_fail_since or time.monotonic()
        if time.monotonic() > self._pictures_fail_since + PICTURES_PATIENCE:
            self._takes_pictures = False
            self._warn(f"MLflow stores no pictures and files ({why}): all else is sent without them")

    def _answered(self) -> None:
        self._pictures_fail_since = None
        if self.trouble is not None:
            self.trouble = None
            self._news.append((logging.INFO, "MLflow answers again: what waited is being sent"))

    def _note_refused(self, line: dict[str, Any], why: list[str]) -> None:
        entry = self._outbox.note_refused(line, why)
        if not self._refused:
            self._warn(f"MLflow does not take {_in_words(entry)}; the rest is sent without it")
        self._refused.append(entry)

    def _warn(self, line: str) -> None:
        self._news.append((logging.WARNING, line))


def _in_words(entry: dict[str, Any]) -> str:
    """`line 7 (t001: params width: why)`."""
    return f"line {entry['line']} ({entry['trial'] or 'the sweep'}: {'; '.join(entry['refused'])[:300]})"
