"""Whose fault it is that an agent lacked answers of its model: its own, if the model answers a neutral question then.

An agent must not gain from ending without a verdict. So a job that ends in such a way is done once more, and the
second time what the agent left counts. What befalls the neutral question too is a failure of the infrastructure.
A single request that fails is decided by ``dgm.gateway.blame``, while its agent is at work.
"""

import logging

from dgm.errors import Infrastructure
from dgm.gateway.blame import FAILED, TRIES
from dgm.gateway.call import ModelCaller
from dgm.gateway.lease import Lease
from dgm.gateway.server import MOST_LOST_S
from dgm.messages import LEFT_OPEN
from dgm.protocols import Completed

log = logging.getLogger(__name__)


class OwnFailure(Infrastructure):
    """The end of a job whose agent lacked answers by its own fault, for the first time: the job is done once more."""


async def find_own_failure(
    caller: ModelCaller, lease: Lease, completed: Completed, limit_s: float, *, last: bool
) -> str:
    """Return what an agent lacked of its model by its own fault; empty if it lacked nothing.

    Args:
        caller: asks the neutral question.
        lease: of the agent, which has ended; still open.
        completed: how the agent ended.
        limit_s: the agent's time, in seconds.
        last: whether the job is not done again.

    Raises:
        OwnFailure: the job is to be done once more.
        Infrastructure: the model or the journal failed.
    """
    lacking = "" if lease.failure is not None else await _find_lack(lease, completed, limit_s)
    if lease.failure is not None:
        raise lease.failure
    if lacking:
        if not await caller.answers(lease):
            raise Infrastructure(lacking)
        if not last:
            log.warning("action %d: done once more: %s; the model answers others", lease.action, lacking)
            raise OwnFailure(lacking)
        lacking = f"{lacking}; {TRIES} times, while the model answered others"
        await caller.refuse_open_calls(lease, lacking)
        return lacking
    told = [lease.refused[code] for code in (FAILED, LEFT_OPEN) if code in lease.refused]
    return "; ".join(told)


async def _find_lack(lease: Lease, completed: Completed, limit_s: float) -> str:
    # An agent that ends well says that it is done, even if calls are still open.
    ended_badly = completed.timed_out or completed.exit_code
    if ended_badly and (lacking := await lease.wait_for_calls(limit_s)):
        return lacking
    if lease.blameless:
        return lease.blameless
    if completed.timed_out and lease.lost_s > MOST_LOST_S:
        return f"the agent's calls waited {lease.lost_s:,.0f} s for their provider"
    return ""
