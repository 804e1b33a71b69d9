"""Tools of the Responses protocol as plain functions, the only tools that every protocol has.

Tools in a namespace, or in an item of the input, become functions beside the others. A custom tool, whose input is a
free text, becomes a function with one text. The calls in an answer get the form back that the agent knows.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dgm.gateway.translation.reading import keep_functions
from dgm.gateway.translation.wire import BadRequest
from dgm.messages import JsonObject, Tool, ToolCall
from dgm.wires.values import records

INPUT = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
"""Schema of a custom tool as a function."""


def with_plain_functions(body: JsonObject) -> tuple[JsonObject, list[JsonObject]]:
    """Return a request with functions as its only tools and calls, and its tools as the agent knows them.

    Raises:
        BadRequest: it has tools, and none is a function or a custom tool, or one has no name.
    """
    items = records(body.get("input"))
    additional = [tool for item in items if item.get("type") == "additional_tools" for tool in _flatten(item)]
    tools = keep_functions([*_flatten(body), *additional], ("function", "custom"))
    if not all(isinstance(tool.get("name"), str) for tool in tools):
        raise BadRequest("tools: a tool has no name", "unsupported_tool")
    named = name_tools(tools)
    names = {(str(tool.get("namespace")), str(tool.get("name"))): name for name, tool in named.items()}
    plain = {**body, "tools": [_as_function(name, tool) for name, tool in named.items()]}
    if isinstance(body.get("input"), list):
        plain["input"] = [
            _as_plain_call(item, names) for item in items if item.get("type") != "additional_tools"
        ]
    return plain, tools


def _flatten(holder: JsonObject) -> Iterator[JsonObject]:
    """Yield the tools of a request or an item, those of namespaces included, each with its ``namespace``."""
    for tool in records(holder.get("tools")):
        if tool.get("type") == "namespace":
            yield from ({**inner, "namespace": str(tool.get("name"))} for inner in _flatten(tool))
        else:
            yield tool


def _as_function(name: str, tool: JsonObject) -> JsonObject:
    function = {**tool, "type": "function", "name": name}
    if tool["type"] == "custom":
        function["parameters"] = INPUT
        form = tool.get("format")
        if isinstance(form, dict) and form.get("definition"):
            rules = f"The input follows this grammar ({form.get('syntax')}):\n{form['definition']}"
            function["description"] = f"{tool.get('description') or ''}\n\n{rules}".strip()
    return function


def _as_plain_call(item: JsonObject, names: Mapping[tuple[str, str], str]) -> JsonObject:
    if item.get("type") not in ("function_call", "custom_tool_call"):
        return item
    name = names.get((str(item.get("namespace")), str(item.get("name"))), item.get("name"))
    if item["type"] == "function_call":
        return {**item, "name": name}
    arguments = json.dumps({"input": item.get("input")}, ensure_ascii=False)
    return {"type": "function_call", "call_id": item.get("call_id"), "name": name, "arguments": arguments}


def name_tools(tools: Sequence[JsonObject]) -> dict[str, JsonObject]:
    """Return functions and custom tools by the name that the model knows: with the namespace only where it must be."""
    named = [tool for tool in tools if tool.get("type") in ("function", "custom")]
    times = Counter(str(tool.get("name")) for tool in named)
    return {
        f"{tool['namespace']}__{tool['name']}"
        if times[str(tool.get("name"))] > 1 and tool.get("namespace")
        else str(tool.get("name")): tool
        for tool in named
    }


def describe_tools(tools: Sequence[JsonObject], read: Sequence[Tool]) -> list[JsonObject]:
    """Return the tools in the form in which a response repeats them."""
    by_name = {tool.name: tool for tool in read}
    return [
        {
            "type": tool["type"],
            "name": tool["name"],
            "description": by_name[name].description,
            **(
                {"parameters": by_name[name].parameters, "strict": False}
                if tool["type"] == "function"
                else {}
            ),
            **({"namespace": tool["namespace"]} if tool.get("namespace") else {}),
        }
        for name, tool in name_tools(tools).items()
        if name in by_name
    ]


def write_call(call: ToolCall, names: Mapping[str, JsonObject], item_id: str) -> dict[str, Any]:
    """Return a call as an item of an answer, in the form of the tool that it calls.

    Args:
        call: the model's call.
        names: the tools of the request, as ``name_tools`` returns them.
        item_id: the end of the item's id.
    """
    tool = names.get(call.name, {})
    head = {"status": "completed", "call_id": call.id, "name": tool.get("name", call.name)}
    if tool.get("namespace"):
        head["namespace"] = tool["namespace"]
    if tool.get("type") == "custom":
        return {
            "id": f"ctc_{item_id}",
            "type": "custom_tool_call",
            **head,
            "input": _read_input(call.arguments),
        }
    return {"id": f"fc_{item_id}", "type": "function_call", **head, "arguments": call.arguments}


def _read_input(arguments: str) -> str:
    """Return the text that a model wrote for a custom tool, whether or not it kept to the function's form."""
    try:
        written = json.loads(arguments)
    except ValueError:
        return arguments
    text = written.get("input") if isinstance(written, dict) else written
    return text if isinstance(text, str) else arguments
