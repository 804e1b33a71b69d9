"""Changes of the tools that the model is offered."""

import ast

from dgm.offline.edits.source import Files, chain, function, lines_of, modules, parse
from dgm.offline.edits.tools import SHELL, test_command

_TEST_SCHEMA = """    {
        "type": "function",
        "function": {
            "name": "test",
            "description": "Run the repository's tests, or only those named, and return their output.",
            "parameters": {
                "type": "object",
                "properties": {"target": {"type": "string", "description": "Dotted names of tests."}},
                "required": [],
            },
        },
    },
"""
_TEST = '''def test(workdir, target=""):
    """Run the repository's tests."""
    return {shell}((TEST_COMMAND + " " + target).strip(), workdir)


'''
_VIEW_SCHEMA = """    {
        "type": "function",
        "function": {
            "name": "view",
            "description": "Show a file, or a window of its lines, with line numbers.",
            "parameters": {
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "Path of the file."},
                    "first": {"type": "integer", "description": "The first line, from 1."},
                    "last": {"type": "integer", "description": "The last line."},
                },
                "required": ["path"],
            },
        },
    },
"""
_VIEW = '''def view(path, workdir, first=1, last=None):
    """Numbered lines of a file."""
    with open(os.path.join(workdir, path), encoding="utf-8") as file:
        lines = file.read().splitlines()
    return "\\n".join("%d:%s" % (first + i, line) for i, line in enumerate(lines[first - 1 : last]))


'''


def test_tool(files: Files) -> dict[str, str] | None:
    """Offer a tool that runs the repository's tests."""
    shell = function(files, SHELL)
    if shell is None:
        return None
    code = _TEST.replace("{shell}", shell[1].name)
    return chain(files, test_command, lambda now: _offer_tool(now, "test", _TEST_SCHEMA, code))


def view_tool(files: Files) -> dict[str, str] | None:
    """Offer a tool that shows a window of a file."""
    return _offer_tool(files, "view", _VIEW_SCHEMA, _VIEW)


def _offer_tool(files: Files, name: str, schema: str, code: str) -> dict[str, str] | None:
    """Add a tool to the list of schemas, the table of functions, and the functions."""
    if function(files, name):
        return None
    for path, text, _ in modules(files):
        lines = lines_of(text)
        schemas, table = (
            _find_literal_end(text, "SCHEMAS", ast.List),
            _find_literal_end(text, "TOOLS", ast.Dict),
        )
        if schemas is None or table is None or lines[schemas - 1].strip() != "]" or schemas >= table:
            continue
        row = lines[table - 1].rstrip()
        if not (row.startswith("TOOLS = {") and row.endswith("}")):
            continue
        lines[table - 1] = code + row[:-1] + f', "{name}": {name}}}\n'
        lines.insert(schemas - 1, schema)
        return {path: "".join(lines)}
    return None


def _find_literal_end(text: str, name: str, kind: type) -> int | None:
    """Return the last line of ``NAME = <a literal of that kind>``."""
    tree = parse(text)
    for node in tree.body if tree else ():
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.value, kind)
            and ast.unparse(node.targets[0]) == name
        ):
            return node.end_lineno
    return None
