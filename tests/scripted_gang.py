"""What the members of a gang are to each other in `scripted_trainer`: a meeting at the end of every tick."""

import socket
import threading
import time

from wgangp.strategies import Gang


class Others:
    """The other workers of a gang, met at worker 0's address, where they wait for each other."""

    def __init__(self, gang: Gang) -> None:
        host, port = gang.addresses["worker"][0].split(":")
        self._leads = gang.index == 0
        if self._leads:
            with socket.socket() as listener:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)  # as TensorFlow does
                listener.bind((host, int(port)))
                listener.listen()
                self._connections = [listener.accept()[0] for _ in gang.addresses["worker"][1:]]
            return
        while True:
            try:
                self._connections = [socket.create_connection((host, int(port)))]
                return
            except ConnectionRefusedError:
                time.sleep(0.02)

    def wait(self) -> None:
        """Until all have come; for ever if one is gone, as a worker of TensorFlow does."""
        try:
            for connection in self._connections if self._leads else []:
                self._hear(connection)
            for connection in self._connections:
                connection.sendall(b".")
            for connection in self._connections if not self._leads else []:
                self._hear(connection)
        except OSError:
            threading.Event().wait()

    def _hear(self, connection: socket.socket) -> None:
        if not connection.recv(1):
            raise ConnectionResetError
