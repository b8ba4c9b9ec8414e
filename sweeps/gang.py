"""A trial in several processes: started together, told what to do together, and ended together.

The process that makes them, a worker of Ray Tune, only passes calls on, without TensorFlow. A member that is
alone waits for the others for ever, inside TensorFlow; so the first that fails or dies ends them all.
"""

import contextlib
import importlib
import os
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import ray

from sweeps.failures import in_one_line
from sweeps.records import TrialFailed
from wgangp import strategies
from wgangp.checkpoints import CheckpointError
from wgangp.config import TrainConfig
from wgangp.errors import UserError

_DISAGREE_SECONDS = 30  # all members read the same checkpoint: they find it damaged at about the same time
_PULSE_SECONDS = 40  # a process that is stopped, or swapped out, does not answer
_BLAME_SECONDS = 2  # within which a death shows that made another member fail
_END_SECONDS = 10

WORDS = {"ps": "parameter server"}


class Member:
    """One process of a gang: one that trains, or one that serves those that do."""

    def __init__(self) -> None:
        # Kept while the process lives: TensorFlow binds the port once more, as options on both sides allow,
        # and nobody else is given it. Without `listen` no connection comes here.
        os.environ["TF_GRPC_REUSE_PORT"] = "true"
        self._port = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self._port.bind(("", 0))
        self._trainer: Any = None

    @ray.method(concurrency_group="pulse")
    def pulse(self) -> None:
        """Returns at once, whatever the member is doing."""

    @ray.method(concurrency_group="watch")
    def stay(self) -> None:
        """Never returns: whoever waits for it is told when the process ends."""
        threading.Event().wait()

    def address(self) -> tuple[str, int]:
        """Where TensorFlow is to find it, and its process."""
        return f"127.0.0.1:{self._port.getsockname()[1]}", os.getpid()

    def join(self, gang: strategies.Gang, trainer: str, prepared: list[Any], resources: dict) -> None:
        """Become what `gang` says. `prepared` holds the reference: only who trains has use for the value."""
        with in_one_line(UserError):
            if resources["strategy"] == "parameter_server" and gang.role != "chief":
                strategies.serve(gang, cpus=resources["cpus"], gpus=resources["gpus"])
                return
            module = importlib.import_module(trainer)
            self._trainer = module.Trainer(ray.get(prepared[0]), **resources, gang=gang)

    def do(self, method: str, *arguments: Any) -> tuple[Any, int]:
        """What a method of the trainer returns, and the tick the trainer has come to."""
        with in_one_line(CheckpointError, UserError):
            return getattr(self._trainer, method)(*arguments), self._trainer.tick

    def resident_bytes(self) -> int:
        return psutil.Process().memory_info().rss


