"""The time that an agent may take before it works on anything: for its self-check and its dry runs.

Processor time is bounded (``limits.check_s``), because a busy machine does not lengthen it. An agent that uses
it up is at fault.

The agent that a search starts from is its user's, and has more: its own start is measured, and children get a
multiple of it where that is more than ``limits.check_s``. So an agent on a package that takes long to import can
have children.

Bounds by the clock catch an agent that waits for something that does not come. A busy machine reaches them, too, so
an agent that reaches the first one is tried again. Before that, a program of known processor time is run in a sandbox
of its own: the slower the machine, the longer the second try. If that is over as well, and the machine is too slow even
for it, nothing is known of the agent (``Infrastructure``); else the agent is at fault.
"""

import errno
import math
import os
from collections.abc import Awaitable, Callable
from typing import TypeVar

from dgm.config import LimitSettings
from dgm.errors import Infrastructure
from dgm.protocols import Completed, OpenSandbox, SandboxSpec

FIRST, LEAST_S = 3.0, 30.0
"""The first bound by the clock is ``FIRST`` times the processor time, at least ``LEAST_S`` seconds."""
MORE, MOST, SLACK = 2.0, 20.0, 3.0
"""The second bound is ``SLACK`` times what the processor time takes on the machine as it is now.

It is at least ``MORE`` times and at most ``MOST`` times the first.
"""
RESPONDS_S = 5.0
"""Seconds for a program that does nothing; a slower machine proves nothing about an agent."""
SPIN_S, SPIN_MOST_S = 0.3, 120.0
"""Processor seconds of the program that tells how slow a machine is, and its limit by the clock."""
_SPIN = f"""
import time
clock, processor = time.perf_counter(), time.process_time()
while time.process_time() - processor < {SPIN_S}:
    pass
print((time.perf_counter() - clock) / (time.process_time() - processor))
"""

_NO_PROCESS = (os.strerror(errno.EAGAIN).encode(), b"can't start new thread")

SEED_S = 120.0
"""Least limit on the processor time of the start of an agent from which children descend, in seconds."""
MARGIN = 3.0
"""Factor of the seed's own start: a child may do more, and another processor may be slower."""

Done = TypeVar("Done")


def allow_seed_start(limits: LimitSettings) -> LimitSettings:
    """Return the limits under which an agent's start is measured that has no ancestor."""
    return limits.model_copy(update={"check_s": max(limits.check_s, SEED_S)})


def follow_seed_start(limits: LimitSettings, measured_s: float) -> LimitSettings:
    """Return the limits of the children of a seed whose start took ``measured_s`` of processor time."""
    return limits.model_copy(update={"check_s": max(limits.check_s, float(math.ceil(MARGIN * measured_s)))})


def find_start_seconds(done: Completed) -> float:
    """Return the processor seconds of a start; those of the clock if the engine cannot measure them."""
    return done.seconds if done.processor_s is None else done.processor_s


def find_first_bound(processor_s: float) -> float:
    """Return the seconds by the clock of the first try."""
    return max(LEAST_S, FIRST * processor_s)


def find_second_bound(processor_s: float, slowness: float) -> float:
    """Return the seconds by the clock of the second try on a machine of that ``measure_slowness``."""
    first = find_first_bound(processor_s)
    return min(MOST * first, max(MORE * first, SLACK * slowness * processor_s))


async def start_with_second_try(
    attempt: Callable[[float], Awaitable[Done]],
    ended: Callable[[Done], Completed],
    processor_s: float,
    measure: Callable[[], Awaitable[float]],
) -> Done:
    """Let an agent start, up to the two tries of the rule above.

    Args:
        attempt: starts it with the given seconds by the clock, in a sandbox of its own each time.
        ended: how an attempt ended.
        processor_s: limit on its processor time.
        measure: returns how slow the machine is now, as ``measure_slowness``.

    Returns:
        The last attempt; if that is ``timed_out``, the agent is at fault.

    Raises:
        Infrastructure: a sandbox failed, or the machine is too slow to tell.
    """
    done = await attempt(find_first_bound(processor_s))
    if not _is_clock_timeout(ended(done)):
        return done
    second = find_second_bound(processor_s, await measure())
    done = await attempt(second)
    if _is_clock_timeout(ended(done)):
        slowness = await measure()
        if slowness * processor_s > second:
            raise Infrastructure(
                f"the machine is too busy: a program has 1 s of processor time in {slowness:.0f} s, so an agent that "
                f"did not start within {second:.0f} s is not to blame; give it less to do at once (workers)"
            )
    return done


def _is_clock_timeout(completed: Completed) -> bool:
    return completed.timed_out and not completed.out_of_processor


def proves_little(completed: Completed) -> bool:
    """Return whether a program ended as on a machine that does not respond, or that can start no more processes."""
    return completed.timed_out or any(word in completed.output for word in _NO_PROCESS)


async def check_responds(open_sandbox: OpenSandbox, spec: SandboxSpec) -> None:
    """Start two programs that do nothing, in a sandbox in which no agent ever was.

    Raises:
        Infrastructure: they took longer than ``RESPONDS_S``, or one did not start, so the end of a program on this
            machine (``proves_little``) is not the agent's fault.
    """
    async with open_sandbox(spec) as sandbox:
        done = await sandbox.exec(["sh", "-c", "true & wait $!"], timeout_s=RESPONDS_S, cwd="/")
    if done.timed_out:
        raise Infrastructure(
            f"the machine does not respond: a program that does nothing took more than {RESPONDS_S:g} s, so an agent "
            "that ran out of time is not to blame; give it less to do at once (workers)"
        )
    if done.exit_code:
        raise Infrastructure(
            "the machine starts no more processes, so an agent that could start none is not to blame; raise its limit "
            "(ulimit -u, or pids of the container), or give it less to do at once (workers)"
        )


async def measure_slowness(open_sandbox: OpenSandbox, spec: SandboxSpec) -> float:
    """Return the seconds by the clock in which a program has one second of processor time; 1 on an idle machine.

    It is measured in a sandbox in which no agent ever was.

    Raises:
        Infrastructure: the sandbox failed, or the program did not end within ``SPIN_MOST_S``.
    """
    async with open_sandbox(spec) as sandbox:
        done = await sandbox.exec(["python3", "-I", "-S", "-c", _SPIN], timeout_s=SPIN_MOST_S, cwd="/")
    if done.timed_out:
        raise Infrastructure(
            f"the machine does not respond: a program with {SPIN_S:g} s of work took more than {SPIN_MOST_S:g} s, so "
            "an agent that did not start is not to blame; give it less to do at once (workers)"
        )
    said = done.output.decode("ascii", "replace").strip()
    try:
        return max(1.0, float(said))
    except ValueError as error:
        raise Infrastructure(
            f"how busy the machine is cannot be measured: python3 of {spec.image} ended with {done.exit_code}: "
            f"{said[-200:]!r}"
        ) from error
