"""A coding agent on the package smolagents: one tool. `agent.py JOB`, or `agent.py --check`."""

import json
import os
import sys
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT, run

from smolagents import OpenAIModel, ToolCallingAgent, tool

HERE = Path(__file__).parent
SETTINGS = json.loads((HERE / "settings.json").read_text())
SYSTEM = (HERE / "prompts" / "system.md").read_text()


def work(job):
    @tool
    def bash(command: str) -> str:
        """Run a command of bash.

        Args:
            command: the command.
        """
        words = ["timeout", str(SETTINGS["command_s"]), "bash", "-c", command]
        done = run(words, cwd=job["workdir"], stdin=DEVNULL, stdout=PIPE, stderr=STDOUT, errors="replace")
        return f"exit {done.returncode}\n{done.stdout[-SETTINGS['shown_chars'] :]}"

    model = OpenAIModel(job["model"], api_base=os.environ["OPENAI_BASE_URL"])
    agent = ToolCallingAgent([bash], model, instructions=SYSTEM, max_steps=SETTINGS["steps"])
    print(agent.run(job["problem"]))


if __name__ == "__main__" and "--check" not in sys.argv:
    work(json.loads(Path(sys.argv[1]).read_text()))
