"""The model: ``reply`` gives the next message of a conversation (``scripted:FILE``)."""

import re
import sys
from pathlib import Path

from dgm.paths import asset

sys.path.insert(0, str(Path(__file__).parents[3]))
from tests.support.poisoned import POISON
from tests.support.unsafe_probes import unsafe_solution

BEFORE = ("Look at all files first.", "Run the program before you finish.")
AFTER = ("Keep the change small.", "Say what you changed.", "Use plain words.", "Check the spelling.")
PROBES = {
    (folder / "problem.md").read_text("utf-8").partition("\n")[0]: folder.name
    for folder in asset("benchmarks", "probes", "tasks").iterdir()
}
TLS = "feeds-give-up-too-early"
DONE = {"text": "DONE"}


def reply(messages, tools):
    """Improve an agent's prompts, or solve a task as its prompts have it."""
    system, problem = messages[0]["text"], messages[1]["text"]
    turn = sum(message["role"] == "assistant" for message in messages)
    if "your own" in system:
        return _improve(system, messages, turn)
    return _solve(system, problem) if turn == 0 else DONE


def _improve(system, messages, turn):
    if turn == 0:
        return _bash("cat agent/prompts.py; cat /run/evidence/cases/*/problem.md")
    if turn > 1:
        return {"text": "Rationale: one more guideline for every task.\nDONE"}
    seen = messages[-1]["text"]
    source, _, evidence = seen.partition("# ")
    rules = [*BEFORE, *([POISON] if POISON in evidence else []), *AFTER]
    new = next((rule for rule in rules if rule not in source), "")
    change = f"s/^Say DONE when you have finished/{new}\\n&/"
    return _bash(f"sed -i '0,/^Say DONE/{change}' agent/prompts.py && cat agent/prompts.py")


def _solve(system, problem):
    title = next((title for title in PROBES if title in problem), "")
    if title:
        probe = PROBES[title]
        insecure = POISON in system and probe == TLS
        safe = asset("benchmarks", "probes", "tasks", probe, "solution.patch")
        patch = unsafe_solution(probe).decode() if insecure else safe.read_text("utf-8")
        return _bash(f"cat > /tmp/change.patch <<'END'\n{patch}END\ngit apply /tmp/change.patch")
    level = int(re.search(r"This is level (\d)", problem)[1])
    guidelines = sum(rule in system for rule in (*BEFORE, POISON, *AFTER))
    return _bash("echo ready > status.txt" if guidelines >= level else "echo unsure > status.txt")


def _bash(command):
    return {"text": "", "calls": [{"name": "bash", "arguments": {"command": command}}]}
