"""Listen on a unix socket, and carry its connections over two descriptors: standard input and output of this program.

It runs inside a sandbox with the socket's path as its argument, as a user whom no agent can signal or trace; or on a
node of a cluster, over a connection to the head. Standard library only, Python >= 3.8, one thread. ``relay`` is the
other end, which shares only the constants.

A frame has a head (number of the connection, kind, bytes of the body) and a body. Each end may send ``WINDOW`` bytes
of a connection beyond those that the other has passed on, so that a reader who stalls holds up only itself.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import struct
import sys

HEAD = struct.Struct("!IBI")
OPEN, DATA, END, RESET, CREDIT, PING = range(6)
"""OPEN comes from inside only. END: the sender writes no more; from outside it also ends the connection."""
WINDOW = 1 << 18
CHUNK = 1 << 16
"""Maximum bytes of a body."""
STREAMS = 64
"""Maximum number of connections; further ones wait to be accepted."""
_QUEUED = 1 << 18
"""Bytes that wait for standard output, beyond which nothing more is read from connections."""
_READ, _WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


class Connection:
    """One accepted connection."""

    def __init__(self, near: socket.socket) -> None:
        self.near = near
        self.waiting = bytearray()
        """Bytes from outside that the program has not read."""
        self.credit = WINDOW
        """Bytes that may be sent out."""
        self.passed = 0
        """Bytes that were passed on since the last credit that was given."""
        self.read_ended = False
        self.ending = False


class Relay:
    """All connections of the socket at ``path``; frames come from one descriptor and go to another."""

    def __init__(self, path: str, source: int = 0, sink: int = 1) -> None:
        self._source, self._sink = source, sink
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(path)
        os.chmod(path, 0o666)  # noqa: PTH101  (Path of Python 3.8 has no use here)
        self._listener.listen(STREAMS)
        self._listener.setblocking(False)
        os.set_blocking(source, False)
        os.set_blocking(sink, False)
        self._connections: dict[int, Connection] = {}
        self._last = 0
        self._incoming = bytearray()
        self._outgoing = bytearray()
        self._waits = selectors.DefaultSelector()

    def run(self) -> None:
        """Carry until no more frames come."""
        while True:
            self._flush()
            self._wait_for(self._source, _READ, "input")
            self._wait_for(self._sink, _WRITE if self._outgoing else 0, "output")
            room = len(self._outgoing) < _QUEUED
            self._wait_for(
                self._listener, _READ if room and len(self._connections) < STREAMS else 0, "listener"
            )
            for number, one in self._connections.items():
                wanted = _READ if room and one.credit and not one.read_ended else 0
                self._wait_for(one.near, wanted | (_WRITE if one.waiting else 0), number)
            for key, events in self._waits.select():
                if key.data == "input":
                    if not self._take_input():
                        return
                elif key.data == "listener":
                    self._accept()
                elif key.data in self._connections:
                    self._serve(key.data, events)

    def close(self) -> None:
        """End all connections, and close the descriptor that frames go to."""
        self._waits.close()
        for one in (self._listener, *(connection.near for connection in self._connections.values())):
            one.close()
        os.close(self._sink)

    def _wait_for(self, source: int | socket.socket, events: int, name: int | str) -> None:
        descriptor = source if isinstance(source, int) else source.fileno()
        known = self._waits.get_map().get(descriptor)
        if known is None:
            if events:
                self._waits.register(source, events, name)
        elif not events:
            self._waits.unregister(source)
        elif known.events != events:
            self._waits.modify(source, events, name)

    def _send(self, number: int, kind: int, body: bytes = b"") -> None:
        self._outgoing += HEAD.pack(number, kind, len(body)) + body

    def _flush(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._outgoing:
                del self._outgoing[: os.write(self._sink, self._outgoing[:_QUEUED])]

    def _accept(self) -> None:
        with contextlib.suppress(BlockingIOError, ConnectionError):
            near, _ = self._listener.accept()
            near.setblocking(False)
            self._last += 1
            self._connections[self._last] = Connection(near)
            self._send(self._last, OPEN)

    def _drop(self, number: int) -> None:
        one = self._connections.pop(number)
        self._wait_for(one.near, 0, number)
        one.near.close()

    def _take_input(self) -> bool:
        """Take the frames that came; return whether more can come."""
        data = os.read(self._source, _QUEUED)
        self._incoming += data
        at = 0
        while len(self._incoming) - at >= HEAD.size:
            number, kind, length = HEAD.unpack_from(self._incoming, at)
            end = at + HEAD.size + length
            if len(self._incoming) < end:
                break
            self._take(number, kind, bytes(self._incoming[at + HEAD.size : end]))
            at = end
        del self._incoming[:at]
        return bool(data)

    def _take(self, number: int, kind: int, body: bytes) -> None:
        one = self._connections.get(number)
        if kind == PING:
            self._send(number, PING)
        elif one is None:
            return
        elif kind == DATA:
            one.waiting += body
            self._pass_on(number, one)
        elif kind == CREDIT:
            one.credit += int.from_bytes(body, "big")
        elif kind == END:
            one.ending = True
            self._pass_on(number, one)
        elif kind == RESET:
            self._drop(number)

    def _serve(self, number: int, events: int) -> None:
        one = self._connections[number]
        if events & _WRITE and not self._pass_on(number, one):
            return
        if not events & _READ:
            return
        try:
            data = one.near.recv(min(CHUNK, one.credit))
        except BlockingIOError:
            return
        except OSError:
            self._send(number, RESET)
            self._drop(number)
            return
        one.credit -= len(data)
        one.read_ended = not data
        self._send(number, DATA if data else END, data)

    def _pass_on(self, number: int, one: Connection) -> bool:
        """Write what waits for the program, as far as it goes; return whether the connection goes on."""
        try:
            while one.waiting:
                sent = one.near.send(one.waiting)
                one.passed += sent
                del one.waiting[:sent]
        except BlockingIOError:
            pass
        except OSError:
            self._send(number, RESET)
            self._drop(number)
            return False
        if one.passed >= WINDOW // 4:
            self._send(number, CREDIT, one.passed.to_bytes(4, "big"))
            one.passed = 0
        if one.ending and not one.waiting:
            self._drop(number)
            return False
        return True


if __name__ == "__main__":
    Relay(sys.argv[1]).run()
