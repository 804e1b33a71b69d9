"""The model of a replay: everything it could say is in a run's journal already."""

from dgm.errors import Infrastructure
from dgm.messages import Reply, Request

SHOWN = 80


class RecordedModel:
    """Stands behind a gateway whose journal holds the replies, and is therefore asked only for what it lacks.

    That ends in ``Infrastructure``, so that what an agent did without an answer is never graded. The gateway
    puts the action and the call's number before the message.
    """

    def __init__(self, name: str = "recorded") -> None:
        """Speaks under the name of the model that was recorded, which agents may ask for."""
        self.name = name

    async def reply(self, request: Request) -> Reply:
        """Never answers.

        Raises:
            Infrastructure: always; the message shows what was asked.
        """
        last = request.messages[-1].text if request.messages else ""
        raise Infrastructure(
            f"the recording has no reply to this call (last message of {len(request.messages)}: "
            f"{last[:SHOWN]!r}); replay with the agent, tasks and settings that were recorded"
        )

    async def check(self) -> None:
        """A recording is always there."""

    async def close(self) -> None:
        """Has no connections."""
