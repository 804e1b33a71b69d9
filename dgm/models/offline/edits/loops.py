"""Changes of the control loop."""

import ast
import re

from dgm.models.offline.edits.shape import Loop, loop
from dgm.models.offline.edits.source import (
    Files,
    Place,
    Transform,
    constant,
    inserted,
    lines_of,
    place,
    replaced,
    substituted,
    text_at,
)

STEPS = r"MAX_(STEPS|TURNS|ITERATIONS|ROUNDS)|(STEP|TURN)_LIMIT|STEPS"


def number(name: str, factor: float, least: float, most: float) -> Transform:
    """Multiplies a module's number, as long as the result stays within bounds."""

    def transform(files: Files) -> dict[str, str] | None:
        found = constant(files, name, (int, float))
        if found is None or isinstance(found.value, bool):
            return None
        old = found.value
        assert isinstance(old, int | float)
        new = min(most, max(least, old * factor))
        if (new - old) * (factor - 1) <= 0:
            return None
        text = text_at(files, found.place)
        shown = str(int(new)) if isinstance(old, int) else f"{new:g}"
        return replaced(files, found.place, re.sub(r"(=\s*)[\d_.]+", rf"\g<1>{shown}", text, count=1))

    return transform


more_steps = number(STEPS, 2, 1, 60)
fewer_steps = number(STEPS, 0.6, 4, 1000)


def execute_all(files: Files) -> dict[str, str] | None:
    """Runs every call of a reply instead of the first one."""
    found = loop(files)
    if found is None:
        return None
    for node in found.loop.body:
        if isinstance(node, ast.Assign) and re.search(r"\[:1\]\s*$", ast.unparse(node.value)):
            each = text_at(files, found.place(found.each).__class__(found.path, found.each.lineno, found.each.lineno))
            head = re.sub(r"\bin .*:", f"in {found.calls}:", each.strip(), count=1)
            where = Place(found.path, node.lineno, found.each.lineno, " " * node.col_offset)
            between = lines_of(files[found.path])[node.end_lineno or node.lineno : found.each.lineno - 1]
            return replaced(files, where, "".join(line.removeprefix(where.indent) for line in between) + head)
    return None


def until_done(files: Files) -> dict[str, str] | None:
    """Goes on until the model says DONE; a reply without calls alone does not end the work."""
    found = loop(files)
    if found is None or "DONE" in text_at(files, found.place(found.loop)):
        return None
    stop, test = found.place(found.stop), f'if not {found.calls} and "DONE" in ({found.answer}.get("content") or ""):'
    lines = lines_of(text_at(files, stop))
    body = "".join(line.removeprefix(stop.indent) for line in lines[1:])
    go_on = f"""if not {found.calls}:
    {found.messages}.append({{"role": "user", "content": "Go on with the tools, or say DONE."}})
    continue"""
    return replaced(files, stop, f"{test}\n{body}{go_on}")


def finish_after_edit(files: Files) -> dict[str, str] | None:
    """Ends the work as soon as one edit has succeeded."""
    found = loop(files)
    if found is None or any(isinstance(node, ast.Return) for node in ast.walk(found.each)):
        return None
    block = f"""
if {found.call}["function"]["name"] == "edit" and {found.result}.startswith("edited"):
    return 0
"""
    return inserted(files, found.place(found.each.body[-1]), block, after=True)


def log_results(files: Files) -> dict[str, str] | None:
    """Prints how long each tool result is."""
    found = loop(files)
    if found is None or 'print("  ' in files[found.path]:
        return None
    block = f'print("  %s: %d characters" % ({found.call}["function"]["name"], len({found.result})))'
    return inserted(files, found.place(found.run), block, after=True)


def hasty_improve(files: Files) -> dict[str, str] | None:
    """Gives ``improve`` jobs half the steps."""
    return _improve_steps(files, "{0} // 2")


def patient_improve(files: Files) -> dict[str, str] | None:
    """Gives ``improve`` jobs twice the steps."""
    return _improve_steps(files, "2 * {0}")


def _improve_steps(files: Files, formula: str) -> dict[str, str] | None:
    found = loop(files)
    if found is None or not isinstance(found.loop, ast.For) or not _takes_job(found):
        return None
    limit = re.fullmatch(r"range\((\w+)\)", ast.unparse(found.loop.iter))
    if limit is None:
        return None
    job, name = found.function.args.args[0].arg, limit.group(1)
    block = f'limit = {formula.format(name)} if {job}["kind"] == "improve" else {name}'
    head = Place(found.path, found.loop.lineno, found.loop.lineno, " " * found.loop.col_offset)
    line = text_at(files, head).strip().replace(f"range({name})", "range(limit)")
    return replaced(files, head, f"{block}\n{line}")


def _takes_job(found: Loop) -> bool:
    arguments = found.function.args.args
    return bool(arguments) and arguments[0].arg == "job"


def leave_at_limit(files: Files) -> dict[str, str] | None:
    """Ends the program with an error message at the step limit."""
    found = loop(files)
    if found is None:
        return None
    last = found.function.body[-1]
    if not (isinstance(last, ast.Return) and ast.unparse(last) == "return 1"):
        return None
    return replaced(files, place(found.path, last), 'raise SystemExit("no result within %d steps")'.replace("%d", "the"))


def misspelt_limit(files: Files) -> dict[str, str] | None:
    """Logs the limit under a name that does not exist, on a path that no check visits."""
    found = loop(files)
    if found is None or found.counter is None:
        return None
    pattern = r'^( +)print\("step limit reached"\)$'
    return substituted(files, found.path, pattern, f'    print("step limit reached after %d" % {found.counter}s)')
