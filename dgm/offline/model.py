"""The offline model behind the ``Model`` protocol: a pure function of the request, run in a thread."""

import asyncio
import logging

from dgm.domain import Usage
from dgm.messages import Reply, Request, RequestRefused, Stop, ToolCall
from dgm.offline import performing, solver, wire, writing
from dgm.offline.knowledge import Conversation, fold
from dgm.offline.moves import Decision

_log = logging.getLogger(__name__)


def decide(request: Request) -> Reply:
    """Return the reply to a request: it depends on nothing else, and nothing is executed.

    Raises:
        RequestRefused: the request is too long or has no messages.
    """
    wire.check_request(request)
    written = writing.decide(request)
    if written is not None:
        return _final_reply(request, written.say)
    conversation = fold(request)
    return _reply(request, conversation, _decision(conversation))


class OfflineModel:
    """A rule-based repair program that answers like a model.

    Args:
        strict: whether an error while deciding is raised, for tests; else it is logged and the answer is "DONE".
    """

    name = "offline"

    def __init__(self, *, strict: bool = False) -> None:
        self._strict = strict

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
        except Exception:
            if self._strict:
                raise
            _log.exception("the offline model could not decide")
            return Reply("DONE", (), Stop.END, Usage(1))


def _decision(conversation: Conversation) -> Decision:
    if conversation.improving:
        from dgm.offline import editor

        return editor.decide_edit(conversation)
    return solver.decide(conversation)


def _reply(request: Request, conversation: Conversation, decision: Decision) -> Reply:
    names = wire.identifiers(request.messages, len(decision.moves))
    calls: list[ToolCall] = []
    for move, name in zip(decision.moves, names, strict=True):
        call = performing.perform(move, conversation.toolbox, conversation.files, name)
        if call is not None:
            calls.append(call)
    if decision.moves and not calls:
        return _final_reply(request, decision.say + " The tools do not allow it. DONE")
    if not calls:
        return _final_reply(request, decision.say)
    output = len(decision.say) + sum(len(call.arguments) for call in calls)
    usage = Usage(1, wire.count_characters(request) // 4, output // 4)
    return Reply(decision.say, tuple(calls), Stop.TOOL_CALLS, usage)


def _final_reply(request: Request, text: str) -> Reply:
    return Reply(text, (), Stop.END, Usage(1, wire.count_characters(request) // 4, len(text) // 4))
