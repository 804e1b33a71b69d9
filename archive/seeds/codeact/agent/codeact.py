"""The control loop: the model writes Python code, the interpreter runs it, the model sees what came of it."""

import contextlib
import re

from agent import prompts
from agent.interpreter import Interpreter

MOST_STEPS = 250
MOST_REMINDERS = 2
BLOCK = re.compile(
    r"^```(python|py|bash|sh)[ \t]*\n(.*?)(?:^```[ \t]*$|\Z)|<execute>(.*?)(?:</execute>|\Z)", re.M | re.S
)


def read_code(text):
    """Return the code of all blocks in a reply; a block of shell commands becomes a call of ``sh``."""
    parts = []
    for language, block, tagged in BLOCK.findall(text):
        parts.append("sh(%r)" % block if language in ("bash", "sh") else (block or tagged).strip("\n"))
    return "\n".join(part for part in parts if part.strip())


def solve(job, model):
    """Work on a job; True if the model ended it."""
    messages = [
        {"role": "system", "content": prompts.system(job.get("kind"))},
        {"role": "user", "content": prompts.first_message(job)},
    ]
    idle = 0
    with contextlib.closing(Interpreter(job["workdir"])) as interpreter:
        for step in range(1, MOST_STEPS + 1):
            answer = model.ask(messages)
            # Calls are not offered; what a model calls all the same cannot be answered.
            messages.append({"role": "assistant", "content": answer["content"] or "(nothing)"})
            print("step %d: %s" % (step, answer["content"][:1000]))
            code = read_code(answer["content"])
            idle = 0 if code else idle + 1
            if not code and ("DONE" in answer["content"] or idle > MOST_REMINDERS):
                return True
            output = "Output:\n" + interpreter.run(code, model.left_s()) if code else prompts.REMINDER
            messages.append({"role": "user", "content": output})
    return False
