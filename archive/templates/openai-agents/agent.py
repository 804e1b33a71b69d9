"""A coding agent on the package openai-agents: one function tool. `agent.py JOB`, or `agent.py --check`."""

import json
import sys
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT, run

from agents import Agent, Runner, function_tool
from agents.exceptions import MaxTurnsExceeded

HERE = Path(__file__).parent
SETTINGS = json.loads((HERE / "settings.json").read_text())
SYSTEM = (HERE / "prompts" / "system.md").read_text()


def work(job):
    @function_tool
    def bash(command: str) -> str:
        """Run a command of bash."""
        words = ["timeout", str(SETTINGS["command_s"]), "bash", "-c", command]
        done = run(words, cwd=job["workdir"], stdin=DEVNULL, stdout=PIPE, stderr=STDOUT, errors="replace")
        print(f"$ {command}\n{done.stdout[:2000]}")
        return f"exit {done.returncode}\n{done.stdout[-SETTINGS['shown_chars'] :]}"

    agent = Agent("coder", instructions=SYSTEM, model=job["model"], tools=[bash])
    try:
        print(Runner.run_sync(agent, job["problem"], max_turns=SETTINGS["steps"]).final_output)
    except MaxTurnsExceeded as error:
        print(error)


if __name__ == "__main__" and "--check" not in sys.argv:
    work(json.loads(Path(sys.argv[1]).read_text()))
