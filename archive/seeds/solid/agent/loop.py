"""The control loop: ask the model, run what it asks for, repeat until it submits or a limit is reached."""

import re
import time

from agent import model, native_format, prompts, text_format
from agent.memory import History, Turn
from agent.tools import Toolbox

MAX_STEPS = 250
TIME_LIMIT_S = 3600
MAX_REMINDERS = 3
DONE = re.compile(r"\bDONE\b")


class Limits:
    """Steps and time of a job, with a reserve so that the agent ends by itself."""

    def __init__(self, job):
        self.steps = min(MAX_STEPS, int(job.get("calls") or MAX_STEPS))
        total = float(job.get("time_limit_s") or TIME_LIMIT_S)
        self.end = time.monotonic() + total - min(20.0, total / 10)
        self.late = self.end - total / 10

    def left_s(self):
        return self.end - time.monotonic()

    def reached(self, steps):
        """Which limit is reached; nothing if none is."""
        if steps >= self.steps:
            return "step limit reached"
        return "time limit reached" if self.left_s() <= 0 else ""

    def near(self, steps):
        """Tell whether the job should be finished now."""
        return steps >= max(self.steps - 5, self.steps // 2) or time.monotonic() > self.late


def work(job):
    """Work on a job; 0 if it was submitted, 1 at a limit or without an answer."""
    toolbox = Toolbox(job["workdir"])
    try:
        return Session(job, toolbox).run()
    finally:
        toolbox.close()


class Session:
    """One job at work."""

    def __init__(self, job, toolbox):
        self.kind = job.get("kind")
        self.toolbox = toolbox
        self.limits = Limits(job)
        self.history = History(prompts.first_message(job), prompts.list_files(job["workdir"]))
        self.form = text_format if job.get("actions") == "text" else native_format
        self.may_switch = "actions" not in job
        self.steps = self.idle = self.written = 0
        self.warned = self.stuck = False
        command, output = self.history.look
        self.seen = {("bash", str({"command": command})): output}

    def run(self):
        """Ask and act until something ends it."""
        why = self.limits.reached(0)
        while not why:
            try:
                self.ask()
            except model.GivenUp as error:
                why = str(error)
                break
            if self.toolbox.submitted:
                return 0
            if self.idle > MAX_REMINDERS:
                why = "no action after %d reminders" % MAX_REMINDERS
            why = why or self.limits.reached(self.steps)
        print(why)
        return 1

    def ask(self):
        """One step: a reply, and what came of it."""
        self.history.fit()
        while True:
            try:
                body = self.form.request(self.kind, self.history)
                temperature = model.LIVELY if self.stuck else model.TEMPERATURE
                message, cut = model.reply(body, self.limits.end, temperature)
                break
            except model.TooLong as error:
                if not self.history.refused():
                    raise model.GivenUp("the conversation cannot be made shorter: %s" % error) from error
            except model.NoTools as error:
                print("the model takes no tools, going on with text: %s" % error)
                self.form = text_format
        self.steps += 1
        said = text_format.content(message)
        print("step %d: %s" % (self.steps, said))
        if cut and self.form is text_format:
            # The rest may go round in circles, and the next reply with it if it is shown.
            message["content"] = said = text_format.keep_whole(said)
        turn = Turn(message, said, self.form.parse(message, self.steps))
        self.act(turn, cut)
        self.history.turns.append(turn)

    def act(self, turn, cut):
        """Run the calls of a reply, or answer one that has none."""
        if cut:
            turn.note = prompts.CUT + (" " + prompts.REMINDER[self.form.NAME]) * (not turn.calls)
        elif not turn.calls and self.form is native_format:
            self.read_written(turn)
        for call in turn.calls:
            print("  %s %s" % (call.name, str(call.arguments)[:200]))
            result = call.fault or self.toolbox.run(call.name, call.arguments, self.limits.left_s())
            turn.results.append(result)
        self.idle = 0 if turn.calls else self.idle + 1
        self.stuck = not turn.calls or self.repeats(turn)
        if self.stuck and turn.calls:
            turn.note = (turn.note + " " + prompts.REPEATED).strip()
        if not turn.calls and not turn.note:
            self.answer(turn)
        if not self.warned and self.limits.near(self.steps):
            self.warned = True
            turn.note = (turn.note + "\n\n" + prompts.LAST).strip()

    def repeats(self, turn):
        """Tell whether all calls of a reply gave what the same calls gave before."""
        made = {
            (call.name, str(call.arguments)): text.strip() for call, text in zip(turn.calls, turn.results)
        }
        known = all(self.seen.get(call) == text for call, text in made.items())
        self.seen.update(made)
        return known

    def answer(self, turn):
        """Answer a reply without a call: it ends the work if it says so."""
        if DONE.search(turn.said):
            turn.note = self.toolbox.submit()
        else:
            turn.note = prompts.REMINDER[self.form.NAME]

    def read_written(self, turn):
        """Answer a call that was written as text; the second one shows that the model has no better way."""
        calls = text_format.parse(turn.message, self.steps)
        if not calls:
            return
        self.written += 1
        if self.written < 2 or not self.may_switch:
            turn.note = prompts.WRITTEN
            return
        print("the model writes its calls as text, going on with text")
        self.form, turn.calls = text_format, calls
