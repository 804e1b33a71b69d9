"""A plain scaffold without a sandbox: a loop as the shipped seed's on a folder, with the offline model."""

import json
import subprocess

from dgm.messages import Message, Request, Role, Tool
from dgm.meta.seeds import read_seed
from dgm.offline import decide


def tool(name, description, *parameters):
    properties = {parameter: {"type": "string"} for parameter in parameters}
    return Tool(name, description, {"properties": properties, "required": list(parameters)})


TOOLS = (
    tool("bash", "Run a shell command in the repository.", "command"),
    tool("edit", "Replace a text that occurs exactly once in a file.", "path", "old", "new"),
)
SOLVE = "You are a programmer. Fix the problem. Use the tools. Say DONE when you have finished."
IMPROVE = "You are a programmer. The repository is the source of a coding agent: your own. Change it."
PROBLEM = """Improve this coding agent. Keep `python3 -m agent --check` working.

Child number: {number}

- step limit reached: 5 of 10
- output truncated: 5 of 10
"""


def seed(name="plain"):
    """The text of a shipped agent's Python files, and its ``agent.toml``."""
    return {p: e.data.decode() for p, e in read_seed(name).items() if p.endswith((".py", ".toml"))}


class Scaffold:
    """Makes the first call of each reply (or every one), cuts what tools print, and keeps the conversation.

    Args:
        folder: the repository.
        tools: a tool with one parameter runs a command, one with three replaces a text.
        limit: characters of a result that are shown.
        every_call: make all calls of a reply.
        model: answers a request.
    """

    def __init__(self, folder, tools=TOOLS, limit=3000, *, every_call=False, model=decide):
        self.folder, self.tools, self.limit, self.every_call = folder, tools, limit, every_call
        self.model, self.replies = model, []

    def write(self, files):
        for path, text in files.items():
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / path).write_text(text, "utf-8")
        return self

    def read(self):
        found = sorted(path for path in self.folder.rglob("*") if path.suffix in {".py", ".toml"})
        return {path.relative_to(self.folder).as_posix(): path.read_text("utf-8") for path in found}

    def work(self, problem, system=SOLVE, steps=10):
        """All that the model says."""
        messages = [Message(Role.SYSTEM, system), Message(Role.USER, problem)]
        for _ in range(steps):
            reply = self.model(Request(messages, self.tools))
            self.replies.append(reply)
            calls = reply.calls if self.every_call else reply.calls[:1]
            messages.append(Message(Role.ASSISTANT, reply.text, calls))
            for call in calls:
                known = any(call.name == each.name for each in self.tools)
                result = self.run(list(json.loads(call.arguments).values())) if known else "error: KeyError"
                cut = result[: self.limit] + "\n[output truncated]" if len(result) > self.limit else result
                messages.append(Message(Role.TOOL, cut, call_id=call.id))
            if not calls:
                break
        return [reply.text for reply in self.replies]

    def run(self, values):
        if len(values) == 1:
            return self.bash(*values)
        path, old, new = values
        text = (self.folder / path).read_text("utf-8")
        if text.count(old) != 1:
            return f"error: the text occurs {text.count(old)} times"
        (self.folder / path).write_text(text.replace(old, new), "utf-8")
        return "edited " + path

    def bash(self, command):
        done = subprocess.run(
            ["bash", "-c", f"export PYTHONDONTWRITEBYTECODE=1; {command}"],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        return done.stdout + (f"\nexit status {done.returncode}" if done.returncode else "")
