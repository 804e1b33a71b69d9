"""Changes of the text that the model is told."""

import ast
import re

from dgm.offline.edits.shape import loop
from dgm.offline.edits.source import (
    Constant,
    Files,
    Transform,
    chain,
    constant,
    function,
    insert_block,
    range_of,
    replace_lines,
    substitute_match,
    text_at,
    with_import,
)
from dgm.offline.guidelines import CONCEPTS, Concept, recognise_concepts

SOLVE_PROMPT = r"SOLVE\w*|SYSTEM|SYSTEM_PROMPT|PROMPT|INSTRUCTIONS"


def guideline(concept: Concept, *excluded_by: Concept) -> Transform:
    """Add a sentence to the prompt of ``solve`` jobs, unless the prompt conveys it or an excluding concept."""

    def transform(files: Files) -> dict[str, str] | None:
        prompt = constant(files, SOLVE_PROMPT, str)
        if prompt is None or recognise_concepts(str(prompt.value)) & {concept, *excluded_by}:
            return None
        return _with_sentence(files, prompt, CONCEPTS[concept])

    return transform


def _with_sentence(files: Files, prompt: Constant, sentence: str) -> dict[str, str] | None:
    text = text_at(files, prompt.place)
    closing = re.search(r"(\"\"\"|'''|(?<![\"'])[\"'])\s*$", text)
    if closing is None:
        return None
    space = "\n" if len(closing[1]) == 3 else " "
    return replace_lines(files, prompt.place, text[: closing.start()] + space + sentence + closing[1])


reproduce = guideline(Concept.REPRODUCE)
tests_first = guideline(Concept.TESTS_FIRST, Concept.NO_TESTS)
related_code = guideline(Concept.RELATED)
read_tests = guideline(Concept.READ_TESTS)
whole_file = guideline(Concept.WHOLE_FILE)
several_calls = guideline(Concept.SEVERAL_CALLS)
more_fixes = guideline(Concept.MORE_FIXES)
targeted_tests = guideline(Concept.TARGETED, Concept.NO_TESTS)
no_tests = guideline(Concept.NO_TESTS, Concept.TESTS_FIRST, Concept.TARGETED)
review_diff = guideline(Concept.REVIEW)
smallest_change = guideline(Concept.SMALLEST)
trace = guideline(Concept.TRACE)


def plan_first(files: Files) -> dict[str, str] | None:
    """Ask for a plan, and do not take the plan for the end of the work."""
    return chain(files, guideline(Concept.PLAN_FIRST), _go_on_after_plan)


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
    return insert_block(files, found.place(found.stop), block, after=False)


FIRST_MESSAGE = r"first_message|user_message|first_prompt"
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
    """Show the paths of the repository's files in the first message."""
    found = function(files, FIRST_MESSAGE)
    if found is None or function(files, "listing"):
        return None
    path, node = found
    last = node.body[-1]
    if not (isinstance(last, ast.Return) and isinstance(last.value, ast.Name) and node.args.args):
        return None
    job, text = node.args.args[0].arg, last.value.id
    line = f'{text} += "\\n\\nFiles:\\n" + listing({job}["workdir"])'
    changed = insert_block(files, range_of(path, last), line, after=False)[path]
    return {path: with_import(changed.rstrip("\n") + LISTING, "os")}


def document(files: Files) -> dict[str, str] | None:
    """Give the program's ``main`` function a docstring if it has none."""
    found = function(files, r"main")
    if found is None or ast.get_docstring(found[1]):
        return None
    path, node = found
    block = '"""Run the program with these arguments; its exit status."""'
    return insert_block(files, range_of(path, node.body[0]), block, after=False)


def careful_improve(files: Files) -> dict[str, str] | None:
    """Remind the agent, when it improves itself, of the cost of a mistake."""
    prompt = constant(files, r"IMPROVE\w*", str)
    sentence = "Be careful: an agent that cannot start is worth nothing."
    if prompt is None or sentence in str(prompt.value):
        return None
    return _with_sentence(files, prompt, sentence)


def misspelt_evidence(files: Files) -> dict[str, str] | None:
    """Ask the job for a key that it does not have, on a path that only ``improve`` jobs take."""
    found = function(files, FIRST_MESSAGE)
    pattern = r'\["evidence"\]'
    return substitute_match(files, found[0], pattern, '["evidence_folder"]') if found else None
