"""A model that has nothing to say: it lets a child prove that it can start a job and end it."""

from dgm.domain import Usage
from dgm.messages import Reply, Request


class DryRun:
    """Answers every request with DONE, at no cost."""

    name = "dry-run"

    async def reply(self, request: Request) -> Reply:  # noqa: ARG002  (whatever is asked)
        """DONE."""
        return Reply("DONE", usage=Usage(calls=1))

    async def check(self) -> None:
        """Always answers."""

    async def close(self) -> None:
        """Has no connections."""
