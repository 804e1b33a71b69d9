"""Changes of the agent's memory: the conversation, second attempts, the original text of edited files."""

import ast
import re

from dgm.offline.edits.shape import loop
from dgm.offline.edits.source import (
    Files,
    Transform,
    chain,
    function,
    insert_block,
    modules,
    range_of,
    with_import,
)
from dgm.offline.edits.tools import EDIT

_SHORTEN = '''FIRST_KEPT = 10
RESULTS_KEPT = 8
RESULT_START = 400


def shorten({messages}):
    """Keep the first and the latest tool results whole, and only the start of those between."""
    results = [message for message in {messages} if message["role"] == "tool"]
    for message in results[FIRST_KEPT:-RESULTS_KEPT]:
        message["content"] = message["content"][:RESULT_START]


'''
_FORGET = '''def forget({messages}):
    """Drop all but the latest tool results, to save tokens."""
    results = [message for message in {messages} if message["role"] == "tool"]
    for message in results[:-6]:
        message["content"] = ""


'''


def _before_asking(name: str, code: str) -> Transform:
    """Call a new function with the messages before every request."""

    def transform(files: Files) -> dict[str, str] | None:
        found = loop(files)
        if found is None or function(files, name):
            return None
        call = insert_block(files, found.place(found.ask), f"{name}({found.messages})", after=False)
        block = code.replace("{messages}", found.messages).rstrip("\n") + "\n\n"
        return chain(
            {**files, **call}, lambda now: _before_function(now, found.path, found.function.name, block)
        )

    return transform


def _before_function(files: Files, path: str, name: str, block: str) -> dict[str, str]:
    text = files[path]
    return {path: text.replace(f"def {name}(", f"{block}\ndef {name}(", 1)}


shorten_results = _before_asking("shorten", _SHORTEN)
forget_results = _before_asking("forget", _FORGET)

_SURVIVE = '''def {name}({arguments}):
    """The assistant's next message; a refused request is repeated once with most results shortened."""
    try:
        return ask({arguments})
    except urllib.error.HTTPError as error:
        if error.code != 400:
            raise
    results = [message for message in {first} if message["role"] == "tool"]
    for message in results[10:-2]:
        message["content"] = message["content"][:200]
    return ask({arguments})
'''


def survive_refusal(files: Files) -> dict[str, str] | None:
    """Repeat a refused request with the results between the first and the last ones shortened."""
    for path, text, tree in modules(files):
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and "urlopen(" in ast.unparse(node) and node.name != "ask":
                arguments = [argument.arg for argument in node.args.args]
                if not arguments or function(files, "ask"):
                    return None
                renamed = text.replace(f"def {node.name}(", "def ask(", 1)
                code = _SURVIVE.replace("{name}", node.name).replace("{arguments}", ", ".join(arguments))
                whole = renamed.rstrip("\n") + "\n\n\n" + code.replace("{first}", arguments[0])
                return {path: with_import(whole, "urllib.error")}
    return None


_RESTORE = '''def restore():
    """Give every edited file the text that it had at first."""
    for path, text in ORIGINALS.items():
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(text)
    ORIGINALS.clear()


'''


def keep_originals(files: Files) -> dict[str, str] | None:
    """Remember the original text of edited files, and add a function that restores it."""
    if function(files, "restore"):
        return {}
    found = function(files, EDIT)
    if found is None:
        return None
    path, node = found
    for part in node.body:
        opened = re.match(r"with open\((\w+), 'w'", ast.unparse(part))
        held = re.search(r"(\w+)\.replace\(old, new", ast.unparse(part))
        if opened and held:
            text = insert_block(
                files, range_of(path, part), f"ORIGINALS.setdefault({opened[1]}, {held[1]})", after=False
            )
            block = "ORIGINALS = {}\n\n\n" + _RESTORE.rstrip("\n") + "\n\n"
            return _before_function(text, path, node.name, block)
    return None


def undo_at_limit(files: Files) -> dict[str, str] | None:
    """Restore all edited files at the step limit: half-done work is not handed in."""
    return chain(files, keep_originals, _undo_at_limit)


def _undo_at_limit(files: Files) -> dict[str, str] | None:
    found = loop(files)
    if (
        found is None
        or "tools.restore()" in files[found.path]
        or "tools" not in _import_lines(files[found.path])
    ):
        return None
    return insert_block(files, found.place(found.loop), "tools.restore()", after=True)


def _import_lines(text: str) -> str:
    return " ".join(re.findall(r"^(?:import|from) .*", text, re.MULTILINE))


_AGAIN = '''


def {name}(job):
    """Work on a job; start afresh where an attempt runs into the step limit."""
    for number in range(ATTEMPTS):
{prepare}        if attempt(job{more}) == 0:
            return 0
    return 1
'''


def _attempts(prepare: str, more: str) -> Transform:
    """Turn the loop into an attempt, and make up to two attempts."""

    def transform(files: Files) -> dict[str, str] | None:
        found = loop(files)
        if found is None or function(files, "attempt") or "tools" not in _import_lines(files[found.path]):
            return None
        if [argument.arg for argument in found.function.args.args] != ["job"]:
            return None
        name = found.function.name
        text = files[found.path].replace(f"def {name}(job)", f"ATTEMPTS = 2\n\n\ndef attempt(job{more})", 1)
        code = _AGAIN.replace("{name}", name).replace("{prepare}", prepare).replace("{more}", more)
        if not prepare:
            code = code.replace("for number in", "for _ in")
        if more:
            code = code.replace("    for number", "    notes = []\n    for _", 1)
        return {found.path: text.rstrip("\n") + code}

    return transform


retry = _attempts("", "")


def retry_with_reset(files: Files) -> dict[str, str] | None:
    """Start a second attempt from the original files."""
    return chain(files, keep_originals, _attempts("        if number:\n            tools.restore()\n", ""))


def retry_with_notes(files: Files) -> dict[str, str] | None:
    """Start a second attempt from the original files, and tell it what the first one said."""
    prepare = "        if notes:\n            tools.restore()\n"
    return chain(files, keep_originals, _attempts(prepare, ", notes"), _take_notes)


def _take_notes(files: Files) -> dict[str, str] | None:
    found = loop(files)
    if found is None:
        return None
    where = found.place(found.loop)
    told = '"What was tried before:\\n" + "\\n".join(notes)'
    block = f'if notes:\n    {found.messages}.append({{"role": "user", "content": {told}}})'
    note = f'notes.append({found.answer}.get("content") or "")'
    changed = insert_block(files, found.place(found.ask), note, after=True)
    return insert_block(changed, where, block, after=False)
