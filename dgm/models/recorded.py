"""The model of a replay: all its replies are in a run's journal already."""

from dgm.errors import Infrastructure
from dgm.messages import Reply, Request

SHOWN = 80


class RecordedModel:
    """The model behind a gateway whose journal holds the replies; it is asked only for missing ones.

    Such a request ends in ``Infrastructure``, so that the agent's behaviour without an answer is never graded. The
    gateway puts the action and the call's number before the message.
    """

    def __init__(self, name: str = "recorded") -> None:
        """Set the name of the recorded model, which agents may ask for."""
        self.name = name

    async def reply(self, request: Request) -> Reply:
        """Raise an error: there is no reply.

        Raises:
            Infrastructure: always; the message shows the request.
        """
        # A request in a provider's own form comes without its messages.
        last = (
            f" (last message of {len(request.messages)}: {request.messages[-1].text[:SHOWN]!r})"
            if request.messages
            else ""
        )
        raise Infrastructure(
            f"the recording has no reply to this call{last}; "
            "replay with the agent, tasks and settings that were recorded"
        )

    async def check(self) -> None:
        """Succeed: a recording is always there."""

    async def close(self) -> None:
        """Do nothing: there are no connections."""
