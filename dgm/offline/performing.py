"""Translation of moves to calls of the scaffold's tools, and of such calls back to moves.

The two directions belong together: the model knows its past moves only from its own calls in the conversation.
"""

import json
import re
from collections.abc import Mapping
from shlex import quote

from dgm.messages import ToolCall
from dgm.offline.capabilities import Toolbox, ToolRole, Usable
from dgm.offline.files import FileView
from dgm.offline.moves import Edit, Move, RunCommand, RunTests, View

_TESTS = "python3 -m unittest"
_VIEW = re.compile(r"^wc -l (\S+|'[^']+'); grep -n '' (\S+|'[^']+')(?: \| sed -n '(\d+),(\d+|\$)p')?$")
_EDIT = re.compile(
    r"\A(?:cd '?\S+'? && )?python3 - <<'END_OF_EDIT'\n.*^edit = json\.loads\(([^\n]*)\)$", re.M | re.S
)
_EDIT_SCRIPT = """python3 - <<'END_OF_EDIT'
import json, sys
edit = json.loads({text!r})
text = open(edit["path"], encoding="utf-8", newline="").read()
if text.count(edit["old"]) != 1:
    sys.exit("error: the text occurs %d times" % text.count(edit["old"]))
open(edit["path"], "w", encoding="utf-8", newline="").write(text.replace(edit["old"], edit["new"]))
print("edited " + edit["path"])
END_OF_EDIT"""


def perform(move: Move, toolbox: Toolbox, files: Mapping[str, FileView], identifier: str) -> ToolCall | None:
    """Return the call that carries out a move, or ``None`` if the tools cannot."""
    match move:
        case RunCommand(command):
            return _call(identifier, toolbox.get(ToolRole.SHELL), command=command)
        case RunTests(targets):
            return _run_tests(targets, toolbox, identifier)
        case View():
            return _view(move, toolbox, identifier)
        case Edit():
            return _edit(move, toolbox, files.get(move.path), identifier)


def understand(call: ToolCall, toolbox: Toolbox) -> tuple[ToolRole, Mapping[str, str]] | None:
    """Return a call's role and its arguments by slot; ``None`` for a call that cannot be understood."""
    tool = next((tool for tool in toolbox.values() if tool.name == call.name), None)
    if tool is None:
        return None
    try:
        given = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return None
    if not isinstance(given, dict):
        return None
    return tool.role, {slot: str(given[name]) for slot, name in tool.slots.items() if name in given}


def move_of(role: ToolRole, slots: Mapping[str, str], files: Mapping[str, FileView]) -> Move | None:
    """Return the move that a call stands for; ``None`` if it stands for none."""
    match role:
        case ToolRole.SHELL:
            return _shell_move(slots.get("command", ""))
        case ToolRole.VIEW:
            return View(slots.get("path", ""), _number(slots.get("first"), 1), _number(slots.get("last"), 0))
        case ToolRole.REPLACE:
            return Edit(slots.get("path", ""), slots.get("old", ""), slots.get("new", ""))
        case ToolRole.TEST:
            return RunTests(tuple(slots.get("target", "").split()))
        case ToolRole.LINES | ToolRole.WRITE:
            return _whole_edit(slots, files)
        case _:
            return None


def _number(text: str | None, default: int) -> int:
    return int(text) if text and text.isdigit() else default


def _shell_move(command: str) -> Move:
    seen = _VIEW.match(command)
    if seen:
        last = seen[4]
        return View(seen[1].strip("'"), int(seen[3] or 1), 0 if last in (None, "$") else int(last))
    if command == _TESTS or (command.startswith(_TESTS + " ") and "\n" not in command and ";" not in command):
        return RunTests(tuple(command[len(_TESTS) :].split()))
    edited = _EDIT.match(command)
    if edited:
        found = json.loads(_literal(edited[1]))
        return Edit(found["path"], found["old"], found["new"])
    return RunCommand(command)


def _literal(text: str) -> str:
    import ast

    return str(ast.literal_eval(text))


def _whole_edit(slots: Mapping[str, str], files: Mapping[str, FileView]) -> Edit | None:
    """Return a line or file replacement as an edit of the known text; ``None`` if that text is not known."""
    view = files.get(slots.get("path", ""))
    if view is None:
        return None
    if "first" not in slots:
        return Edit(view.path, view.text, slots.get("content", ""))
    first, last = _number(slots.get("first"), 1), _number(slots.get("last"), 1)
    if any(number not in view.lines for number in range(first, last + 1)):
        return None
    old = "".join(view.lines[number] + "\n" for number in range(first, last + 1))
    new = slots.get("content", "")
    return Edit(view.path, old, new if new.endswith("\n") or not new else new + "\n")


def _call(identifier: str, tool: Usable | None, **slots: str | int) -> ToolCall | None:
    if tool is None:
        return None
    arguments: dict[str, str | int] = dict(tool.fixed)
    arguments.update({tool.slots[slot]: value for slot, value in slots.items() if slot in tool.slots})
    return ToolCall(identifier, tool.name, json.dumps(arguments))


def _run_tests(targets: tuple[str, ...], toolbox: Toolbox, identifier: str) -> ToolCall | None:
    tester = toolbox.get(ToolRole.TEST)
    if tester is not None and (not targets or "target" in tester.slots):
        return _call(identifier, tester, **({"target": " ".join(targets)} if targets else {}))
    return _call(identifier, toolbox.get(ToolRole.SHELL), command=" ".join((_TESTS, *targets)))


def _view(move: View, toolbox: Toolbox, identifier: str) -> ToolCall | None:
    shell = toolbox.get(ToolRole.SHELL)
    path = quote(move.path)
    if shell is not None:
        command = f"wc -l {path}; grep -n '' {path}"
        if move.first > 1 or move.last:
            command += f" | sed -n '{move.first},{move.last or '$'}p'"
        return _call(identifier, shell, command=command)
    window = {"first": move.first, "last": move.last} if move.last else {}
    return _call(identifier, toolbox.get(ToolRole.VIEW), path=move.path, **window)


def _edit(move: Edit, toolbox: Toolbox, view: FileView | None, identifier: str) -> ToolCall | None:
    if ToolRole.REPLACE in toolbox:
        return _call(identifier, toolbox[ToolRole.REPLACE], path=move.path, old=move.old, new=move.new)
    if ToolRole.LINES in toolbox and view is not None and view.text.count(move.old) == 1:
        numbers = sorted(view.lines)
        start = view.text[: view.text.index(move.old)].count("\n")
        block = numbers[start : start + max(1, move.old.rstrip("\n").count("\n") + 1)]
        before = "".join(view.lines[number] + "\n" for number in block)
        slots: dict[str, str | int] = {"path": move.path, "first": block[0], "last": block[-1]}
        return _call(
            identifier, toolbox[ToolRole.LINES], content=before.replace(move.old, move.new, 1), **slots
        )
    if ToolRole.WRITE in toolbox and view is not None and view.complete:
        content = view.text.replace(move.old, move.new, 1)
        return _call(identifier, toolbox[ToolRole.WRITE], path=move.path, content=content)
    text = json.dumps({"path": move.path, "old": move.old, "new": move.new})
    return _call(identifier, toolbox.get(ToolRole.SHELL), command=_EDIT_SCRIPT.format(text=text))
