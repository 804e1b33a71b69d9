"""What was said in one job: replies that were already paid for, vendors' own forms of turns, answers to continue."""

from collections.abc import Sequence
from dataclasses import replace

from dgm.gateway.masking import first_difference
from dgm.gateway.wire import BadRequest
from dgm.messages import CUT_SHORT, Exchange, Message, Native, Reply, Request, Role


class Memory:
    """Belongs to one lease, ends with it."""

    def __init__(self, paid: Sequence[Exchange] = ()) -> None:
        """Takes what an earlier performance of the action was answered."""
        self._paid = {exchange.number: exchange for exchange in paid if exchange.reply.error != CUT_SHORT}
        self._natives: dict[str, Native] = {}
        self._answers: dict[str, tuple[Message, ...]] = {}

    # Replies that were paid for

    def take(self, request: Request, ordinal: int) -> Exchange | None:
        """The exchange that answers the request, which is then used up.

        That with the request's own number comes first, so that equal requests keep their order; calls that were made
        at once may arrive in another order, so any other that asks the same will do.
        """
        numbers = sorted(self._paid, key=lambda number: (number != ordinal, number))
        for number in numbers:
            if first_difference(self._paid[number].request, request) is None:
                return self._paid.pop(number)
        return None

    def difference(self, request: Request, ordinal: int) -> str | None:
        """What the request asks otherwise than the one recorded in its place; None where nothing is left of it."""
        if not self._paid:
            return None
        number = ordinal if ordinal in self._paid else min(self._paid)
        return first_difference(self._paid[number].request, request)

    # Vendors' own forms

    def with_natives(self, request: Request) -> Request:
        """The request with the vendor's own form of each turn that the model said in this job.

        Agents leave out what their protocol does not know (reasoning, signatures); vendors want it back unharmed.
        """
        if not self._natives:
            return request
        return replace(request, messages=tuple(self._with_native(message) for message in request.messages))

    def _with_native(self, message: Message) -> Message:
        native = self._natives.get(_mark(message)) if message.role is Role.ASSISTANT else None
        return replace(message, native=native) if native else message

    # Answers to continue

    def remember(self, answer_id: str, before: Sequence[Message], reply: Reply, *, goes_on: bool) -> None:
        """Keeps a reply's native, and, if one may go on from it, the conversation that this id stands for."""
        said = Message(Role.ASSISTANT, reply.text, reply.calls, native=reply.native)
        if reply.native:
            self._natives[_mark(said)] = reply.native
        if goes_on:
            self._answers[answer_id] = (*before, said)

    def conversation(self, answer_id: str) -> Sequence[Message]:
        """What was said up to that answer.

        Raises:
            BadRequest: this job has had no such answer.
        """
        if answer_id not in self._answers:
            raise BadRequest(
                f"there is no earlier answer {answer_id[:80]!r} in this job", "previous_response_not_found"
            )
        return self._answers[answer_id]


def _mark(message: Message) -> str:
    """What tells an assistant's turn again: its calls' ids, else its text."""
    if message.calls:
        return "calls " + " ".join(call.id for call in message.calls)
    return "text " + message.text
