"""The tools that the model can call, and how they are run."""

import os

from agent import editing
from agent.changes import Baseline
from agent.shell import COMMAND_TIMEOUT_S, Shell

PATH = "Path of the file."
NUMBERS = ("first", "last")
REVIEW = "These are your changes. Read them once more: is the problem solved, is anything left over? Go on working, or "
REVIEW += "submit again, with your last words, to end.\n\n"
NOTHING = "Nothing is changed in the repository. Go on working, or submit again to end all the same."


def schema(name, description, **parameters):
    """A tool whose parameters are texts, but for optional numbers of lines."""
    properties = {
        key: {"type": "integer" if key in NUMBERS else "string", "description": text}
        for key, text in parameters.items()
    }
    required = [key for key in parameters if key not in NUMBERS]
    described = {"type": "object", "properties": properties, "required": required}
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": described},
    }


SCHEMAS = [
    schema(
        "bash",
        "Run a shell command in the repository and return its output.",
        command="The shell command to run.",
    ),
    schema(
        "edit",
        "Replace a text that occurs exactly once in a file with another text.",
        path=PATH,
        old="The text to replace, exactly as it is in the file.",
        new="The text to put in its place.",
    ),
    schema(
        "create", "Create a file, or write one anew.", path=PATH, content="The whole content of the file."
    ),
    schema(
        "view",
        "Show lines of a file with their numbers, or what is in a folder.",
        path=PATH,
        first="The first line to show.",
        last="The last line to show.",
    ),
    schema("submit", "End the work. The first call shows your changes for a last look."),
]
EDITING = {"edit": editing.replace, "create": editing.create, "view": editing.view}


class Toolbox:
    """The tools at work in one repository.

    Attributes:
        submitted: whether the work is ended.
    """

    def __init__(self, workdir):
        self.shell = Shell(workdir)
        self.baseline = Baseline(workdir)
        self.seen = self.submitted = False

    def close(self):
        self.shell.close()

    def run(self, name, arguments, left_s=COMMAND_TIMEOUT_S):
        """Run a call; whatever goes wrong is its result."""
        tool = next((each["function"] for each in SCHEMAS if each["function"]["name"] == name), None)
        if tool is None:
            names = [each["function"]["name"] for each in SCHEMAS]
            return "error: there is no tool %r; there are %s" % (name, ", ".join(names))
        missing = [key for key in tool["parameters"]["required"] if not isinstance(arguments.get(key), str)]
        if missing:
            return "error: %s needs %s as text; nothing was done" % (name, " and ".join(missing))
        given = {key: arguments[key] for key in tool["parameters"]["properties"] if key in arguments}
        if "path" in given:
            given["path"] = os.path.join(self.shell.workdir, given["path"])
        try:
            if name == "submit" or given.get("command", "").strip() == "submit":
                return self.submit()
            if name == "bash":
                return self.shell.run(given["command"], max(1, min(COMMAND_TIMEOUT_S, left_s)))
            return EDITING[name](**given)
        except Exception as error:
            return "error: %s" % error

    def submit(self):
        """Show the changes once; then end."""
        self.submitted, self.seen = self.seen, True
        if self.submitted:
            return "submitted"
        changes = self.baseline.diff()
        return REVIEW + changes if changes else NOTHING
