"""Anthropic's Messages protocol through its official package.

Answers are taken as the provider wrote them, before the package makes its types of them, so that reasoning and its
signatures can be sent back unchanged. How requests are written is in ``anthropic_turns``, how answers are read in
``anthropic_answer``.
"""

import asyncio
import difflib
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from dgm.config import ProviderSettings
from dgm.errors import UserError
from dgm.messages import Reply, Request
from dgm.models.anthropic_answer import Stream, reply_of
from dgm.models.anthropic_turns import VENDOR, arguments_of
from dgm.models.dialect import Broken

if TYPE_CHECKING:
    import anthropic
    import httpx2

_CONNECT_S = 30.0
"""At most, for a connection to be made; ``timeout_s`` is about a provider that thinks, not about one that is away."""
_DRAIN_S = 1.0
"""After the last event, for the end of the stream: only then can its connection be used again."""
_SUGGESTED = 8


def open_client(
    settings: ProviderSettings, key: str, http_client: "httpx2.AsyncClient | None" = None
) -> "anthropic.AsyncAnthropic":
    """The package's client; it never tries twice."""
    import anthropic
    import httpx2

    timeout = httpx2.Timeout(settings.timeout_s, connect=min(_CONNECT_S, settings.timeout_s), pool=None)
    return anthropic.AsyncAnthropic(
        api_key=key, base_url=settings.base_url, max_retries=0, timeout=timeout, http_client=http_client
    )


class MessagesDialect:
    """Asks one model by ``/v1/messages``."""

    vendor = VENDOR

    def __init__(self, client: "anthropic.AsyncAnthropic", model: str, stream: bool) -> None:
        """Takes over the client.

        Args:
            client: as ``open_client`` gives it.
            model: the provider's own name, without ``anthropic/``.
            stream: ask for events instead of a whole message.
        """
        self._client = client
        self._model = model
        self._stream = stream

    async def ask(self, request: Request) -> Reply:
        """Asks once; see ``Dialect.ask``."""
        arguments = arguments_of(request, self._model)
        # Said again though the client has it: without it the package refuses a large ``max_tokens`` unless streaming.
        arguments["timeout"] = self._client.timeout
        return await (self._streamed(arguments) if self._stream else self._whole(arguments))

    async def check(self) -> None:
        """Asks for the model's record; see ``Dialect.check``."""
        import anthropic

        try:
            raw = await self._client.models.with_raw_response.retrieve(self._model)
        except anthropic.NotFoundError as error:
            names = await self._offered()
            raise UserError(
                f"{self._client.base_url} does not offer '{self._model}'; it offers: {_shown(self._model, names)}"
            ) from error
        self._decoded(raw.http_response)

    async def close(self) -> None:
        """Ends the connections."""
        await self._client.close()

    async def _offered(self) -> list[str]:
        raw = await self._client.models.with_raw_response.list(limit=1000)
        listed = self._decoded(raw.http_response)
        try:
            return [str(model["id"]) for model in listed["data"]]
        except (KeyError, TypeError) as error:
            raise Broken(f"the list of models cannot be read: {str(listed)[:80]}") from error

    async def _whole(self, arguments: dict[str, Any]) -> Reply:
        raw = await self._send(arguments)
        return reply_of(self._decoded(raw.http_response), {})

    async def _streamed(self, arguments: dict[str, Any]) -> Reply:
        import anthropic

        raw = await self._send({**arguments, "stream": True})
        response = raw.http_response
        if _kind(response) != "text/event-stream":
            try:
                await response.aread()
                self._decoded(response)
            finally:
                await response.aclose()
            raise Broken(f"the answer is {_kind(response) or 'of no type'} where a stream was asked for")
        stream = await raw.parse(to=anthropic.AsyncStream[object])
        told = Stream()
        try:
            async for event in stream:
                told.add(event)
                if told.stopped:
                    await _drain(stream)
                    break
        except (ValueError, RecursionError) as error:
            raise Broken("an event of the stream is not JSON") from error
        finally:
            await stream.close()
        return told.reply()

    async def _send(self, arguments: dict[str, Any]) -> Any:  # noqa: ANN401  (the package's raw answer)
        create: Callable[..., Awaitable[Any]] = self._client.messages.with_raw_response.create
        try:
            return await create(**arguments)
        except UnicodeEncodeError:
            # Half a character (an agent's cut output) has no UTF-8 form; looked for only once it was met, for speed.
            return await create(**_encodable(arguments))

    def _decoded(self, response: "httpx2.Response") -> Any:  # noqa: ANN401  (any JSON)
        import anthropic

        try:
            data = json.loads(response.content)
        except (ValueError, RecursionError) as error:
            kind = _kind(response) or "something without a type"
            raise Broken(f"the answer is not JSON but {kind}, {len(response.content)} bytes") from error
        if isinstance(data, dict) and data.get("type") == "error":
            raise anthropic.APIStatusError(str(data), response=response, body=data)
        return data


async def _drain(stream: "anthropic.AsyncStream[object]") -> None:
    import anthropic
    import httpx2

    with suppress(TimeoutError, httpx2.HTTPError, anthropic.APIError, ValueError):
        async with asyncio.timeout(_DRAIN_S):
            async for _ in stream:
                pass


def _encodable(value: Any) -> Any:  # noqa: ANN401  (any JSON)
    match value:
        case str():
            return value.encode("utf-8", "replace").decode()
        case dict():
            return {_encodable(name): _encodable(inner) for name, inner in value.items()}
        case list() | tuple():
            return [_encodable(inner) for inner in value]
        case _:
            return value


def _kind(response: "httpx2.Response") -> str:
    return str(response.headers.get("content-type", "")).partition(";")[0].strip().lower()


def _shown(model: str, names: list[str]) -> str:
    near = difflib.get_close_matches(model, sorted(names), _SUGGESTED, 0.4) or sorted(names)[:_SUGGESTED]
    more = len(names) - len(near)
    return (", ".join(near) or "nothing") + (f" and {more} more" if more else "")
