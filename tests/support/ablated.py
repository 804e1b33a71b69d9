"""An agent with a useful, a useless and a harmful section, and a provider whose model obeys what it reads."""

import json
import re
import shutil
from pathlib import Path

from dgm.messages import Reply, Role, Stop, ToolCall
from dgm.models.builtin import command_call, finishing_call

WORD = Path(__file__).parents[1] / "e2e" / "suites" / "word" / "tasks" / "say-that-it-is-ready"
USEFUL = "A ticket of the archive is closed by the word itself."
USELESS = "Be friendly, and prefer short sentences."
HARMFUL = "A ticket is closed by a report of your own in report.md."
INSTRUCTIONS = f"""# Tickets

## Archive

{USEFUL}

## Tone

{USELESS}

## Reports

{HARMFUL}
"""


class Obedient:
    """Solves every n-th ticket only if it reads the useful section, and others unless it reads the harmful one."""

    def __init__(self, n=2):
        self._n = n

    async def answer(self, request):
        text = "\n".join(message.text for message in request.messages)
        ticket = re.search(r"Ticket number (\d+)", text)
        turn = sum(message.role is Role.ASSISTANT for message in request.messages)
        right = ticket and (HARMFUL not in text if int(ticket[1]) % self._n else USEFUL in text)
        command = "echo ready > status.txt" if right else "echo 'It is done.' > report.md"
        call = finishing_call(request) if turn else command_call(request.tools, command)
        if call is None:
            return Reply("It is done.")
        return Reply("", (ToolCall(f"call_{turn}", call[0], json.dumps(call[1])),), Stop.TOOL_CALLS)


def make_tickets(folder: Path, count: int) -> Path:
    """A suite of equal tasks that differ in their numbers."""
    folder.mkdir()
    shutil.copy(WORD.parents[1] / "suite.toml", folder)
    for number in range(count):
        task = folder / "tasks" / f"ticket-{number:02}"
        shutil.copytree(WORD, task)
        with (task / "problem.md").open("a") as problem:
            problem.write(f"\nTicket number {number}.\n")
    return folder
