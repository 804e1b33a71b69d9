"""The control loop: ask the model, run what it asks for, repeat until it submits or a limit is reached."""

import contextlib
import re
import time

from agent import model, native_format, prompts, text_format
from agent.memory import History, Turn
from agent.tools import Toolbox

MAX_STEPS = 250
TIME_LIMIT_S = 3600
MAX_REMINDERS = 3
MAX_REPEATS = 12
DONE = re.compile(r"\bDONE\b")


class Limits:
    """Steps and time of a job, with a reserve so that the agent ends by itself."""

    def __init__(self, job):
        self.steps = min(MAX_STEPS, int(job.get("calls") or MAX_STEPS))
        total = float(job.get("time_limit_s") or TIME_LIMIT_S)
        self.end = time.monotonic() + total - min(20.0, total / 10)
        self.late = self.end - total / 10

    def reached(self, steps):
        """Which limit is reached; nothing if none is."""
        if steps >= self.steps:
            return "step limit reached"
        return "time limit reached" if time.monotonic() >= self.end else ""

    def near(self, steps):
        """Tell whether the job should be finished now."""
        return steps >= max(self.steps - 5, self.steps // 2) or time.monotonic() > self.late


def work(job):
    """Work on a job; 0 if it was submitted, 1 at a limit or without an answer."""
    with contextlib.closing(Toolbox(job["workdir"])) as toolbox:
        print(Session(job, toolbox).run() or "submitted")
        return 0 if toolbox.submitted else 1


class Session:
    """One job at work."""

    def __init__(self, job, toolbox):
        self.kind = job.get("kind")
        self.toolbox = toolbox
        self.limits = Limits(job)
        self.history = History(prompts.first_message(job), prompts.list_files(job["workdir"]))
        self.form = text_format if job.get("actions") == "text" else native_format
        self.may_switch = "actions" not in job
        self.steps = self.idle = self.repeats = self.written = 0
        self.warned = False
        command, output = self.history.look
        self.seen = {("bash", str({"command": command})): output}

    def run(self):
        """Ask and act until the work is submitted; why it ended otherwise."""
        why = ""
        while not (why or self.toolbox.submitted):
            try:
                why = self.limits.reached(self.steps) or self.step()
            except model.GivenUp as error:
                why = str(error)
            except model.NoTools as error:
                print("the model takes no tools, going on with text: %s" % error)
                self.form = text_format
            except model.TooLong as error:
                why = "" if self.history.refused() else "the conversation cannot be made shorter: %s" % error
        return why

    def step(self):
        """A reply and what came of it; why the work ends with it, or nothing."""
        self.history.fit()
        temperature = model.LIVELY if self.idle or self.repeats else model.TEMPERATURE
        body = self.form.request(self.kind, self.history)
        message, cut = model.reply(body, self.limits.end, temperature)
        self.steps += 1
        said = text_format.content(message)
        print("step %d: %s" % (self.steps, said))
        if cut and self.form is text_format:
            # The rest may go round in circles, and the next reply with it if it is shown.
            message["content"] = said = text_format.keep_whole(said)
        turn = Turn(message, said, self.form.parse(message, self.steps))
        self.act(turn, cut)
        self.idle = 0 if turn.calls else self.idle + 1
        self.repeats = self.repeats + 1 if turn.calls and self.seen_before(turn) else 0
        if self.repeats:
            turn.note = (turn.note + " " + prompts.REPEATED).strip()
        if not self.warned and self.limits.near(self.steps):
            self.warned = True
            turn.note = (turn.note + "\n\n" + prompts.LAST).strip()
        self.history.turns.append(turn)
        if self.repeats > MAX_REPEATS:
            return "the same calls %d times in a row" % (self.repeats + 1)
        return "no action after %d reminders" % MAX_REMINDERS if self.idle > MAX_REMINDERS else ""

    def act(self, turn, cut):
        """Run the calls of a reply, and say what is wrong with it."""
        if cut:
            turn.note = prompts.CUT + (" " + prompts.REMINDER[self.form.NAME]) * (not turn.calls)
        elif not turn.calls:
            self.answer(turn)
        for call in turn.calls:
            print("  %s %s" % (call.name, str(call.arguments)[:200]))
            left_s = self.limits.end - time.monotonic()
            turn.results.append(call.fault or self.toolbox.run(call.name, call.arguments, left_s))

    def seen_before(self, turn):
        """Tell whether all calls of a reply gave what the same calls gave before."""
        made = {
            (call.name, str(call.arguments)): text.strip() for call, text in zip(turn.calls, turn.results)
        }
        known = all(self.seen.get(call) == text for call, text in made.items())
        self.seen.update(made)
        return known

    def answer(self, turn):
        """Answer a reply without a call; the second one with a written call shows that the model has no better way."""
        written = text_format.parse(turn.message, self.steps) if self.form is native_format else []
        self.written += bool(written)
        if self.written > 1 and written and self.may_switch:
            print("the model writes its calls as text, going on with text")
            self.form, turn.calls = text_format, written
        elif written:
            turn.note = prompts.WRITTEN
        else:
            turn.note = self.toolbox.submit() if DONE.search(turn.said) else prompts.REMINDER[self.form.NAME]
