"""Two tools, and the loop in which a model uses them."""

import contextlib
import json
import os
import signal
import subprocess
import tempfile

OUTPUT_LIMIT = 8000
COMMAND_TIMEOUT_S = 60
MOST_READ = 10000000
MOST_REMINDERS = 2
REMINDER = "Nothing was called, so nothing changed. Call a tool, or say DONE if the work is finished."


def schema(name, description, *keys):
    shape = {
        "type": "object",
        "properties": {key: {"type": "string"} for key in keys},
        "required": list(keys),
    }
    return {"type": "function", "function": {"name": name, "description": description, "parameters": shape}}


BASH = schema("bash", "Run a shell command in the repository and return its output.", "command")
EDIT = schema("edit", "Replace a text (old) that occurs exactly once in a file.", "path", "old", "new")


def run(command, workdir, timeout_s=COMMAND_TIMEOUT_S, env=None):
    """Run a shell command; return its exit status and output. Nothing that it starts outlives it."""
    words, late = ["bash", "-c", "ulimit -f 400000\n" + command], ""
    with tempfile.TemporaryFile() as log:
        streams = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
        process = subprocess.Popen(words, cwd=workdir, env=env, start_new_session=True, **streams)
        try:
            process.wait(max(1.0, min(timeout_s, COMMAND_TIMEOUT_S)))
        except subprocess.TimeoutExpired:
            late = "\nerror: stopped, it took too long"
        finally:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        log.seek(0)
        text = log.read(MOST_READ).decode("utf-8", "replace").replace("\0", "?")
    if len(text) > OUTPUT_LIMIT:
        half, gap = OUTPUT_LIMIT // 2, len(text) - OUTPUT_LIMIT
        text = text[:half] + "\n[%d characters left out]\n" % gap + text[-half:]
    return process.returncode, text + late


def edit(path, old, new):
    with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
        text = file.read()
    if text.count(old) != 1:
        return "error: the text occurs %d times; nothing was changed" % text.count(old)
    with open(path, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
        file.write(text.replace(old, new))
    return "edited " + path


def perform(call, workdir, timeout_s):
    """Return the result of a call; whatever goes wrong is its result."""
    name, arguments = call["function"]["name"], json.loads(call["function"]["arguments"])
    try:
        if name == "edit":
            return edit(os.path.join(workdir, arguments["path"]), arguments["old"], arguments["new"])
        if name != "bash":
            return "error: there is no tool %r" % name
        status, output = run(arguments["command"], workdir, timeout_s)
        return output + ("\nexit status %d" % status if status else "")
    except KeyError as error:
        return "error: the argument %s is missing" % error
    except Exception as error:
        return "error: %s: %s" % (type(error).__name__, error)


def work(model, messages, workdir, steps, tools=(BASH, EDIT), stop=lambda: False):
    """Let the model use tools until it is done or ``stop()``, at most for some steps; return whether it is done."""
    idle = 0
    for _ in range(steps):
        answer = model.ask(messages, list(tools))
        messages.append(answer)
        print("model: %s" % answer["content"][:500])
        for call in answer.get("tool_calls", ()):
            print("  %s" % str(call["function"])[:200])
            result = perform(call, workdir, model.left_s())
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
        if answer.get("tool_calls") and stop():
            return False
        if not answer.get("tool_calls"):
            idle += 1
            if "DONE" in answer["content"] or idle > MOST_REMINDERS:
                return True
            messages.append({"role": "user", "content": REMINDER})
    return False
