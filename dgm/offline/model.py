"""The offline model behind the ``Model`` protocol: a pure function of the request, run in a thread."""

import asyncio
import logging

from dgm.domain import Usage
from dgm.messages import CONTEXT_LENGTH, Reply, Request, RequestRefused, Role, Stop
from dgm.offline import answers, improve, solve
from dgm.offline.talk import fold

CONTEXT = 200_000
"""Maximum number of characters of messages and tools together; a longer request is refused."""
_log = logging.getLogger(__name__)


def decide(request: Request) -> Reply:
    """Return the reply to a request: it depends on nothing else, and nothing is executed.

    Raises:
        RequestRefused: the request is too long or has no messages.
    """
    if not request.messages:
        raise RequestRefused("invalid_request_error", "messages: at least one message is required")
    length = sum(len(m.text) + sum(len(c.arguments + c.name) for c in m.calls) for m in request.messages)
    length += sum(len(tool.name + tool.description) for tool in request.tools)
    if length > CONTEXT:
        what = f"maximum context length is {CONTEXT // 4} tokens; the messages have {length // 4}."
        raise RequestRefused(CONTEXT_LENGTH, f"This model's {what}")
    calls, text = [], answers.answer(request)
    if text is None:
        talk = fold(request)
        text, moves = improve.decide(talk) if talk.own_source else solve.decide(talk)
        turn = sum(message.role is Role.ASSISTANT for message in request.messages) + 1
        used = {call.id for message in request.messages for call in message.calls}
        fresh = (name for number in range(1, 1000) if (name := f"call_{turn}_{number}") not in used)
        calls = [call for move in moves if (call := talk.call(move, next(fresh)))]
        text += " The tools do not allow it. DONE" if moves and not calls else ""
    output = len(text) + sum(len(call.arguments) for call in calls)
    stop = Stop.TOOL_CALLS if calls else Stop.END
    return Reply(text, tuple(calls), stop, Usage(1, length // 4, output // 4))


class OfflineModel:
    """A rule-based repair program that answers like a model; an error while deciding is logged and answered "DONE"."""

    name = "offline"

    async def reply(self, request: Request) -> Reply:
        """Return the answer to a request, computed in a thread.

        Raises:
            RequestRefused: the request is too long or has no messages.
        """
        return await asyncio.to_thread(self._answer, request)

    async def check(self) -> None:
        """Do nothing: the model is part of this program and always answers."""

    async def close(self) -> None:
        """Do nothing: the model has no connections."""

    def _answer(self, request: Request) -> Reply:
        try:
            return decide(request)
        except RequestRefused:
            raise
        except Exception:  # noqa: BLE001  (an agent must get an answer)
            _log.exception("the offline model could not decide")
            return Reply("DONE", (), Stop.END, Usage(1))
