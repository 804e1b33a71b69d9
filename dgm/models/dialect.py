"""What a provider's protocol must do for ``HostedModel``: one try of one call, with nothing decided about retries."""

from typing import Protocol

from dgm.messages import Reply, Request


class Broken(Exception):
    """The provider's answer is none: cut off, not JSON, no choice in it, another content type. The next try may do.

    Attributes:
        reply: what the answer comes to if the next tries bring no other (an empty one that was meant); else None.
    """

    def __init__(self, message: str, reply: Reply | None = None) -> None:
        super().__init__(message)
        self.reply = reply


class Dialect(Protocol):
    """One wire protocol of one provider, through its official package."""

    vendor: str
    """``anthropic``, ``openai-responses`` or ``openai-chat``: marks the natives that it makes and takes back."""

    async def ask(self, request: Request) -> Reply:
        """Asks once.

        Raises:
            RequestRefused: the provider says, in a successful answer, that it will not answer.
            Broken: the answer is none.
            Exception: the package's own errors, as they are.
        """
        ...

    async def check(self) -> None:
        """Asks for what costs nothing (the list of models) once; raises as ``ask``.

        Raises:
            UserError: the provider answers and does not offer this model; the message suggests some that it does.
        """
        ...

    async def close(self) -> None:
        """Ends the connections."""
        ...
