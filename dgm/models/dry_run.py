"""A model without content: it lets a child prove that it can start a job and end it."""

from dgm.domain import Usage
from dgm.messages import Reply, Request


class DryRun:
    """A model that answers every request with DONE, at no cost."""

    def __init__(self, name: str = "dry-run") -> None:
        """Set the full name of the model that it stands for."""
        self.name = name

    async def reply(self, request: Request) -> Reply:  # noqa: ARG002  (whatever is asked)
        """Return the reply DONE."""
        return Reply("DONE", usage=Usage(calls=1))

    async def check(self) -> None:
        """Succeed always."""

    async def close(self) -> None:
        """Do nothing: there are no connections."""
