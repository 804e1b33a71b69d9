"""The conversation as plain text: actions are fenced blocks, for models without tools."""

import json
import re

from agent import prompts, shell, tools
from agent.memory import Call

NAME = "text"
FENCE = re.compile(r"^\s*(`{3,}|~{3,})[ \t]*([\w+-]*)[ \t]*(.*?)\s*$")
HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
EDIT = re.compile(r"^<{5,} ?OLD[ \t]*\n(.*?)^={5,}[ \t]*\n(.*?)^>{5,} ?NEW[ \t]*$", re.DOTALL | re.MULTILINE)
SHELLS = ("bash", "sh", "shell")


def request(kind, history):
    """Return the body of a request: messages alone."""
    system = prompts.system(kind, NAME, shell.COMMAND_TIMEOUT_S)
    messages = [{"role": "system", "content": system}, {"role": "user", "content": history.opening}]
    command, output = history.look
    messages += [{"role": "assistant", "content": prompts.FIRST_LOOK % command}]
    messages += [{"role": "user", "content": "%s\n\n%s" % (output, prompts.GO_ON)}]
    for turn in history.turns:
        # Calls from before a change to text are written out.
        written = turn.calls if turn.message.get("tool_calls") else []
        said = "\n\n".join([turn.said, *(write(call) for call in written)])
        told = "\n\n".join([*turn.results, *([turn.note] if turn.note else [])])
        if said.strip():
            messages += [{"role": "assistant", "content": said.strip()}]
            messages += [{"role": "user", "content": told.strip() or "(no output)"}]
        else:
            messages[-1]["content"] += "\n\n" + told
    return {"messages": messages}


def write(call):
    """A call as the block that stands for it."""
    if call.name == "bash":
        return "```bash\n%s\n```" % call.arguments.get("command", "")
    if call.name == "submit":
        return "```bash\nsubmit\n```"
    return "```json\n%s\n```" % json.dumps({"name": call.name, "arguments": call.arguments})


def parse(message, number):
    """The actions of a reply: edits, up to the first shell command; blocks first, else calls written as JSON."""
    text = content(message)
    found = read_blocks(text) or read_json(text)
    calls = []
    for name, arguments in found:
        calls.append(Call("text_%d_%d" % (number, len(calls)), name, arguments))
        if name == "bash":
            break
    return calls


def content(message):
    """The text of a reply, without what it thought aloud before."""
    text = message.get("content") or ""
    if isinstance(text, list):
        text = "\n".join(str(part.get("text", "")) for part in text if isinstance(part, dict))
    return text.rpartition("</think>")[2]


def keep_whole(text):
    """A text that was cut off up to the end of its last whole block; nothing if it holds none."""
    lines = text.split("\n")
    ends = [after for _, _, _, after in split_blocks(text) if after <= len(lines)]
    return "\n".join(lines[: max(ends, default=0)])


def read_blocks(text):
    """Names and arguments of the actions in fenced blocks."""
    blocks = split_blocks(text)
    found = []
    for kind, rest, body, _ in blocks:
        if kind in SHELLS or (not kind and len(blocks) == 1 and not read_json(body)):
            found += [("bash", {"command": body})] if body.strip() else []
        elif kind == "create" and rest:
            found.append(("create", {"path": rest, "content": body + "\n"}))
        elif kind == "edit" and rest:
            pairs = EDIT.findall(body)
            found += [("edit", {"path": rest, "old": old, "new": new}) for old, new in pairs]
            # A block without marks is answered by the tool's own error.
            found += [] if pairs else [("edit", {"path": rest})]
    return found


def split_blocks(text):
    """Kind, rest of the first line, body and line after each fenced block; the last may lack its end."""
    lines, blocks, at = text.split("\n"), [], 0
    while at < len(lines):
        opening = FENCE.match(lines[at])
        at += 1
        if not opening:
            continue
        end = find_end(lines, at, opening[1], opening[2].lower() in SHELLS)
        end = len(lines) if end is None else end
        blocks.append((opening[2].lower(), opening[3], "\n".join(lines[at:end]), end + 1))
        at = end + 1
    return blocks


def find_end(lines, first, fence, is_shell):
    """The line that closes a block: not one inside of a here-document, unless that never ends."""
    word, fallback = "", None
    for at in range(first, len(lines)):
        if lines[at].strip() == fence:
            if not word:
                return at
            fallback = at if fallback is None else fallback
        if word and lines[at].strip() == word:
            word = ""
        elif is_shell and not word:
            begun = HEREDOC.search(lines[at])
            word = begun[2] if begun else ""
    return fallback


def read_json(text):
    """Names and arguments of calls that a model wrote as JSON text."""
    known = [tool["function"]["name"] for tool in tools.SCHEMAS]
    found, decoder = [], json.JSONDecoder(strict=False)
    for start in re.finditer(r'\{\s*"(?:name|tool)"\s*:', text):
        try:
            call, _ = decoder.raw_decode(text, start.start())
        except ValueError:
            continue
        name = call.get("name", call.get("tool"))
        arguments = call.get("arguments", call.get("parameters", {}))
        if name in known and isinstance(arguments, dict):
            found.append((name, arguments))
    return found
