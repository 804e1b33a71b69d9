"""An event loop whose time passes only while everything waits, so that an hour of waiting takes no time."""

import asyncio
import selectors

_LONGEST_S = 10


class _Clock:
    def __init__(self):
        self.now = 1000.0


class _Selector(selectors.DefaultSelector):
    def __init__(self, clock):
        super().__init__()
        self._clock = clock

    def select(self, timeout=None):
        # Without a timer only a thread can go on, and that takes real time.
        ready = super().select(0 if timeout is not None else _LONGEST_S)
        if not ready and timeout is None:
            raise RuntimeError("everything waits, and for nothing that will come")
        if not ready:
            self._clock.now += max(timeout, 0)
        return ready


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self):
        self._virtual = _Clock()
        super().__init__(_Selector(self._virtual))

    def time(self):
        return self._virtual.now


def run(scenario):
    """Runs a coroutine to its end; ``asyncio.sleep``, timeouts and ``loop.time()`` are virtual in it."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(scenario)


def clock():
    """The running loop's time: a clock for whoever wants one."""
    return asyncio.get_running_loop().time()
