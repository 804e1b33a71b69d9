"""The three endpoints as their providers speak them: what they refuse, and how they answer.

Requests are read by ``dgm`` and checked here; answers are written here, so that a misunderstanding is not repeated.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from dgm.messages import Reply, Request, Role, Stop, WireProtocol
from dgm.wires import WIRES as READERS
from tests.support.wire_server.protocol import (
    ANTHROPIC,
    CREATED,
    EMPTY,
    OPENAI,
    REFUSED,
    Asked,
    BrainFault,
    Events,
    JsonObject,
    Refused,
    check_answered,
    counts,
    need,
    only,
    pieces,
    sign,
    signed,
    sse,
    strict_objects,
)

NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
SHARED = "model stream tools tool_choice temperature top_p metadata service_tier"
KNOWN = {
    WireProtocol.CHAT: """messages stream_options parallel_tool_calls stop n max_tokens max_completion_tokens
        reasoning_effort seed user store response_format logprobs top_logprobs frequency_penalty presence_penalty
        logit_bias prompt_cache_key safety_identifier verbosity modalities prediction prompt_cache_options
        prompt_cache_retention""",
    WireProtocol.RESPONSES: """input instructions stream_options parallel_tool_calls max_output_tokens max_tool_calls
        reasoning include store text truncation previous_response_id user prompt_cache_key prompt_cache_retention
        safety_identifier background top_logprobs prompt_cache_options""",
    WireProtocol.MESSAGES: """messages max_tokens system top_k stop_sequences thinking output_config cache_control
        container inference_geo speed diagnostics user_profile_id workspace_id""",
}
TYPED = {"bash": "bash", "memory": "memory", "text_editor": "str_replace_based_edit_tool"}
"""Types of tools that Anthropic's models know, without their dates, and the only name that each may have."""
CLIENT_TOOLS = {
    "shell": ("action", "sh"),
    "apply_patch": ("operation", "apc"),
    "local_shell": ("action", "lsh"),
}
"""Tools whose form OpenAI knows and whose work the client does: key of the arguments, beginning of ids."""
FINISH = {
    Stop.END: "stop",
    Stop.TOOL_CALLS: "tool_calls",
    Stop.LENGTH: "length",
    Stop.REFUSAL: "content_filter",
}
STOP = {Stop.END: "end_turn", Stop.TOOL_CALLS: "tool_use", Stop.LENGTH: "max_tokens", Stop.REFUSAL: "refusal"}
DECLINED = {"type": "refusal", "category": "general_harms", "explanation": "The request was declined."}
BROKEN = {Stop.LENGTH: "max_output_tokens", Stop.REFUSAL: "content_filter"}


class Wire:
    """One endpoint."""

    vendor = OPENAI
    protocol: WireProtocol
    least_output = 1

    def parse(self, data: JsonObject, digest: str) -> Asked:
        """Read a request.

        Raises:
            Refused: as the provider would.
        """
        only(data, frozenset(f"{SHARED} {KNOWN[self.protocol]}".split()))
        reader = READERS[self.protocol]
        need(data.get(reader.turns), f"Invalid '{reader.turns}': empty array.")
        self.check(data)
        request = reader.read_request(data)
        _check_request(data, request, self.least_output)
        check_answered(request.messages, at_once=self.protocol is not WireProtocol.RESPONSES)
        last = next((turn for turn in reversed(request.messages) if turn.role is Role.ASSISTANT), None)
        kinds = {_name(tool): str(tool.get("type", "function")) for tool in data.get("tools") or ()}
        return Asked(
            request,
            request.model,
            digest,
            data.get("stream") is True,
            body=data,
            reasoned=last is None or not last.calls or last.native is not None,
            kinds=kinds,
        )

    def check(self, data: JsonObject) -> None:
        """Refuse a request that breaks the protocol's own rules."""
        raise NotImplementedError

    def whole(self, asked: Asked, reply: Reply) -> dict[str, Any]:
        """Return the answer in one piece."""
        raise NotImplementedError

    def events(self, asked: Asked, whole: JsonObject, piece: int) -> Events:
        """Yield an answer as events, with texts in pieces of this size."""
        raise NotImplementedError

    def error_event(self, error: Refused) -> tuple[str, JsonObject]:
        """Return an error in the midst of a stream."""
        return "", error.record(self.vendor, "req_in_stream")


