"""Changes of the control loop."""

import ast
import re

from dgm.offline.edits.shape import Loop, loop
from dgm.offline.edits.source import (
    Files,
    LineRange,
    constant,
    insert_block,
    lines_of,
    number,
    range_of,
    replace_lines,
    text_at,
)

STEPS = r"MAX_(STEPS|TURNS|ITERATIONS|ROUNDS)|(STEP|TURN)_LIMIT|STEPS"


more_steps = number(STEPS, 2, 1, 60)
fewer_steps = number(STEPS, 0.6, 4, 1000)


def temperature(files: Files) -> dict[str, str] | None:
    """Raise a temperature of 0 to 0.8."""
    found = constant(files, r"TEMPERATURE", (int, float))
    if found is None or found.value != 0:
        return None
    return replace_lines(files, found.place, f"{found.name} = 0.8")


def execute_all(files: Files) -> dict[str, str] | None:
    """Run every call of a reply instead of the first one."""
    found = loop(files)
    if found is None:
        return None
    each = found.place(found.each)
    head = LineRange(each.path, each.first, each.first, each.indent)
    if ast.unparse(found.each.iter).endswith("[:1]"):
        return replace_lines(files, head, text_at(files, head).strip().replace("[:1]:", ":"))
    for node in found.loop.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.value).endswith("[:1]"):
            block = re.sub(r"\bin .*:$", f"in {found.calls}:", text_at(files, head).strip())
            lines = lines_of(replace_lines(files, head, block)[found.path])
            del lines[node.lineno - 1 : node.end_lineno]
            return {found.path: "".join(lines)}
    return None


def until_done(files: Files) -> dict[str, str] | None:
    """Go on until the model says DONE; a reply without calls alone does not end the work."""
    found = loop(files)
    if found is None or "DONE" in text_at(files, found.place(found.loop)):
        return None
    stop, test = (
        found.place(found.stop),
        f'if not {found.calls} and "DONE" in ({found.answer}.get("content") or ""):',
    )
    lines = lines_of(text_at(files, stop))
    body = "".join(line.removeprefix(stop.indent) for line in lines[1:])
    go_on = f"""if not {found.calls}:
    {found.messages}.append({{"role": "user", "content": "Go on with the tools, or say DONE."}})
    continue"""
    return replace_lines(files, stop, f"{test}\n{body}{go_on}")


def finish_after_edit(files: Files) -> dict[str, str] | None:
    """End the work as soon as one edit has succeeded."""
    found = loop(files)
    if found is None or any(isinstance(node, ast.Return) for node in ast.walk(found.each)):
        return None
    block = f"""
if {found.call}["function"]["name"] == "edit" and {found.result}.startswith("edited"):
    return 0
"""
    return insert_block(files, found.place(found.each.body[-1]), block, after=True)


def log_results(files: Files) -> dict[str, str] | None:
    """Print the length of each tool result in characters."""
    found = loop(files)
    if found is None or 'print("  ' in files[found.path]:
        return None
    block = f'print("  %s: %d characters" % ({found.call}["function"]["name"], len({found.result})))'
    return insert_block(files, found.place(found.run), block, after=True)


def hasty_improve(files: Files) -> dict[str, str] | None:
    """Give ``improve`` jobs half the steps."""
    return _improve_steps(files, "{0} // 2")


def patient_improve(files: Files) -> dict[str, str] | None:
    """Give ``improve`` jobs twice the steps."""
    return _improve_steps(files, "2 * {0}")


def _improve_steps(files: Files, formula: str) -> dict[str, str] | None:
    found = loop(files)
    if found is None or not isinstance(found.loop, ast.For) or not _takes_job(found):
        return None
    limit = re.fullmatch(r"range\((\w+)\)", ast.unparse(found.loop.iter))
    if limit is None or limit[1] == "limit":
        return None
    job, name = found.function.args.args[0].arg, limit.group(1)
    block = f'limit = {formula.format(name)} if {job}["kind"] == "improve" else {name}'
    head = LineRange(found.path, found.loop.lineno, found.loop.lineno, " " * found.loop.col_offset)
    line = text_at(files, head).strip().replace(f"range({name})", "range(limit)")
    return replace_lines(files, head, f"{block}\n{line}")


def _takes_job(found: Loop) -> bool:
    arguments = found.function.args.args
    return bool(arguments) and arguments[0].arg == "job"


def leave_at_limit(files: Files) -> dict[str, str] | None:
    """End the program with a message at the step limit, whichever function called the loop."""
    found = loop(files)
    if found is None:
        return None
    last = found.function.body[-1]
    if ast.unparse(last) != "return 1":
        return None
    return replace_lines(files, range_of(found.path, last), 'raise SystemExit("nothing was finished")')


def drop_colon(files: Files) -> dict[str, str] | None:
    """Remove the colon of the head of the loop over the calls."""
    found = loop(files)
    if found is None:
        return None
    head = LineRange(found.path, found.each.lineno, found.each.lineno, " " * found.each.col_offset)
    return replace_lines(files, head, text_at(files, head).strip().removesuffix(":"))
