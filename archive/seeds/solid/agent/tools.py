"""The tools that the model can call, and how they are run."""

import os

from agent import editing
from agent.changes import Baseline
from agent.shell import COMMAND_TIMEOUT_S, Shell

MOST_SHOWN = 30000
REVIEW = "These are your changes. Read them once more: is the problem solved, is anything left over? Go on working, or "
REVIEW += "submit again, with your last words, to end.\n\n"
NOTHING = "Nothing is changed in the repository. Go on working, or submit again to end all the same."
TOOLS = {
    "bash": ("Run a shell command in the repository and return its output.", "command"),
    "edit": ("Replace a text that occurs exactly once in a file with another text.", "path old new"),
    "create": ("Create a file, or write one anew.", "path content"),
    "view": ("Show lines of a file with their numbers, or what is in a folder.", "path first last"),
    "submit": ("End the work. The first call shows your changes for a last look.", ""),
}
PARAMETERS = {
    "command": "The shell command to run.",
    "path": "Path of the file, from the top of the repository.",
    "old": "The text to replace, exactly as it is in the file.",
    "new": "The text to put in its place.",
    "content": "The whole content of the file.",
    "first": "The first line to show.",
    "last": "The last line to show.",
}
NUMBERS = ("first", "last")
EDITING = {"edit": editing.replace, "create": editing.create, "view": editing.view}


def schema(name, description, keys):
    """A tool as the protocol describes it: its parameters are texts, but for optional numbers of lines."""
    kinds = {key: "integer" if key in NUMBERS else "string" for key in keys.split()}
    properties = {key: {"type": kind, "description": PARAMETERS[key]} for key, kind in kinds.items()}
    needed = [key for key in kinds if key not in NUMBERS]
    parameters = {"type": "object", "properties": properties, "required": needed}
    function = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


SCHEMAS = [schema(name, *rest) for name, rest in TOOLS.items()]


class Toolbox:
    """The tools at work in one repository; ``submitted`` tells whether the work is ended."""

    def __init__(self, workdir):
        self.shell = Shell(workdir)
        self.baseline = Baseline(workdir)
        self.seen, self.submitted = None, False

    def close(self):
        self.shell.close()

    def run(self, name, arguments, left_s=COMMAND_TIMEOUT_S):
        """Run a call; whatever goes wrong is its result."""
        try:
            result = self.perform(name, arguments, left_s)
        except Exception as error:
            result = "error: %s" % error
        if len(result) > MOST_SHOWN:
            result = result[:MOST_SHOWN] + "\n[%d characters left out]" % (len(result) - MOST_SHOWN)
        # Some providers refuse what is no text.
        return result.replace("\0", "?").encode("utf-8", "replace").decode()

    def perform(self, name, arguments, left_s):
        if name not in TOOLS:
            return "error: there is no tool %r; there are %s" % (name, ", ".join(TOOLS))
        given = {key: arguments[key] for key in TOOLS[name][1].split() if key in arguments}
        needed = [key for key in TOOLS[name][1].split() if key not in NUMBERS]
        missing = [key for key in needed if not isinstance(given.get(key), str)]
        if missing:
            return "error: %s needs %s as text; nothing was done" % (name, " and ".join(missing))
        if name == "submit" or given.get("command", "").strip() == "submit":
            return self.submit()
        if name == "bash":
            return self.shell.run(given["command"], max(1, min(COMMAND_TIMEOUT_S, left_s)))
        given["path"] = os.path.join(self.shell.workdir, given["path"])
        return EDITING[name](**given)

    def submit(self):
        """Show the changes, then end; where there are none yet, a later change is shown first."""
        changes = self.baseline.diff()
        self.submitted = self.seen is not None and (self.seen != "" or not changes)
        self.seen = changes
        return "submitted" if self.submitted else REVIEW + changes if changes else NOTHING
