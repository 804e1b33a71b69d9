"""How both OpenAI protocols reach a server: the package's client, its answers as JSON, the models it offers.

Answers are taken as the server wrote them, before the package makes its types of them: natives are sent back
unchanged, and servers that are only compatible leave out much of what the types promise.
"""

import asyncio
import contextlib
import difflib
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from dgm.config import ProviderSettings
from dgm.errors import UserError
from dgm.models.dialect import Broken

if TYPE_CHECKING:
    import httpx2
    import openai

CONNECT_S = 30.0
"""At most, for a connection to be made; ``timeout_s`` is about a provider that thinks, not about one that is away."""
ENDING_S = 0.1
"""How long a stream may take to end after its answer is whole, for its connection to be used again."""
NO_KEY = "none"
"""What a server that asks for no key is sent: the package refuses to send nothing."""
BULK = ("messages", "input", "tools")
"""Arguments that grow with a conversation; they are plain JSON already."""
NO_LIST = (404, 405, 501)
"""How a compatible server says that it keeps no list of models."""
SUGGESTED = 8
"""Models that are named where the wanted one is not offered."""

JsonObject = Mapping[str, Any]
Create = Callable[..., Awaitable[Any]]
"""A ``with_raw_response.create`` of the package."""


def open_client(
    settings: ProviderSettings,
    key: str,
    *,
    compatible: bool = False,
    http_client: "httpx2.AsyncClient | None" = None,
) -> "openai.AsyncOpenAI":
    """The package's client; it never tries twice, and never sends OpenAI's own credentials to another server.

    Args:
        settings: a compatible server's hold its ``base_url``.
        key: empty only for a compatible server that wants none.
        compatible: the server is not OpenAI's.
        http_client: the transport, where it is not to be the package's own.
    """
    import httpx2
    import openai

    timeout = httpx2.Timeout(settings.timeout_s, connect=min(CONNECT_S, settings.timeout_s), pool=None)
    client = openai.AsyncOpenAI(
        api_key=key or NO_KEY,
        base_url=settings.base_url,
        max_retries=0,
        timeout=timeout,
        http_client=http_client,
    )
    if compatible:
        # The package takes these from the environment, where they are meant for OpenAI.
        client.organization = client.project = client.admin_api_key = None
    return client


async def whole(client: "openai.AsyncOpenAI", create: Create, arguments: JsonObject) -> JsonObject:
    """Asks for an answer in one piece.

    Raises:
        Broken: the answer is no JSON object.
        openai.APIError: the server answers with an error, whatever its status.
    """
    raw = await _send(create, {**arguments, "stream": False})
    return _decode(client, raw.http_response)


async def events(
    client: "openai.AsyncOpenAI", create: Create, arguments: JsonObject
) -> AsyncGenerator[JsonObject, None]:
    """Asks for a stream and gives its events; to be closed by whoever stops before its end.

    Raises:
        Broken: what came is no stream, or an event of it is no JSON object.
        openai.APIError: an event is an error, or the connection broke.
    """
    import openai

    raw = await _send(create, {**arguments, "stream": True})
    response = raw.http_response
    kind = _kind(response)
    if kind != "text/event-stream":
        try:
            if kind.endswith("json"):
                await response.aread()
                _decode(client, response)
        finally:
            await response.aclose()
        raise Broken(
            f"the answer is {kind or 'of no type'} where a stream was asked for "
            "(of a server that cannot stream, ask with stream = false)"
        )
    stream = raw.parse(to=openai.AsyncStream[object])
    try:
        async for event in stream:
            if not isinstance(event, dict):
                raise Broken(f"an event of the stream is no JSON object but {str(event)[:80]!r}")
            yield event
    except (ValueError, RecursionError) as error:
        raise Broken("an event of the stream is not JSON") from error
    finally:
        await stream.close()


async def let_end(stream: AsyncGenerator[JsonObject, None]) -> None:
    """Reads a stream whose answer is whole to its end, so that its connection serves the next call.

    What goes wrong there, or takes long, is of no matter any more.
    """
    import openai

    with contextlib.suppress(TimeoutError, Broken, openai.APIError):
        async with asyncio.timeout(ENDING_S):
            async for _ in stream:
                pass