def _name(tool: JsonObject) -> str:
    kind = str(tool.get("type"))
    inner = tool.get(kind) if isinstance(tool.get(kind), dict) else tool
    return str((inner or tool).get("name") or kind)


def _check_request(data: JsonObject, request: Request, least_output: int) -> None:
    for key, most in (("temperature", 2), ("top_p", 1)):
        value = data.get(key)
        need(value is None or 0 <= value <= most, f"Invalid '{key}': must be a number from 0 to {most}.")
    limit = request.max_output_tokens
    need(limit is None or limit >= least_output, f"Invalid limit: below minimum value {least_output}.")
    need(data.get("tools") != [], "Invalid 'tools': empty array.")
    names = [tool.name for tool in request.tools]
    for tool in request.tools:
        need(NAME.fullmatch(tool.name), f"Invalid name of a tool: {tool.name!r}.")
        typed = not tool.parameters or tool.parameters.get("type") == "object"
        need(typed, f"Invalid schema for function '{tool.name}'.")
    for tool in data.get("tools") or ():
        function = tool.get("function") or tool
        if function.get("strict") is True:
            strict_objects(function.get("parameters") or {}, all_required=True)
    kind, _, name = request.tool_choice.partition(":")
    need(kind in ("auto", "none") or names, "'tool_choice' is only allowed when 'tools' are specified.")
    need(kind != "tool" or name in names, f"Tool choice '{name}' not found in 'tools'.")
    for call in (call for turn in request.messages for call in turn.calls):
        need(call.id and call.name, "A tool call needs an id and a name.")


class Chat(Wire):
    protocol = WireProtocol.CHAT

    def check(self, data: JsonObject) -> None:
        need(data.get("n") in (None, 1), "Invalid 'n': this server gives one choice.")
        options = data.get("stream_options")
        need(options is None or data.get("stream"), "The 'stream_options' parameter needs 'stream'.")
        both = data.get("max_tokens") is not None and data.get("max_completion_tokens") is not None
        need(not both, "Setting 'max_tokens' and 'max_completion_tokens' is not supported.")
        need(len(data.get("stop") or ()) <= 4 or isinstance(data["stop"], str), "Invalid 'stop'.")
        _check_form(data.get("response_format"))
        for turn in data["messages"]:
            role, calls = turn.get("role"), turn.get("tool_calls")
            need(role in ("system", "developer", "user", "assistant", "tool"), f"Invalid value: '{role}'.")
            need(calls != [], "Invalid 'tool_calls': empty array.")
            silent = role == "assistant" and (calls or turn.get("refusal"))
            need(turn.get("content") is not None or silent, "Invalid value for 'content': got null.")
            need(role != "tool" or isinstance(turn.get("tool_call_id"), str), "'tool_call_id' is missing.")
            for call in calls or ():
                kind = call.get("type")
                text = (call.get(kind) or {}).get("input" if kind == "custom" else "arguments")
                need(isinstance(text, str), f"Invalid call of a tool: {call}.")

    def whole(self, asked: Asked, reply: Reply) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": reply.text or None, "refusal": None}
        if reply is REFUSED:
            message |= {"content": None, "refusal": reply.text}
        if reply.reasoning:
            message["reasoning_content"] = reply.reasoning
        if reply.calls:
            message["tool_calls"] = [_chat_call(asked, call) for call in reply.calls]
        finish = "stop" if reply is REFUSED else FINISH[reply.stop]
        first = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
        used = counts(asked, reply)
        usage = {
            "prompt_tokens": used.input,
            "completion_tokens": used.output,
            "total_tokens": used.input + used.output,
            "prompt_tokens_details": {"cached_tokens": used.cached},
            "completion_tokens_details": {"reasoning_tokens": used.reasoning},
        }
        head = {"id": f"chatcmpl-{asked.digest[:24]}", "object": "chat.completion", "created": CREATED}
        return {**head, "model": asked.model, "choices": [] if reply is EMPTY else [first], "usage": usage}

    def events(self, asked: Asked, whole: JsonObject, piece: int) -> Events:
        counted = bool((asked.body.get("stream_options") or {}).get("include_usage"))
        head = {**whole, "object": "chat.completion.chunk", "usage": None}

        def chunk(delta: JsonObject, finish: str | None = None) -> tuple[str, JsonObject]:
            choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
            return "", {key: one for key, one in {**head, "choices": [choice]}.items() if counted or one}

        for choice in whole["choices"]:
            message = choice["message"]
            yield chunk({"role": "assistant", "content": "", "refusal": None})
            for key in ("reasoning_content", "content", "refusal"):
                yield from (chunk({key: part}) for part in pieces(message.get(key) or "", piece))
            for index, call in enumerate(message.get("tool_calls", ())):
                kind, key = call["type"], "input" if call["type"] == "custom" else "arguments"
                first = {**call, kind: {**call[kind], key: ""}}
                yield chunk({"tool_calls": [{"index": index, **first}]})
                for part in pieces(call[kind][key], piece):
                    yield chunk({"tool_calls": [{"index": index, kind: {key: part}}]})
            yield chunk({}, choice["finish_reason"])
        if counted or not whole["choices"]:
            yield "", {**head, "choices": [], "usage": whole["usage"]}
        yield "", "[DONE]"


