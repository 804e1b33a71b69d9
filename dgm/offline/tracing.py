"""A script that traces failing and passing runs and scores each line's suspicion, and its parsed output."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from dgm.offline.statement import Example

PATH = "/tmp/tracing.py"
_ROW = re.compile(r"^trace ([\w./-]+\.py) (\d\.\d\d) ((?:\d+(?:-\d+)? )+)\.$", re.M)
_SUSPECT = 0.7
_END = re.compile(r"^trace end$", re.M)

_SCRIPT = """import ast, os, sys, unittest
sys.path.insert(0, os.getcwd())
failing, lines, modules = {failing}, {lines}, {modules}
here, screen, room = os.getcwd() + os.sep, os.dup(1), [2000000]
null = os.open(os.devnull, os.O_WRONLY)
os.dup2(null, 1), os.dup2(null, 2)


def traced(work):
    seen = set()

    def step(frame, event, argument):
        if event == "line":
            room[0] -= 1
            seen.add((frame.f_code.co_filename[len(here):], frame.f_lineno))
        return step

    def enter(frame, event, argument):
        code = frame.f_code
        name = code.co_filename
        ours = name.startswith(here) and not name[len(here):].startswith("test")
        return step if ours and code.co_flags & 1 and room[0] > 0 else None

    sys.settrace(enter)
    try:
        work()
    except BaseException:
        pass
    finally:
        sys.settrace(None)
    return seen


def every(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from every(test)
        else:
            yield test


def example():
    scope = {{}}
    for line in lines:
        exec(line, scope)


bad, good, loader = [], [], unittest.defaultTestLoader
if lines:
    traced(lambda: [__import__(name) for name in modules])
    bad.append(traced(example))
names = sorted(set(name.rsplit(".", 2)[0] for name in failing)) or modules
tests = [test for name in names for test in every(loader.loadTestsFromName(name))]
for test in tests[:80]:
    result = unittest.TestResult()
    seen = traced(lambda: test.run(result))
    if test.id() in failing:
        bad.append(seen)
    elif result.wasSuccessful():
        good.append(seen)
scores = {{}}
for path, line in set().union(*bad):
    hit = sum((path, line) in seen for seen in bad)
    passed = sum((path, line) in seen for seen in good)
    scores.setdefault(path, {{}})[line] = hit / (len(bad) * (hit + passed)) ** 0.5
rows = {{}}
for path, found in scores.items():
    for node in ast.walk(ast.parse(open(path, encoding="utf-8").read())):
        if isinstance(node, ast.stmt) and not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            body = getattr(node, "body", None)
            span = range(node.lineno, (body[0].lineno if body else node.end_lineno + 1))
            best = max([found[n] for n in span if n in found] or [0])
            if best:
                found.update((n, max(best, found.get(n, 0))) for n in span)
    for line, score in found.items():
        rows.setdefault((-round(score, 2), path), []).append(line)
shown = ["TRACE %d failing, %d passing" % (len(bad), len(good))]
for (score, path), found in sorted(rows.items()):
    parts, found = [], sorted(found)
    for line in found:
        if parts and parts[-1][1] == line - 1:
            parts[-1][1] = line
        else:
            parts.append([line, line])
    text = " ".join("%d-%d" % (a, b) if b > a else "%d" % a for a, b in parts)
    shown.append("trace %s %.2f %s ." % (path, -score, text))
kept = []
for row in shown + ["trace end"]:
    if sum(len(one) + 1 for one in kept) + len(row) > 2300:
        break
    kept.append(row)
os.write(screen, ("\\n".join(kept) + "\\n").encode())
"""


@dataclass(frozen=True, slots=True)
class Trace:
    """The lines that the failing runs went through.

    Attributes:
        suspicion: score of each line by path, above 0 and at most 1: how far only failing runs go through it.
        complete: whether all lines were shown; if not, a missing line may have run.
    """

    suspicion: Mapping[str, Mapping[int, float]]
    complete: bool

    def highest(self, path: str, first: int = 1, last: int = 10**9) -> float:
        """Return the highest suspicion in a range of lines, as a share of the highest of all lines.

        The result is 0.0 if none of these lines ran.
        """
        top = max(max(lines.values()) for lines in self.suspicion.values())
        lines = self.suspicion.get(path, {})
        return max((score for line, score in lines.items() if first <= line <= last), default=0.0) / top

    def suspects(self, path: str) -> list[int]:
        """Return the lines of a file that are about as suspicious as any, most suspicious first."""
        lines = self.suspicion.get(path, {})
        found = [line for line in lines if self.highest(path, line, line) > _SUSPECT]
        return sorted(found, key=lambda line: (-lines[line], line))


def command(failing: tuple[str, ...], example: Example | None, modules: tuple[str, ...]) -> str:
    """Return the shell command that writes the script and runs it.

    Args:
        failing: ids of failing tests; the other tests of their modules are run beside them.
        example: the statement's example, run if no failing test is known.
        modules: test modules to run beside the example.
    """
    lines = list(example.lines) if example and not failing else []
    script = _SCRIPT.format(
        failing=json.dumps(list(failing[:8])), lines=json.dumps(lines), modules=json.dumps(list(modules))
    )
    return f"cat > {PATH} <<'END_OF_SCRIPT'\n{script}END_OF_SCRIPT\npython3 {PATH}"


@lru_cache(maxsize=64)
def parse_trace(text: str) -> Trace | None:
    """Return the table that a run of the script printed in this output; ``None`` if no row of it is shown."""
    found: dict[str, dict[int, float]] = {}
    for path, score, ranges in _ROW.findall(text):
        for part in ranges.split():
            first, _, last = part.partition("-")
            lines = range(int(first), min(int(last or first), int(first) + 2000) + 1)
            found.setdefault(path, {}).update((line, float(score)) for line in lines if float(score) > 0)
    found = {path: lines for path, lines in found.items() if lines}
    return Trace(found, bool(_END.search(text))) if found else None
