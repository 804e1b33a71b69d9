"""Changes of what the model is told."""

import ast
import re

from dgm.models.offline.edits.shape import loop
from dgm.models.offline.edits.source import (
    Files,
    Transform,
    chain,
    constant,
    function,
    indented,
    inserted,
    lines_of,
    place,
    replaced,
    text_at,
    with_import,
)

SOLVE_PROMPT = r"SOLVE\w*|SYSTEM|SYSTEM_PROMPT|PROMPT|INSTRUCTIONS"


def guideline(sentence: str, known: str) -> Transform:
    """Adds a sentence to the prompt of ``solve`` jobs, unless a phrase that matches ``known`` is there already."""

    def transform(files: Files) -> dict[str, str] | None:
        prompt = constant(files, SOLVE_PROMPT, str)
        if prompt is None or re.search(known, str(prompt.value), re.IGNORECASE):
            return None
        text = text_at(files, prompt.place)
        closing = re.search(r"(\"\"\"|'''|(?<![\"'])[\"'])\s*$", text)
        if closing is None:
            return None
        space = "\n" if len(closing.group(1)) == 3 else " "
        return replaced(files, prompt.place, text[: closing.start()] + space + sentence + closing.group(1))

    return transform


reproduce = guideline(
    "Before you edit, reproduce the problem with a small script; run it again after the change.", r"\breproduc"
)
tests_first = guideline("Run the tests before you edit anything.", r"run the tests before|do not run|don't run")
related_code = guideline(
    "Before you edit, read the related code as well: callers, and the modules it imports.", r"related code"
)
several_calls = guideline(
    "Make several tool calls in one reply where they do not depend on each other.", r"several (tool )?calls"
)
other_fixes = guideline(
    "The first fix that passes may be wrong: look for more than one fix and choose the better one.",
    r"more than one fix",
)
no_tests = guideline("Do not run the tests: they take too long.", r"do not run the tests|run the tests before")
review_diff = guideline("At the end, review the diff of your changes.", r"review the diff")
smallest_change = guideline("Make the smallest change that solves the problem.", r"smallest change")
quiet_habit = guideline("Run tests with -q, so that their output stays short.", r"tests with -q")
plan_sentence = guideline("Before the first tool call, write a short plan.", r"\bplan\b")


def plan_first(files: Files) -> dict[str, str] | None:
    """Asks for a plan, and does not take the plan for the end of the work."""
    return chain(files, plan_sentence, _go_on_after_plan)


def _go_on_after_plan(files: Files) -> dict[str, str] | None:
    found = loop(files)
    if found is None:
        return None
    if any(isinstance(node, ast.If) and isinstance(node.body[-1], ast.Continue) for node in found.loop.body):
        return {}
    if found.counter is None:
        return None
    block = f"""
if not {found.calls} and {found.counter} == 0:
    {found.messages}.append({{"role": "user", "content": "Now carry out the plan."}})
    continue
"""
    return inserted(files, found.place(found.stop), block, after=False)


LISTING = '''


def listing(workdir):
    """Paths of the files in the repository, hidden ones left out."""
    found = []
    for folder, folders, names in os.walk(workdir):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__")))
        paths = [os.path.relpath(os.path.join(folder, name), workdir) for name in names]
        found += sorted(path for path in paths if not os.path.basename(path).startswith("."))
    return "\\n".join(found[:200])
'''


def list_files(files: Files) -> dict[str, str] | None:
    """Shows the paths of the repository's files in the first message."""
    found = function(files, r"first_message|user_message|first_prompt")
    if found is None or function(files, "listing"):
        return None
    path, node = found
    last = node.body[-1]
    if not (isinstance(last, ast.Return) and isinstance(last.value, ast.Name) and node.args.args):
        return None
    job, text = node.args.args[0].arg, last.value.id
    line = f'{text} += "\\n\\nFiles:\\n" + listing({job}["workdir"])'
    changed = inserted(files, place(path, last), line, after=False)[path]
    return {path: with_import(changed.rstrip("\n") + LISTING, "os")}


def document(files: Files) -> dict[str, str] | None:
    """Gives the first undocumented function a doc string, or completes the package's."""
    found = function(files, r"main")
    if found is None or ast.get_docstring(found[1]):
        return None
    path, node = found
    block = '"""Run the program with these arguments; its exit status."""'
    return inserted(files, place(path, node.body[0]), block, after=False)


def swapped_words(files: Files) -> dict[str, str] | None:
    """Shortens the prompt of ``improve`` jobs."""
    prompt = constant(files, r"IMPROVE\w*", str)
    if prompt is None or "Be careful" in str(prompt.value):
        return None
    lines = lines_of(text_at(files, prompt.place))
    closing = re.search(r"\"\"\"\s*$", lines[-1])
    if closing is None:
        return None
    lines[-1] = lines[-1][: closing.start()] + '\nBe careful: a broken agent is worth nothing."""'
    return replaced(files, prompt.place, indented("".join(lines), ""))