def _chat_call(asked: Asked, call: Any) -> JsonObject:
    if asked.kinds.get(call.name) == "custom":
        return {"id": call.id, "type": "custom", "custom": {"name": call.name, "input": call.arguments}}
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


class Responses(Wire):
    protocol = WireProtocol.RESPONSES
    least_output = 16

    def check(self, data: JsonObject) -> None:
        code = "previous_response_not_found"
        need(data.get("previous_response_id") is None, "Previous response not found.", code)
        _check_form((data.get("text") or {}).get("format"))
        items = data["input"] if isinstance(data["input"], list) else []
        for item, following in pairwise([*items, {}]):
            kind, role, name = str(item.get("type", "message")), item.get("role"), str(item.get("id"))
            if kind == "message" and isinstance(item.get("content"), list):
                wanted = ("output_text", "refusal") if role == "assistant" else ("input_text",)
                kinds = {part.get("type") for part in item["content"]}
                need(kinds <= set(wanted), f"Invalid parts: {kinds}, expected {wanted}.")
            if kind == "function_call":
                fits = "id" not in item or name.startswith("fc")
                need(fits, f"Invalid id '{name}': expected to begin with 'fc'.")
                need(isinstance(item.get("arguments"), str), "Invalid 'arguments': expected a string.")
            if kind == "reasoning":
                stored, content = data.get("store") is not False, item.get("encrypted_content")
                hidden, _, signature = str(content).rpartition(".")
                valid = stored if content is None else signed(signature, "reasoning", name, hidden)
                need(valid, "The encrypted content could not be verified.")
                follows = str(following.get("type")).endswith(("reasoning", "_call"))
                follows = follows or following.get("role") == "assistant"
                need(follows, f"Item '{name}' of type 'reasoning' needs the item that followed it.")

    def whole(self, asked: Asked, reply: Reply) -> dict[str, Any]:
        output: list[dict[str, Any]] = []
        if reply.reasoning:
            name, summary = f"rs_{asked.digest[:32]}", [{"type": "summary_text", "text": reply.reasoning}]
            output.append({"id": name, "type": "reasoning", "summary": summary})
            if "reasoning.encrypted_content" in (asked.body.get("include") or ()):
                hidden = reply.reasoning.encode().hex()
                output[0]["encrypted_content"] = f"{hidden}.{sign('reasoning', name, hidden)}"
        if reply.text:
            said = {"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}
            part = {"type": "refusal", "refusal": reply.text} if reply is REFUSED else said
            status = "incomplete" if reply.stop is Stop.LENGTH else "completed"
            head = {"id": f"msg_{asked.digest[:32]}", "type": "message", "status": status}
            output.append({**head, "role": "assistant", "content": [part]})
        for number, call in enumerate(reply.calls):
            output.append(_responses_call(asked, call, f"{asked.digest[:30]}{number:02d}"))
        used = counts(asked, reply)
        usage = {
            "input_tokens": used.input,
            "input_tokens_details": {"cached_tokens": used.cached, "cache_write_tokens": used.written},
            "output_tokens": used.output,
            "output_tokens_details": {"reasoning_tokens": used.reasoning},
            "total_tokens": used.input + used.output,
        }
        reason = None if reply is REFUSED else BROKEN.get(reply.stop)
        bare = {"strict": False, "description": None, "parameters": {}}
        tools = asked.body.get("tools") or ()
        return {
            "id": f"resp_{asked.digest[:40]}",
            "object": "response",
            "created_at": CREATED,
            "status": "incomplete" if reason else "completed",
            "error": None,
            "incomplete_details": {"reason": reason} if reason else None,
            "model": asked.model,
            "output": output,
            "usage": usage,
            "metadata": {},
            "parallel_tool_calls": True,
            "tool_choice": asked.body.get("tool_choice") or "auto",
            "tools": [{**bare, **tool} if tool.get("type") == "function" else tool for tool in tools],
        }

    def events(self, asked: Asked, whole: JsonObject, piece: int) -> Events:
        for number, (kind, data) in enumerate(_responses_steps(whole, piece)):
            yield kind, {"type": kind, "sequence_number": number, **data}

    def error_event(self, error: Refused) -> tuple[str, JsonObject]:
        code = error.code or error.kind(OPENAI)
        data = {
            "type": "error",
            "code": code,
            "message": error.message,
            "param": None,
            "sequence_number": 9,
        }
        return "error", data


def _responses_call(asked: Asked, call: Any, ending: str) -> dict[str, Any]:
    kind, head = asked.kinds.get(call.name, "function"), {"status": "completed", "call_id": call.id}
    if kind in CLIENT_TOOLS:
        key, prefix = CLIENT_TOOLS[kind]
        return {"id": f"{prefix}_{ending}", "type": f"{kind}_call", **head, key: json.loads(call.arguments)}
    if kind == "custom":
        item = {"id": f"ctc_{ending}", "type": "custom_tool_call", **head}
        return {**item, "name": call.name, "input": call.arguments}
    item = {"id": f"fc_{ending}", "type": "function_call", **head}
    return {**item, "name": call.name, "arguments": call.arguments}


def _responses_steps(whole: JsonObject, piece: int) -> Iterator[tuple[str, JsonObject]]:
    unknown = {"status": "in_progress", "incomplete_details": None, "usage": None, "output": []}
    yield "response.created", {"response": {**whole, **unknown}}
    yield "response.in_progress", {"response": {**whole, **unknown}}
    for index, item in enumerate(whole["output"]):
        at = {"output_index": index}
        keys = {"reasoning": "summary", "message": "content", "custom_tool_call": "input"}
        key = keys.get(item["type"], "arguments")
        bare = {**item, **({"status": "in_progress"} if "status" in item else {})}
        if key in item:
            bare[key] = type(item[key])()
        yield "response.output_item.added", {**at, "item": bare}
        yield from _responses_inner(item, {"item_id": item["id"], **at}, piece)
        yield "response.output_item.done", {**at, "item": item}
    yield f"response.{whole['status']}", {"response": whole}


def _responses_inner(item: JsonObject, inner: JsonObject, piece: int) -> Iterator[tuple[str, JsonObject]]:
    more: JsonObject = {}
    match item["type"]:
        case "reasoning":
            key, name, place = "text", "reasoning_summary_text", {**inner, "summary_index": 0}
            part, around = item["summary"][0], "reasoning_summary_part"
        case "message":
            part, around, place = item["content"][0], "content_part", {**inner, "content_index": 0}
            key, name = ("refusal", "refusal") if part["type"] == "refusal" else ("text", "output_text")
            more = {} if key == "refusal" else {"logprobs": []}
        case "custom_tool_call":
            key, name, place, part, around = "input", "custom_tool_call_input", inner, item, ""
        case "function_call":
            key, name, place, part, around = "arguments", "function_call_arguments", inner, item, ""
            more = {"name": item["name"]}
        case _:
            return
    if around:
        yield f"response.{around}.added", {**place, "part": {**part, key: ""}}
    for delta in pieces(part[key], piece):
        yield f"response.{name}.delta", {**place, "delta": delta, **({} if "name" in more else more)}
    yield f"response.{name}.done", {**place, key: part[key], **more}
    if around:
        yield f"response.{around}.done", {**place, "part": part}


def _check_form(form: Any) -> None:
    """Refuse a form of the answer that OpenAI's endpoints do not take."""
    if form is None:
        return
    need(form.get("type") in ("text", "json_object", "json_schema"), f"Invalid format: {form}.")
    if form["type"] == "json_schema":
        inner = form.get("json_schema") or form
        need(isinstance(inner.get("name"), str) and isinstance(inner.get("schema"), dict), "Invalid format.")
        if inner.get("strict") is True:
            strict_objects(inner["schema"], all_required=True)


class Messages(Wire):
    protocol, vendor = WireProtocol.MESSAGES, ANTHROPIC

    def check(self, data: JsonObject) -> None:
        if data.get("thread") is not None:
            # The client's tool runner asks for it unbidden, and goes on without where it hears this.
            details = {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}
            raise Refused(400, "thread: not supported for this request", details=details)
        need(type(data.get("max_tokens")) is int, "max_tokens: Field required")
        need((data.get("temperature") or 0) <= 1, "temperature: must be at most 1")
        marks = json.dumps(data).count('"cache_control": {')
        need(marks <= 4, "A maximum of 4 blocks with cache_control may be provided.")
        form = (data.get("output_config") or {}).get("format")
        if form is not None:
            need(form.get("type") == "json_schema", "output_config.format.schema: Field required")
            strict_objects(form["schema"], all_required=False)
        _check_thinking(data)
        for tool in data.get("tools") or ():
            kind = str(tool.get("type", "custom"))
            name = TYPED.get(re.sub(r"_\d{8}$", "", kind))
            typed = tool.get("name") in (name, "str_replace_editor") and "input_schema" not in tool
            schema = (tool.get("input_schema") or {}).get("type") == "object"
            need(schema if kind == "custom" else name and typed, f"tools: '{kind}' is not offered so")
        turns = [turn for turn in data["messages"] if turn.get("role") != "system"]
        for at, turn in enumerate(turns):
            role, content = turn.get("role"), turn.get("content")
            need(role == ("assistant" if at % 2 else "user"), f"messages.{at}: roles must alternate")
            last = at == len(turns) - 1 and role == "assistant"
            need(content or last, f"messages.{at}: all messages must have non-empty content")
            _check_blocks([{"type": "text", "text": content}] if isinstance(content, str) else content, at)

    def whole(self, asked: Asked, reply: Reply) -> dict[str, Any]:
        blocks: list[dict[str, Any]] = []
        if reply.reasoning:
            signature = sign("thinking", reply.reasoning)
            blocks.append({"type": "thinking", "thinking": reply.reasoning, "signature": signature})
        if reply.text and reply is not REFUSED:
            blocks.append({"type": "text", "text": reply.text, "citations": None})
        for call in reply.calls:
            try:
                given = dict(json.loads(call.arguments))
            except (ValueError, TypeError) as error:
                raise BrainFault(f"arguments must be an object, not {call.arguments[:60]!r}") from error
            blocks.append({"type": "tool_use", "id": call.id, "name": call.name, "input": given})
        used = counts(asked, reply)
        usage = {
            "input_tokens": used.input - used.cached - used.written,
            "cache_creation_input_tokens": used.written,
            "cache_read_input_tokens": used.cached,
            "output_tokens": used.output,
            "output_tokens_details": {"thinking_tokens": used.reasoning},
        }
        head = {"id": f"msg_{asked.digest[:24]}", "type": "message", "role": "assistant"}
        stop = {"stop_reason": STOP[reply.stop], "stop_sequence": None}
        more = {"stop_details": DECLINED} if reply is REFUSED else {}
        return {**head, "model": asked.model, "content": blocks, **stop, **more, "usage": usage}

    def events(self, asked: Asked, whole: JsonObject, piece: int) -> Events:
        for kind, data in _message_steps(whole, piece):
            yield kind, {"type": kind, **data}

    def error_event(self, error: Refused) -> tuple[str, JsonObject]:
        return "error", error.record(ANTHROPIC, "req_in_stream")


def _check_thinking(data: JsonObject) -> None:
    thinking = data.get("thinking") or {}
    if thinking.get("type") == "enabled":
        budget = thinking.get("budget_tokens", 0)
        need(1024 <= budget < data["max_tokens"], "`max_tokens` must be greater than the budget")
        forced = (data.get("tool_choice") or {}).get("type") in ("any", "tool")
        need(not forced, "Thinking may not be enabled when tool_choice forces tool use.")
    if thinking.get("type") in ("enabled", "adaptive"):
        need(data.get("temperature") in (None, 1), "`temperature` must be 1 when thinking is enabled")


def _check_blocks(blocks: Sequence[JsonObject], at: int) -> None:
    for block in blocks:
        match block.get("type"):
            case "text":
                need(str(block["text"]).strip(), "messages: text content blocks must not be blank")
            case "tool_use":
                valid = NAME.fullmatch(str(block.get("id"))) and isinstance(block.get("input"), dict)
                need(valid, f"messages.{at}: tool_use needs an id and an object as input")
            case "thinking":
                valid = signed(block.get("signature"), "thinking", str(block.get("thinking")))
                need(valid, f"messages.{at}: Invalid `signature` in `thinking` block")
            case kind:
                need(kind == "tool_result", f"messages.{at}: Input tag '{kind}' found using 'type'")


def _message_steps(whole: JsonObject, piece: int) -> Iterator[tuple[str, JsonObject]]:
    usage = {**whole["usage"], "output_tokens": 1, "output_tokens_details": None}
    begun = {"content": [], "stop_reason": None, "usage": usage}
    yield "message_start", {"message": {**whole, **begun}}
    for index, block in enumerate(whole["content"]):
        kind = block["type"]
        if kind == "tool_use":
            first, name, key = {**block, "input": {}}, "input_json_delta", "partial_json"
            parts = ["", *pieces(json.dumps(block["input"], ensure_ascii=False), piece)]
        else:
            first, name, key = {**block, kind: ""}, f"{kind}_delta", kind
            parts = list(pieces(block[kind], piece))
        if kind == "thinking":
            first["signature"] = ""
        deltas = [{"type": name, key: part} for part in parts]
        if kind == "thinking":
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        yield "content_block_start", {"index": index, "content_block": first}
        yield from (("content_block_delta", {"index": index, "delta": delta}) for delta in deltas)
        yield "content_block_stop", {"index": index}
        if index == 0:
            yield "ping", {}
    ended = {key: whole[key] for key in ("stop_reason", "stop_sequence", "stop_details") if key in whole}
    yield "message_delta", {"delta": ended, "usage": whole["usage"]}
    yield "message_stop", {}


def chunks_of(wire: Wire, asked: Asked, reply: Reply, piece: int) -> list[bytes]:
    """Return a reply as bytes: its events, with texts in pieces of this size, or its one body."""
    whole = wire.whole(asked, reply)
    if asked.stream:
        return [sse(name, data) for name, data in wire.events(asked, whole, piece)]
    return [json.dumps(whole).encode()]


WIRES: Mapping[str, Wire] = {
    "/v1/chat/completions": Chat(),
    "/v1/responses": Responses(),
    "/v1/messages": Messages(),
}
