"""Requests from the host rather than an agent, recognised by the first sentence of the system text.

Each kind of question has a module of its own; its ``answer`` is a pure function of the request.
"""

from collections.abc import Mapping
from importlib import import_module

from dgm.messages import Request, Role
from dgm.offline.moves import Decision

QUESTIONS: Mapping[str, str] = {
    "You diagnose a coding agent.": "diagnosing",
    "You compare coding agents.": "comparing",
    "You write a coding agent.": "inventing",
    "You judge whether two edits": "judging",
}
"""Opening words of the system text → the module whose ``answer(request)`` returns the answer."""


def decide(request: Request) -> Decision | None:
    """Return the answer to a question of the host; ``None`` if an agent asks."""
    if request.tools:
        return None
    system = next((message.text for message in request.messages if message.role is Role.SYSTEM), "")
    said = " ".join(system.split())
    for begins, module in QUESTIONS.items():
        if said.startswith(begins):
            return Decision(import_module(f"dgm.offline.{module}").answer(request))
    return None
