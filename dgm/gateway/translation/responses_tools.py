"""Tools of the Responses protocol as plain functions, the only tools that every protocol has.

Tools in a namespace, or in an item of the input, become functions beside the others. A custom tool, whose input is a
free text, becomes a function with one text. The calls in an answer get the form back that the agent knows.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dgm.gateway.translation import parsing
from dgm.gateway.translation.parsing import make_keys
from dgm.gateway.translation.wire import BadRequest
from dgm.messages import JsonObject, Tool, ToolCall

FUNCTION = make_keys(
    "type name description parameters namespace",
    # The schema is sent either way, whether a provider enforces it or the model follows it.
    ["strict"],
    {"defer_loading": (False,), "allowed_callers": (["direct"],)},
    None,
    ["defer_loading"],
)
CUSTOM = make_keys("type name description format namespace")
INPUT = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
"""Schema of a custom tool as a function."""


def flatten_tools(given: JsonObject) -> list[JsonObject]:
    """Return all tools of a request, those of namespaces and of the input included, each with its ``namespace``.

    Raises:
        BadRequest: a list of tools is malformed.
    """
    tools = list(_tools_in(given, "tools"))
    items = given["input"] if isinstance(given.get("input"), list) else []
    for at, item in enumerate(items):
        if isinstance(item, dict) and item.get("type") == "additional_tools":
            tools += _tools_in(item, f"input[{at}].tools")
    return tools


def _tools_in(holder: JsonObject, place: str) -> Iterator[JsonObject]:
    if holder.get("tools") is None:
        return
    for at, value in enumerate(parsing.read_entries(holder["tools"], place, parsing.MAX_TOOLS)):
        tool = parsing.read_record(value, f"{place}[{at}]")
        if tool.get("type") != "namespace":
            yield tool
            continue
        name = parsing.read_name(tool.get("name"), f"{place}[{at}].name")
        for within in _tools_in(tool, f"{place}[{at}].tools"):
            yield {**within, "namespace": name}


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


def read_tools(tools: Sequence[JsonObject]) -> tuple[Tool, ...]:
    """Return the tools as functions, under the names of ``name_tools``.

    Raises:
        BadRequest: a tool is malformed, or none is a function or a custom tool.
    """
    names = {id(tool): name for name, tool in name_tools(tools).items()}
    renamed = [{**tool, "name": names.get(id(tool), tool.get("name"))} for tool in tools]
    return parsing.read_tools(renamed, _read_tool)


def _read_tool(given: JsonObject, place: str) -> Tool:
    match given.get("type"):
        case "function":
            parsing.check_keys(given, FUNCTION, place)
            return parsing.read_function(given, place)
        case "custom":
            parsing.check_keys(given, CUSTOM, place)
            tool = parsing.read_function({**given, "parameters": INPUT}, place)
            form = (
                {} if given.get("format") is None else parsing.read_record(given["format"], f"{place}.format")
            )
            if not form.get("definition"):
                return tool
            rules = f"The input follows this grammar ({form.get('syntax')}):\n{form['definition']}"
            return Tool(tool.name, f"{tool.description}\n\n{rules}".strip(), tool.parameters)
        case kind:
            raise BadRequest(
                f"{place}: {str(kind)[:40]!r} is not offered here, only functions; no tools of a provider",
                parsing.UNSUPPORTED_TOOL,
            )


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
