"""The time that an agent may take before it works on anything: for its self-check and its dry runs.

Processor time is bounded (``limits.check_s``), because a busy machine does not lengthen it. An agent that uses
it up is at fault.

The agent that a search starts from is its user's, and has more: its own start is measured, and children get a
multiple of it where that is more than ``limits.check_s``. So an agent on a package that takes long to import can
have children.

Bounds by the clock catch an agent that waits. The machine may be the reason why an agent reaches the first one,
so it is tried again with twice as much. If that is over too, a program that does nothing is run. If the machine
runs it at once, the agent waits for something that does not come, and is at fault. Else nothing is known of the
agent (``Infrastructure``).
"""

import math
from collections.abc import Awaitable, Callable
from typing import TypeVar

from dgm.config import LimitSettings
from dgm.errors import Infrastructure
from dgm.protocols import Completed, OpenSandbox, SandboxSpec

FIRST, LEAST_S, MORE = 3.0, 30.0, 2.0
"""Factors and minimum of the bounds by the clock.

The first bound is ``FIRST`` times the processor time, at least ``LEAST_S`` seconds; the second is ``MORE``
times the first.
"""
RESPONDS_S = 5.0
"""Seconds for a program that does nothing; a slower machine proves nothing about an agent."""

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


def clock_bounds(processor_s: float) -> tuple[float, float]:
    """Return the seconds by the clock of the first and the second try."""
    first = max(LEAST_S, FIRST * processor_s)
    return first, MORE * first


async def start_with_second_try(
    attempt: Callable[[float], Awaitable[Done]],
    ended: Callable[[Done], Completed],
    processor_s: float,
    check_machine: Callable[[], Awaitable[None]],
) -> Done:
    """Let an agent start, up to the two tries of the rule above.

    Args:
        attempt: starts it with the given seconds by the clock, in a sandbox of its own each time.
        ended: how an attempt ended.
        processor_s: limit on its processor time.
        check_machine: raises ``Infrastructure`` if the machine does not respond.

    Returns:
        The last attempt; if that is ``timed_out``, the agent is at fault.

    Raises:
        Infrastructure: a sandbox failed, or the machine does not respond.
    """
    first, second = clock_bounds(processor_s)
    done = await attempt(first)
    if _is_clock_timeout(ended(done)):
        done = await attempt(second)
    if _is_clock_timeout(ended(done)):
        await check_machine()
    return done


def _is_clock_timeout(completed: Completed) -> bool:
    return completed.timed_out and not completed.out_of_processor


async def check_responds(open_sandbox: OpenSandbox, spec: SandboxSpec) -> None:
    """Run a program that does nothing, in a sandbox in which no agent ever was.

    Raises:
        Infrastructure: it took longer than ``RESPONDS_S``, so a time-out on this machine is not the agent's
            fault.
    """
    async with open_sandbox(spec) as sandbox:
        done = await sandbox.exec(["true"], timeout_s=RESPONDS_S, cwd="/")
    if done.timed_out:
        raise Infrastructure(
            f"the machine does not respond: a program that does nothing took more than {RESPONDS_S:g} s, so an agent "
            "that ran out of time is not to blame; give it less to do at once (workers)"
        )
