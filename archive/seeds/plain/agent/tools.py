"""The tools the model can call, and how they are run."""

import json
import os
import subprocess

OUTPUT_LIMIT = 3000
COMMAND_TIMEOUT_S = 10

SCHEMAS = [
    {
        "type": "function",
        "function": {
            "name": "bash",
            "description": "Run a shell command in the repository and return its output.",
            "parameters": {
                "type": "object",
                "properties": {"command": {"type": "string", "description": "The shell command to run."}},
                "required": ["command"],
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "edit",
            "description": "Replace a text that occurs exactly once in a file with another text.",
            "parameters": {
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "Path of the file."},
                    "old": {"type": "string", "description": "The text to replace."},
                    "new": {"type": "string", "description": "The text to put in its place."},
                },
                "required": ["path", "old", "new"],
            },
        },
    },
]


def bash(command, workdir):
    """Run a command; its output and its exit status."""
    try:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=workdir,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=COMMAND_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        return "error: timed out after %d s" % COMMAND_TIMEOUT_S
    output = done.stdout.decode("utf-8", "replace")
    if done.returncode:
        output += "\nexit status %d" % done.returncode
    return output


def edit(path, old, new, workdir):
    """Replace one occurrence of a text."""
    path = os.path.join(workdir, path)
    with open(path, encoding="utf-8", newline="") as file:
        text = file.read()
    if text.count(old) != 1:
        return "error: the text occurs %d times" % text.count(old)
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(text.replace(old, new))
    return "edited " + path


TOOLS = {"bash": bash, "edit": edit}


def truncate(text):
    """Keep the start of a long output."""
    if len(text) <= OUTPUT_LIMIT:
        return text
    return text[:OUTPUT_LIMIT] + "\n[output truncated]"


def run(name, arguments, workdir):
    """Run a tool call; whatever goes wrong is its result."""
    try:
        return truncate(TOOLS[name](workdir=workdir, **json.loads(arguments)))
    except Exception as error:
        return "error: %s: %s" % (type(error).__name__, error)