def provider_error(client: "openai.AsyncOpenAI", error: object) -> "openai.APIError":
    """An error that came in an answer of status 200, in the form in which the package raises those of a stream."""
    import httpx2
    import openai

    body = error if isinstance(error, dict) else {"message": str(error)}
    message = body.get("message")
    text = message if isinstance(message, str) and message else "the provider answered with an error"
    return openai.APIError(text, httpx2.Request("POST", client.base_url), body=body)


async def check_offered(client: "openai.AsyncOpenAI", model: str, *, compatible: bool) -> None:
    """Asks for the list of models, which costs nothing; a compatible server need not have one.

    Raises:
        UserError: there is a list, and the model is not on it.
        Broken: the answer is no list.
        openai.APIError: the server's error (a wrong key among them), as the package raises it.
    """
    import openai

    try:
        raw = await client.models.with_raw_response.list()
        entries = _decode(client, raw.http_response).get("data")
    except openai.APIStatusError as error:
        if compatible and error.status_code in NO_LIST:
            return
        raise
    except Broken:
        if compatible:
            return
        raise
    if not isinstance(entries, list):
        if compatible:
            return
        raise Broken("the list of models holds no data")
    names = {entry["id"] for entry in entries if isinstance(entry, dict) and isinstance(entry.get("id"), str)}
    if compatible and (not names or names & _aliases(model)):
        return
    if model not in names:
        raise UserError(f"{client.base_url} does not offer {model!r}; it offers: {_shown(model, names)}")


def _aliases(model: str) -> set[str]:
    """Names under which servers list what they answer to as ``model``: Ollama's tags, OpenRouter's, Gemini's folder."""
    return {model, f"{model}:latest", model.partition(":")[0], f"models/{model}"}


def _shown(model: str, names: set[str]) -> str:
    near = difflib.get_close_matches(model, sorted(names), SUGGESTED, 0.4) or sorted(names)[:SUGGESTED]
    more = len(names) - len(near)
    return (", ".join(near) or "nothing") + (f" and {more} more" if more else "")


async def _send(create: Create, arguments: JsonObject) -> Any:  # noqa: ANN401  (the package's raw answer)
    try:
        return await create(**_apart(arguments))
    except UnicodeEncodeError:
        # Half a character (an agent's cut output) has no UTF-8 form; looked for only once it was met, for speed.
        return await create(**_apart(_encodable(arguments)))


def _apart(arguments: JsonObject) -> JsonObject:
    """The same request with its bulk where the package does not go through it: that takes longer than all the rest."""
    bulk = {name: arguments[name] for name in BULK if name in arguments}
    return {**arguments, **dict.fromkeys(bulk, ()), "extra_body": {**arguments.get("extra_body", {}), **bulk}}


def _encodable(value: Any) -> Any:  # noqa: ANN401  (any JSON)
    match value:
        case str():
            return value.encode("utf-8", "replace").decode()
        case Mapping():
            return {_encodable(name): _encodable(inner) for name, inner in value.items()}
        case list() | tuple():
            return [_encodable(inner) for inner in value]
        case _:
            return value


def _kind(response: "httpx2.Response") -> str:
    return str(response.headers.get("content-type", "")).partition(";")[0].strip().lower()


def _decode(client: "openai.AsyncOpenAI", response: "httpx2.Response") -> JsonObject:
    try:
        data = json.loads(response.content)
    except (ValueError, RecursionError) as error:
        kind = _kind(response) or "of no type"
        raise Broken(f"the answer is no JSON ({kind}, {len(response.content)} bytes)") from error
    if not isinstance(data, dict):
        raise Broken(f"the answer is JSON but no object: {str(data)[:80]!r}")
    # A Response object has an "error" of its own, read together with its status.
    if data.get("error") and data.get("object") != "response":
        raise provider_error(client, data["error"])
    return data
