"""Changes of the tools: their behaviour and the part of their output that is shown."""

import ast
import re

from dgm.offline.edits.source import (
    Files,
    LineRange,
    Transform,
    chain,
    constant,
    function,
    insert_block,
    modules,
    number,
    range_of,
    replace_lines,
    substitute_match,
    text_at,
    with_import,
)

EDIT = r"edit|replace|edit_file|str_replace"
SHELL = r"bash|shell|run_command|execute_bash"
OUTPUT = r"OUTPUT_LIMIT|MAX_OUTPUT(_\w+)?"
TEST_COMMAND = r"TEST_COMMAND"

more_output = number(OUTPUT, 3, 1, 30_000)
less_output = number(OUTPUT, 0.5, 1_000, 1_000_000)
shorter_timeout = number(r"COMMAND_TIMEOUT(_S)?", 0.5, 3, 10_000)


def test_command(files: Files) -> dict[str, str] | None:
    """Name the command that runs a repository's tests, if it has no name yet."""
    if constant(files, TEST_COMMAND, str):
        return {}
    timeout = constant(files, r"COMMAND_TIMEOUT(_S)?|OUTPUT_LIMIT", int)
    if timeout is None or function(files, SHELL) is None:
        return None
    return insert_block(files, timeout.place, 'TEST_COMMAND = "python3 -m unittest"', after=True)


def test_after_edit(files: Files) -> dict[str, str] | None:
    """Add a run of the tests to the result of every edit."""
    return chain(files, test_command, _append_tests)


def _append_tests(files: Files) -> dict[str, str] | None:
    found, shell = function(files, EDIT), function(files, SHELL)
    if found is None or shell is None or found[0] != shell[0]:
        return None
    path, node = found
    last = node.body[-1]
    if not (isinstance(last, ast.Return) and last.value) or "TEST_COMMAND" in ast.unparse(node):
        return None
    line = f'return {ast.unparse(last.value)} + "\\n" + {shell[1].name}(TEST_COMMAND, workdir)'
    return replace_lines(files, range_of(path, last), line.replace("'", '"'))


def quiet_test_command(files: Files) -> dict[str, str] | None:
    """Run the tools' test command with less output (``-b``)."""
    found = constant(files, TEST_COMMAND, str)
    if found is None or "-b" in str(found.value):
        return None
    return replace_lines(files, found.place, f'{found.name} = "{found.value} -b"')


def _cut(files: Files) -> tuple[LineRange, str, str] | None:
    """Return the statement that cuts a long output: its lines, the text's name and the limit's name."""
    for path, _, tree in modules(files):
        for node in tree.body:
            last = node.body[-1] if isinstance(node, ast.FunctionDef) else None
            source = ast.unparse(last) if isinstance(last, ast.Return) else ""
            found = re.search(r"\b(\w+)\[-?:?-?(OUTPUT_LIMIT|MAX_OUTPUT|LIMIT|half)\b", source)
            if found and isinstance(node, ast.FunctionDef) and isinstance(last, ast.Return):
                limit = re.search(r"OUTPUT_LIMIT|MAX_OUTPUT|LIMIT", ast.unparse(node))
                if limit:
                    return range_of(path, last), found[1], limit[0]
    return None


_KEEPS = re.compile(r'"""Keep the .* of a long output\."""')


def head_and_tail(files: Files) -> dict[str, str] | None:
    """Cut long output in its middle."""
    found = _cut(files)
    if found is None or "half" in text_at(files, found[0]):
        return None
    where, text, limit = found
    block = f"""half = {limit} // 2
return {text}[:half] + "\\n[output truncated]\\n" + {text}[-half:]"""
    return _keeping("start and the end", replace_lines(files, where, block))


def tail_only(files: Files) -> dict[str, str] | None:
    """Keep the end of long output."""
    found = _cut(files)
    if found is None or "[-" in text_at(files, found[0]):
        return None
    where, text, limit = found
    changed = replace_lines(files, where, f'return "[output truncated]\\n" + {text}[-{limit}:]')
    return _keeping("end", changed)


def _keeping(what: str, changed: Files) -> dict[str, str]:
    """Correct the docstring that says which part of a long output is kept."""
    true = f'"""Keep the {what} of a long output."""'
    return {path: _KEEPS.sub(true, text) for path, text in changed.items()}


WITHOUT_LOG = '''
LOG_LINE = re.compile(r"(?!\\d+:)(\\S+ ){0,3}\\[?(DEBUG|INFO)\\b")


def without_log(text):
    """The text without what programs log at DEBUG and INFO."""
    return "".join(line for line in text.splitlines(True) if not LOG_LINE.match(line))


'''


def filter_log(files: Files) -> dict[str, str] | None:
    """Leave log lines out of a tool's output before it is cut."""
    found = function(files, r"run|run_tool|execute")
    if found is None or function(files, "without_log"):
        return None
    path, node = found
    pattern = rf"^( +return \w+)\((TOOLS\[{node.args.args[0].arg}\]\(.*\))\)$"
    match = re.search(pattern, files[path], re.MULTILINE)
    if match is None:
        return None
    text = files[path].replace(match[0], f"{match[1]}(without_log({match[2]}))")
    head = f"def {node.name}("
    return {path: with_import(text.replace(head, WITHOUT_LOG.lstrip("\n") + head, 1), "re")}


def _in_shell(pattern: str, new: str) -> Transform:
    def transform(files: Files) -> dict[str, str] | None:
        found = function(files, SHELL)
        return substitute_match(files, found[0], pattern, new) if found else None

    return transform


drop_stderr = _in_shell(r"stderr=subprocess\.STDOUT", "stderr=subprocess.DEVNULL")
misspelt_status = _in_shell(r"% done\.returncode$", "% done.return_code")
no_exit_status = _in_shell(r"^ +if done\.return_?code:\n +output \+= .*\n", "")


def _in_edit(pattern: str, new: str) -> Transform:
    def transform(files: Files) -> dict[str, str] | None:
        found = function(files, EDIT)
        return substitute_match(files, found[0], pattern, new) if found else None

    return transform


ambiguous_edit = _in_edit(r"^    if text\.count\(old\) != 1:$", "    if old not in text:")


def first_occurrence(files: Files) -> dict[str, str] | None:
    """Let an edit take the first of several occurrences."""
    return chain(files, ambiguous_edit, _in_edit(r"text\.replace\(old, new\)", "text.replace(old, new, 1)"))


def line_ends(files: Files) -> dict[str, str] | None:
    """Let an edit match the line ends that the file has."""
    found = function(files, EDIT)
    if found is None or r"\r\n" in files[found[0]]:
        return None
    block = r"""    if "\r\n" in text:
        old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
"""
    match = re.search(r"^    if (text\.count\(old\) != 1|old not in text):$", files[found[0]], re.MULTILINE)
    if match is None:
        return None
    text = files[found[0]]
    return {found[0]: text[: match.start()] + block + text[match.start() :]}


def rename(files: Files) -> dict[str, str] | None:
    """Give the function that cuts output a name that says what it keeps."""
    found = function(files, "truncate")
    if found is None:
        return None
    return {found[0]: re.sub(r"\btruncate\b", "fit_to_limit", files[found[0]])}
