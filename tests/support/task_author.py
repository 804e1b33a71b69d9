"""A model that knows the fixes of starter tasks and plays every part that the seeds of the gallery ask it for.

Its first fix of a task is wrong wherever a design makes more than one, so a design that cannot choose fails.
"""

import json
import re
import shlex

from dgm.messages import Reply, Role, Stop, ToolCall
from dgm.paths import asset
from tests.agents.plans import Planned

TASKS = asset("benchmarks", "starter", "tasks")
SWAP = """#!/usr/bin/env python3
import json, sys
path, old, new = json.loads(sys.argv[1])
text = open(path).read()
assert text.count(old) == 1
open(path, "w").write(text.replace(old, new))
"""
SCRIPT = """```python
text = open({path!r}).read()
print("RESOLVED" if {new!r} in text else "REPRODUCED")
```"""
BLOCK = "The cause is clear.\n\n### {path}\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n"


class Fix:
    """The fix of a task with one hunk: a right and a wrong replacement of a text in a file."""

    def __init__(self, task):
        patch = (TASKS / task / "solution.patch").read_text()
        self.title = (TASKS / task / "problem.md").read_text().splitlines()[0].removeprefix("# ")
        self.path = re.search(r"^\+\+\+ b/(.+)$", patch, re.M)[1]
        rows = patch.split("\n@@ ")[1].splitlines()[1:]
        self.old = "".join(row[1:] + "\n" for row in rows if row[:1] in " -")
        self.new = "".join(row[1:] + "\n" for row in rows if row[:1] in " +")
        self.broken = "".join(row[1:] + "\n" for row in rows if row[:1] == " ")
        self.added = next(row for row in rows if row[:1] == "+")


class TaskAuthor:
    """Answers as localiser, editor, checker, judge or orchestrator of the tasks that it knows."""

    def __init__(self, *tasks):
        self.fixes = [Fix(task) for task in tasks]
        self.failed = set()

    async def answer(self, request):
        text = "\n".join(message.text for message in request.messages)
        fix = next((fix for fix in self.fixes if fix.title in text), None)
        if fix is None:  # dgm tries the model with a call of its own
            return await Planned().answer(request)
        turn = sum(message.role is Role.ASSISTANT for message in request.messages)
        names = {tool.name for tool in request.tools}
        say, call = (self.act if names else self.write)(fix, turn, text, names)
        calls = (ToolCall(f"call_{turn}", call[0], json.dumps(call[1])),) if call else ()
        return Reply(say, calls, Stop.TOOL_CALLS if calls else Stop.END)

    def replacement(self, fix):
        """The wrong text once, then the right one."""
        wrong = fix.title not in self.failed
        self.failed.add(fix.title)
        return fix.broken if wrong else fix.new

    def act(self, fix, turn, text, names):
        """One step of a conversation with tools, and its call."""
        if "create_tool" in names:
            source = {"name": "swap", "description": "Replace a text.", "source": SWAP}
            use = shlex.quote(json.dumps([fix.path, fix.old, fix.new]))
            steps = [
                ("A tool first.", ("create_tool", source)),
                ("Now its use.", ("swap", {"arguments": use})),
            ]
            return steps[turn] if turn < len(steps) else ("DONE", None)
        if "edit" in names:
            if turn:
                return "DONE", None
            edit = {"path": fix.path, "old": fix.old, "new": self.replacement(fix)}
            return "I edit.", ("edit", edit)
        if not turn:
            return "I look.", ("bash", {"command": "ls; echo scratch > notes.txt"})
        verdict = "PASS" if fix.added in text else "FAIL"
        return f"DONE. It is {fix.path}.\nVERDICT: {verdict}", None

    def write(self, fix, turn, text, _):
        """An answer without tools."""
        if "block of Python code" in text and "view(path" in text:
            given = json.dumps([fix.path, fix.old, fix.new])
            steps = [
                f"```python\nimport json\nfix = json.loads({given!r})\nview(fix[0], 1, 5)\n```",
                "```python\nedit(*fix)\n```",
            ]
            return (steps[turn] if turn < len(steps) else "DONE"), None
        if "You lead a team" in text:
            last = ["", *re.findall(r"=== Report: (\w+)", text)][-1]
            done = "done" if fix.added in text else "edit"
            usual = {"": "localise", "localise": "edit", "edit": "check", "check": done}
            return usual.get(last, "edit").upper(), None
        for words, answer in {
            "Which files have": f"- `{fix.path}`",
            "These are the definitions": f"{fix.path}: 12",
            "prints REPRODUCED": SCRIPT.format(path=fix.path, new=fix.new),
        }.items():
            if words in text:
                return answer, None
        if "<<<<<<< SEARCH" in text:
            return BLOCK.format(path=fix.path, old=fix.old, new=self.replacement(fix)), None
        parts = re.split(r"^=== (?:Change|Attempt) (\d+)", text, flags=re.M)[1:]
        right = next((n for n, part in zip(parts[::2], parts[1::2], strict=True) if fix.added in part), "1")
        return f"I have read it.\nVALUE: {90 if fix.added in text else 10}\n{right}", None
