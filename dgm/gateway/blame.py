"""Whose failure it is when a model does not answer: the request's, if a neutral question is answered beside it.

An agent must not gain from ending without a verdict. So a request that fails while its model answers a neutral
question is sent once more, and then refused for good: its agent hears that, and is graded like any other.
What befalls the neutral question too is a failure of the model, of its provider or of this machine.
"""

import json

from dgm.domain import Usage
from dgm.errors import Infrastructure, PluginFault
from dgm.gateway.ledger import AnyRequest
from dgm.messages import (
    LEFT_OPEN,
    NO_TOOLS,
    Message,
    Reply,
    Request,
    RequestRefused,
    Role,
    WireReply,
    WireRequest,
)
from dgm.plugins import find_faulty_plugin
from dgm.protocols import LentModel, WireModel
from dgm.wires import WIRES

TRIES = 2
"""Number of times that a request or a job fails beside an answered question before it is its agent's own failure."""
FAILED = "request_failed"
"""Error code of a request that failed ``TRIES`` times while its model answered a neutral question."""
OWN_WORDS = (FAILED, LEFT_OPEN, NO_TOOLS)
"""Codes of refusals whose body is dgm's own."""
REFUSAL_BYTES = 20_000
"""Maximum bytes that are kept of the body of a refusal."""
QUESTION = "Reply with the word OK."
QUESTION_OUTPUT = 64
"""Output tokens of the answer to the neutral question."""
QUESTION_S = 60.0
"""Maximum seconds for the neutral question."""


def neutral_request(model: LentModel, output_tokens: int) -> AnyRequest:
    """Return a tiny ordinary request to a model, in its own protocol."""
    output = min(QUESTION_OUTPUT, output_tokens)
    request = Request((Message(Role.USER, QUESTION),), model=model.name, max_output_tokens=output)
    if not isinstance(model, WireModel):
        return request
    return WireRequest(model.protocol, WIRES[model.protocol].write_request(request, model.own_name))


def refuse_failed(failure: Exception, request: AnyRequest) -> RequestRefused:
    """Return the refusal of a request that failed ``TRIES`` times."""
    words = f"the request failed {TRIES} times while its model answered another one: {failure}"
    return make_refusal(FAILED, " ".join(words.split())[:500], request)


def make_refusal(code: str, words: str, request: AnyRequest) -> RequestRefused:
    """Return the refusal of a request, with a body in the words of its protocol."""
    content = b""
    if isinstance(request, WireRequest):
        content = WIRES[request.protocol].render_error(400, code, words)
    return RequestRefused(code, words, content=content)


def reply_of_refusal(request: AnyRequest, refusal: RequestRefused) -> Reply | WireReply:
    """Return the reply that stands for a refusal in the journal; a long body is left out."""
    if isinstance(request, Request):
        return Reply(str(refusal), error=refusal.code, usage=Usage(calls=1))
    if refusal.code in OWN_WORDS and not refusal.content:
        refusal = make_refusal(refusal.code, str(refusal), request)
    content = refusal.content if len(refusal.content) <= REFUSAL_BYTES else b""
    content = content or str(refusal).encode("utf-8", "replace")[:REFUSAL_BYTES]
    return WireReply(
        request.protocol,
        content,
        stream=False,
        usage=Usage(calls=1),
        error=refusal.code,
        status=refusal.status,
        own=refusal.own,
    )


def raise_refusal(reply: Reply | WireReply) -> None:
    """Raise the refusal that a recorded reply stands for; do nothing for an answer.

    Raises:
        RequestRefused: the reply is a refusal.
    """
    if not reply.error:
        return
    if isinstance(reply, Reply):
        raise RequestRefused(reply.error, reply.text)
    message = words_of(reply.error, reply.content)
    raise RequestRefused(reply.error, message, own=reply.own, status=reply.status, content=reply.content)


def words_of(code: str, content: bytes) -> str:
    """Return the message in the body of a refusal; the body itself, unless ``make_refusal`` made it."""
    text = content.decode("utf-8", "replace")
    if code not in OWN_WORDS:
        return text
    try:
        return str(json.loads(text)["error"]["message"])
    except (ValueError, LookupError, TypeError):
        return text


def as_infrastructure(error: Exception) -> Infrastructure:
    """Return the failure as ``Infrastructure``; a plug-in's failure is named, and its cause is a ``PluginFault``."""
    if isinstance(error, PluginFault):
        fault = error
    elif whose := find_faulty_plugin(error):
        fault = PluginFault(f"{whose}: {type(error).__name__}: {error}")
    else:
        return Infrastructure(f"{type(error).__name__}: {error}")
    failure = Infrastructure(str(fault))
    failure.__cause__ = fault
    return failure
