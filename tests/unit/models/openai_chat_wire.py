"""Chat Completions as servers write them, and what the dialect makes of them."""

from dgm.messages import Message, Request, Role, Tool
from dgm.models.openai_chat import ChatDialect
from tests.unit.models.openai_mock import Server, stream, talk, whole

BASH = Tool("bash", "Run it.", {"type": "object", "properties": {"command": {"type": "string"}}})
GO = Request(
    (Message(Role.SYSTEM, "You are brief."), Message(Role.USER, "Go.")), (BASH,), max_output_tokens=500
)
USAGE = {
    "prompt_tokens": 1200,
    "completion_tokens": 90,
    "total_tokens": 1290,
    "prompt_tokens_details": {"cached_tokens": 1024, "cache_write_tokens": 100, "audio_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 64, "audio_tokens": 0},
}


def function(name, arguments, call_id="call_abc"):
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def completion(message, finish="stop", usage=USAGE, **choice):
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-5.2",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": None, "refusal": None, **message},
                "logprobs": None,
                "finish_reason": finish,
                **choice,
            }
        ],
        "usage": usage,
    }


def chunk(delta, finish=None, **more):
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-5.2"}
    return {**head, "choices": [choice], **more}


COUNTED = {"object": "chat.completion.chunk", "choices": [], "usage": USAGE}


def piece(index, arguments, name=None, call_id=None):
    """One piece of a tool call; index None is left out."""
    call = {} if index is None else {"index": index}
    call["function"] = {"arguments": arguments, **({"name": name} if name else {})}
    if call_id is not None:
        call |= {"id": call_id, "type": "function"}
    return {"tool_calls": [call]}


def ask(answer, request=GO, *, compatible=True, streamed=None):
    """The reply to one scripted answer."""
    if streamed is None:
        streamed = answer.headers["content-type"].startswith("text/event-stream")
    server = Server(answer)
    return talk(ChatDialect(server.client(compatible=compatible), "m", streamed, compatible), request)[0]


def sent(request, *, compatible=False, streamed=False):
    """What a request becomes on the wire."""
    answer = (
        stream(chunk({"content": "ok"}, "stop"), COUNTED)
        if streamed
        else whole(completion({"content": "ok"}))
    )
    server = Server(answer)
    talk(ChatDialect(server.client(compatible=compatible), "gpt-5.2", streamed, compatible), request)
    return server.asked[0]
