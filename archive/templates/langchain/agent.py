"""A coding agent on LangChain: one tool. `agent.py JOB`, or `agent.py --check`."""

import json
import sys
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT, run

from langchain.agents import create_agent
from langchain.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.errors import GraphRecursionError

HERE = Path(__file__).parent
SETTINGS = json.loads((HERE / "settings.json").read_text())
SYSTEM = (HERE / "prompts" / "system.md").read_text()


def work(job):
    @tool
    def bash(command: str) -> str:
        """Run a command of bash."""
        words = ["timeout", str(SETTINGS["command_s"]), "bash", "-c", command]
        done = run(words, cwd=job["workdir"], stdin=DEVNULL, stdout=PIPE, stderr=STDOUT, errors="replace")
        print(f"$ {command}\n{done.stdout[:2000]}")
        return f"exit {done.returncode}\n{done.stdout[-SETTINGS['shown_chars'] :]}"

    agent = create_agent(ChatOpenAI(model=job["model"]), tools=[bash], system_prompt=SYSTEM)
    # A step is two nodes of the graph: the model, and the tool that it calls.
    limit = {"recursion_limit": 2 * SETTINGS["steps"]}
    try:
        print(agent.invoke({"messages": [("user", job["problem"])]}, limit)["messages"][-1].text)
    except GraphRecursionError as error:
        print(error)


if __name__ == "__main__" and "--check" not in sys.argv:
    work(json.loads(Path(sys.argv[1]).read_text()))
