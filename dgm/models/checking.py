"""The check of a model before money flows: one small real call with a tool and the parameters that agents use."""

from dgm.errors import ProviderRefuses
from dgm.messages import (
    NO_TOOLS,
    Message,
    Request,
    RequestRefused,
    Role,
    Tool,
    WireProtocol,
    WireReply,
    WireRequest,
)
from dgm.models.abilities import Change
from dgm.models.connections import Connection
from dgm.models.fault_kinds import judge_transport
from dgm.models.listing import list_models, suggest_url
from dgm.models.pricing import REPLY_TOKENS
from dgm.wires import WIRES, whole_of

TOOL = Tool(
    "bash",
    "Run a shell command and return its output.",
    {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
)
QUESTION = "This is a check of the connection. Call the tool bash once with the command `true`."
NO_TOOL_CALL = "this model does not call tools: it answered the check, which asks for a call, in text"


def check_request(
    protocol: WireProtocol, own_name: str, *, tools: bool, output: int = REPLY_TOKENS
) -> WireRequest:
    """Return the request of the check in a protocol; without ``tools`` it offers none."""
    request = Request(
        messages=(Message(Role.SYSTEM, "You are a programmer."), Message(Role.USER, QUESTION)),
        tools=(TOOL,) if tools else (),
        temperature=0.0,
        max_output_tokens=output,
    )
    return WireRequest(protocol, WIRES[protocol].write_request(request, own_name))


def check_warnings(reply: WireReply, request: WireRequest, *, tools: bool) -> list[str]:
    """Return warnings about the answer; empty if it calls the tool within its output limit."""
    wire, body = WIRES[reply.protocol], request.body
    words = []
    limit = wire.output_limit(body)
    if limit is not None and reply.usage.output_tokens > limit:
        words.append(overrun_warning(limit, reply.usage.output_tokens))
    answer = wire.read_reply(whole_of(reply, body), body)
    if tools and not answer.calls:
        words.append(NO_TOOL_CALL)
    return words


def describe_refused_check(refusal: RequestRefused) -> str:
    """Return the refusal of the check in a line, with advice where the model takes no tools."""
    if refusal.code != NO_TOOLS:
        return str(refusal)
    return f"{refusal}; agents that act by text need none: set tools = false in the provider's settings"


def overrun_warning(asked: int, billed: int) -> str:
    """Return the warning about a server that returned more output than the limit."""
    return (
        f"the server gave {billed:,} output tokens where at most {asked:,} were asked for, so a budget may be overrun "
        "by one call"
    )


async def read_listed_sizes(connection: Connection, own_name: str) -> Change:
    """Return the model's sizes from the provider's list of models; an empty change if it does not give them."""
    try:
        rows = await list_models(connection)
    except Exception as error:
        if judge_transport(error) is None:
            raise
        return Change()
    row = next((row for row in rows or () if row.id == own_name), None)
    return Change(context=row.context, max_output=row.max_output) if row else Change()


async def add_url_suggestion(connection: Connection, error: ProviderRefuses) -> ProviderRefuses:
    """Return the error with the probably intended base URL, if another one answers."""
    try:
        meant = await suggest_url(connection)
    except Exception as other:
        if judge_transport(other) is None:
            raise
        meant = None
    return ProviderRefuses(f"{error}; did you mean base_url = {meant}?") if meant else error
