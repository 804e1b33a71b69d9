"""The time that an agent may take before it works on anything: for its self-check and its dry runs.

What is bounded is processor time (``limits.check_s``), which a busy machine does not lengthen. An agent that uses it up
is at fault. Behind it are bounds by the clock, for an agent that waits: one that reaches the first may have been kept
waiting by the machine, so it is tried again with twice as much. Where that is over too, a program that does
nothing is run: if the machine runs it at once, the agent waits for something that does not come, and is at fault; else
nothing is known of the agent (``Infrastructure``).
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from dgm.errors import Infrastructure
from dgm.protocols import Completed, OpenSandbox, SandboxSpec

FIRST, LEAST_S, MORE = 3.0, 30.0, 2.0
"""The first bound by the clock is so many times the processor time, at least so many seconds; the second so many times
the first."""
RESPONDS_S = 5.0
"""A machine that takes longer to run a program that does nothing tells nothing of an agent."""

Done = TypeVar("Done")


def clock_bounds(processor_s: float) -> tuple[float, float]:
    """Return the seconds by the clock of the first and the second try."""
    first = max(LEAST_S, FIRST * processor_s)
    return first, MORE * first


async def unhurried(
    attempt: Callable[[float], Awaitable[Done]],
    ended: Callable[[Done], Completed],
    processor_s: float,
    check_machine: Callable[[], Awaitable[None]],
) -> Done:
    """Let an agent start, as often as the rule says.

    Args:
        attempt: starts it with so many seconds by the clock, in a sandbox of its own each time.
        ended: how an attempt ended.
        processor_s: what it may take of the processor.
        check_machine: raises ``Infrastructure`` where the machine does not respond.

    Returns:
        The last attempt; where that is ``timed_out``, the agent is at fault.

    Raises:
        Infrastructure: a sandbox failed, or the machine does not respond.
    """
    first, second = clock_bounds(processor_s)
    done = await attempt(first)
    if _by_clock(ended(done)):
        done = await attempt(second)
    if _by_clock(ended(done)):
        await check_machine()
    return done


def _by_clock(completed: Completed) -> bool:
    return completed.timed_out and not completed.out_of_processor


async def check_responds(open_sandbox: OpenSandbox, spec: SandboxSpec) -> None:
    """Run a program that does nothing, in a sandbox in which no agent ever was.

    Raises:
        Infrastructure: it took longer than ``RESPONDS_S``, so whatever ran out of time is not to blame.
    """
    async with open_sandbox(spec) as sandbox:
        done = await sandbox.exec(["true"], timeout_s=RESPONDS_S, cwd="/")
    if done.timed_out:
        raise Infrastructure(
            f"the machine does not respond: a program that does nothing took more than {RESPONDS_S:g} s, so an agent "
            "that ran out of time is not to blame; give it less to do at once (workers)"
        )
