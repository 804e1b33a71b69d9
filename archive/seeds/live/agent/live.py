"""One loop with a shell, in which the model makes its own tools; each can then be called like a built-in one."""

import contextlib
import json
import os
import re
import shlex
import shutil
import tempfile

from agent import prompts
from agent.tools import BASH, MOST_REMINDERS, REMINDER, run, schema

MOST_STEPS = 250
MOST_TOOLS = 20
REFLECT_EVERY = 3
NAME = re.compile(r"[a-z][a-z0-9_]{1,40}")
TAKEN = ("bash", "create_tool")
CREATE = schema(
    "create_tool",
    "Make a program of your own and offer it as a tool from now on. The source begins with #!, such as "
    "#!/usr/bin/env python3; it gets its arguments on the command line.",
    "name",
    "description",
    "source",
)


class Toolbox:
    """The shell and the tools that the model made, in a folder outside the repository."""

    def __init__(self, workdir):
        self.workdir, self.made = workdir, {}
        self.folder = os.path.join(tempfile.gettempdir(), "own-tools")
        try:
            # The same name each time, where it is free: a repeated job then asks its model the same.
            os.mkdir(self.folder)
        except OSError:
            self.folder = tempfile.mkdtemp(prefix="own-tools-")
        self.env = dict(os.environ, PATH=self.folder + os.pathsep + os.environ.get("PATH", os.defpath))

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def schemas(self):
        return [BASH, CREATE, *self.made.values()]

    def perform(self, name, arguments, left_s):
        """Return the result of a call; whatever goes wrong is its result."""
        try:
            if name == "create_tool":
                return self.create(*(arguments[key] for key in ("name", "description", "source")))
            if name == "bash":
                command = arguments["command"]
            elif name in self.made:
                command = shlex.quote(os.path.join(self.folder, name)) + " " + arguments["arguments"]
            else:
                return "error: there is no tool %r; there are %s" % (name, ", ".join([*TAKEN, *self.made]))
            status, output = run(command, self.workdir, left_s, self.env)
            return output + ("\nexit status %d" % status if status else "")
        except KeyError as error:
            return "error: the argument %s is missing" % error
        except Exception as error:
            return "error: %s: %s" % (type(error).__name__, error)

    def create(self, name, description, source):
        """Write a tool and check that it can be started."""
        if not NAME.fullmatch(name) or name in TAKEN:
            return "error: a name is lower case letters, digits and _, and none of %s" % ", ".join(TAKEN)
        if not source.startswith("#!"):
            return "error: the source must begin with a line such as #!/usr/bin/env python3"
        if len(self.made) >= MOST_TOOLS and name not in self.made:
            return "error: there are %d tools already; improve one of them" % MOST_TOOLS
        fault = find_fault(source)
        if fault:
            return "error: %s; the tool was not made" % fault
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(source if source.endswith("\n") else source + "\n")
        os.chmod(path, 0o755)
        verb = "improved" if name in self.made else "made"
        self.made[name] = schema(name, description[:1000], "arguments")
        return "%s the tool %s: call it with its arguments as one text, or use %s in the shell" % (
            verb,
            name,
            name,
        )


def find_fault(source):
    """Return why a Python program cannot be started; nothing for others."""
    if "python" in source.partition("\n")[0]:
        try:
            compile(source, "tool", "exec")
        except (SyntaxError, ValueError) as error:
            return "%s: %s" % (type(error).__name__, error)
    return ""


def solve(job, model):
    """Work on a job; True if the model ended it."""
    messages = [
        {"role": "system", "content": prompts.system(job.get("kind"), prompts.BUILD)},
        {"role": "user", "content": prompts.first_message(job)},
    ]
    with contextlib.closing(Toolbox(job["workdir"])) as toolbox:
        idle = 0
        for step in range(1, MOST_STEPS + 1):
            answer = model.ask(messages, toolbox.schemas())
            messages.append(answer)
            print("step %d: %s" % (step, answer["content"][:500]))
            calls = answer.get("tool_calls", ())
            for call in calls:
                name, arguments = call["function"]["name"], json.loads(call["function"]["arguments"])
                print("  %s %s" % (name, str(arguments)[:200]))
                result = toolbox.perform(name, arguments, model.left_s())
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
            idle = 0 if calls else idle + 1
            if not calls and ("DONE" in answer["content"] or idle > MOST_REMINDERS):
                print("tools made: %s" % (", ".join(toolbox.made) or "none"))
                return True
            if not calls or step % REFLECT_EVERY == 0:
                messages.append({"role": "user", "content": prompts.REFLECT if calls else REMINDER})
    return False