class GangTrainer:
    """A `Trainer` whose work is done by the processes of a gang.

    Attributes:
        tick: ticks done since `start`.
    """

    def __init__(
        self, prepared: Any, *, trainer: str, roles: dict[str, int], resources: dict[str, Any]
    ) -> None:
        """Start the processes and have them find each other.

        Args:
            prepared: a reference to what the trainers are made with.
            trainer: the module that has them.
            roles: number of processes of each role; the first of the first role leads.
            resources: what each trainer is told: strategy, cpus and gpus of each worker, placement.

        Raises:
            TrialFailed, UserError: a process could not be started or set up; none is left.
        """
        self._prepared, self._module = prepared, trainer
        self._roles, self._resources = roles, resources
        self._start_processes()

    def _start_processes(self) -> None:
        self._members: list[Any] = []
        self._names: list[str] = []
        self._watches: list[Any] = []
        self._pids: list[int] = []
        places = [(role, index) for role, count in self._roles.items() for index in range(count)]
        with self._or_end():
            for role, index in places:
                has = self._resources if role == "worker" else {"cpus": 0, "gpus": 0}
                actor: Any = ray.remote(concurrency_groups={"watch": 1, "pulse": 1})(Member)  # type: ignore[call-overload]
                self._members.append(actor.options(num_cpus=has["cpus"], num_gpus=has["gpus"]).remote())
                of = f" {index + 1} of {self._roles[role]}" if self._roles[role] > 1 else ""
                self._names.append(WORDS.get(role, role) + of)
            self._watches = [member.stay.remote() for member in self._members]
            found = self._wait([member.address.remote() for member in self._members])
            addresses: dict[str, list[str]] = {role: [] for role in self._roles}
            for (role, _), (address, pid) in zip(places, found, strict=True):
                addresses[role].append(address)
                self._pids.append(pid)
            given = self._module, [self._prepared], self._resources
            gangs = [strategies.Gang(addresses, role, index) for role, index in places]
            self._wait(
                [member.join.remote(gang, *given) for member, gang in zip(self._members, gangs, strict=True)]
            )
        self.tick = 0

    @property
    def _trains(self) -> range:
        """The members that have a trainer; the first leads."""
        return range(1 if self._resources["strategy"] == "parameter_server" else len(self._members))

    def start(self, config: TrainConfig) -> None:
        """Raises: TrialFailed, UserError."""
        self._replace_if_one_died_idle()
        self._do("start", config)

    def load(self, folder: Path) -> None:
        """Raises: CheckpointError, and the members are as `start` left them; TrialFailed."""
        self._do("load", folder)

    def advance(self) -> Any:
        """One tick's Progress, from the member that leads."""
        return self._do("advance", others="follow")

    def save(self, folder: Path) -> None:
        """The leading member writes for all."""
        with self._or_end():
            self._wait([self._members[0].do.remote("save", folder)])

    def forget(self) -> None:
        self._do("forget")

    def resident_bytes(self) -> int:
        """Memory of the largest member."""
        self._replace_if_one_died_idle()
        with self._or_end():
            return max(self._wait([member.resident_bytes.remote() for member in self._members]))

    def end(self) -> None:
        """End all processes, and wait until they are gone."""
        for member in self._members:
            ray.kill(member)
        if self._watches:
            _, left = ray.wait(self._watches, num_returns=len(self._watches), timeout=_END_SECONDS)
            # Ray asks a process to end itself, which one that is stopped does not.
            for pid in self._pids if left else []:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self._members, self._watches, self._pids = [], [], []

    def _replace_if_one_died_idle(self) -> None:
        """A member that dies between two trials is no fault of the next."""
        if not self._members or ray.wait(self._watches, timeout=0)[0]:
            self.end()
            self._start_processes()

    def _do(self, method: str, *arguments: Any, others: str = "") -> Any:
        """What a method of the leading trainer returns, called at the same time as that of all others."""
        methods = [others or method if number else method for number in self._trains]
        with self._or_end():
            results = self._wait(
                [self._members[number].do.remote(methods[number], *arguments) for number in self._trains]
            )
        result, self.tick = results[0]
        return result

    @contextlib.contextmanager
    def _or_end(self) -> Iterator[None]:
        """Whatever goes wrong in the block ends all members, but for a checkpoint that all found damaged."""
        try:
            yield
        except CheckpointError:
            raise
        except BaseException:
            self.end()
            raise

    def _wait(self, calls: list[Any]) -> list[Any]:
        """What the calls return, the first being that of the first member, and so on.

        Raises:
            CheckpointError: from all of them.
            TrialFailed: the first that failed, or died, or a member that was not called and died.
            DiskFull, UserError, WorkerFull: as the first that failed raised it.
        """
        results: dict[Any, Any] = {}
        damaged: CheckpointError | None = None
        while waiting := [call for call in calls if call not in results]:
            limit = _DISAGREE_SECONDS if damaged else _PULSE_SECONDS / 2
            done, _ = ray.wait([*waiting, *self._watches], timeout=limit)
            if not done and damaged:
                raise TrialFailed(f"{damaged}, but not all members of the gang find it so")
            if not done:
                self._blame_the_silent()
                continue
            try:
                results[done[0]] = ray.get(done[0])
            except ray.exceptions.RayTaskError as error:
                cause = error.cause
                if isinstance(cause, CheckpointError):
                    results[done[0]], damaged = cause, cause
                    continue
                self._blame_the_dead()
                if isinstance(cause, TrialFailed):
                    raise TrialFailed(f"{self._names[calls.index(done[0])]}: {cause}") from None
                raise cause from None
            except ray.exceptions.RayError as error:
                self._blame_the_dead()
                raise TrialFailed(f"a member of the gang is out of reach: {error}") from error
        found = [results[call] for call in calls]
        if damaged:
            if all(isinstance(result, CheckpointError) for result in found):
                raise damaged
            raise TrialFailed(f"{damaged}, but not all members of the gang find it so")
        return found

    def _blame_the_silent(self) -> None:
        """Raise for a member that lives and does not answer: the others would wait for it for ever."""
        pulses = [member.pulse.remote() for member in self._members]
        _, silent = ray.wait(pulses, num_returns=len(pulses), timeout=_PULSE_SECONDS / 2)
        if silent:
            name = self._names[pulses.index(silent[0])]
            raise TrialFailed(f"{name}: the process has not answered for {_PULSE_SECONDS / 2:.0f} s")

    def _blame_the_dead(self) -> None:
        """What a member says that lost another is no reason: raise for the one that died, if one did."""
        dead, _ = ray.wait(self._watches, timeout=_BLAME_SECONDS)
        for watch in dead:
            name = self._names[self._watches.index(watch)]
            try:
                ray.get(watch)
            except ray.exceptions.OutOfMemoryError:
                raise TrialFailed(f"{name}: the process was ended because memory ran out") from None
            except ray.exceptions.RayError:
                raise TrialFailed(f"{name}: the process died (killed, or it crashed)") from None
