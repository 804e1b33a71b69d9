"""Attempts at one problem: explore, revise the worst, recombine two, refine the best, and choose.

The attempts run one after another in the repository, which is set back in between.
"""

import re
from collections import Counter
from typing import NamedTuple

from agent import prompts
from agent.tools import work
from agent.workspace import Workspace

ATTEMPTS = 5
RESERVED_CALLS = 4
LEAST_STEPS = 4
MOST_REPORT = 6000
TEMPERATURE = 0.7


class Attempt(NamedTuple):
    """One trajectory: the state it left, its score by the visible tests, whether it ended by itself, diff and story."""

    name: str
    state: str
    score: float
    done: bool
    diff: str
    report: str


def solve(job, model):
    """Work on a job; True if the attempts ended by themselves."""
    workspace = Workspace(job["workdir"])
    try:
        return Pool(job, model, workspace).run()
    finally:
        workspace.close()


class Pool:
    """The attempts at a job."""

    def __init__(self, job, model, workspace):
        self.job, self.model, self.workspace = job, model, workspace
        self.attempts = []

    def run(self):
        best = None
        try:
            for plan in prompts.PLANS:
                self.attempt("explore", plan)
            if not agreed(self.attempts):
                self.revise()
                self.recombine()
                self.refine()
            best = self.choose()
            return any(attempt.done for attempt in self.attempts)
        finally:
            best = best or max(self.attempts, key=quality, default=None)
            self.workspace.restore(best.state if best and best.diff else self.workspace.save())
            print("chosen: %s" % (best.name if best else "the unfinished first attempt"))

    def attempt(self, name, guidance, state=""):
        """Make an attempt from a state, the start unless one is named."""
        self.workspace.restore(state or self.workspace.start)
        messages = [
            {"role": "system", "content": prompts.system(self.job.get("kind"), guidance)},
            {"role": "user", "content": prompts.first_message(self.job)},
        ]
        left = max(1, ATTEMPTS - len(self.attempts))
        steps = max(LEAST_STEPS, (self.model.calls - RESERVED_CALLS) // left)
        print("attempt %d: %s" % (len(self.attempts) + 1, name))
        self.model.temperature = TEMPERATURE if self.attempts else 0.0
        done = work(self.model, messages, self.job["workdir"], steps)
        state, (score, _) = self.workspace.save(), self.workspace.test(self.model.left_s())
        self.attempts.append(Attempt(name, state, score, done, self.workspace.diff(state), report(messages)))

    def revise(self):
        worst = min(self.attempts, key=quality)
        self.attempt("revise", prompts.REVISE + self.ask(prompts.REFLECT, [worst]))

    def recombine(self):
        first, second = parents(self.attempts)
        self.attempt("recombine", prompts.RECOMBINE + self.ask(prompts.COMBINE, [first, second]))

    def refine(self):
        best = max(self.attempts, key=quality)
        if best.diff:
            self.attempt("refine", prompts.REFINE + best.diff, best.state)

    def choose(self):
        """Return the best attempt: by the visible tests, then by the model, then by the number that agree."""
        finalists = select(self.attempts)
        if len(finalists) == 1:
            return finalists[0]
        number = chosen_number(self.ask(prompts.JUDGE, finalists), len(finalists))
        return finalists[number - 1] if number else finalists[0]

    def ask(self, question, attempts):
        """Ask the model about attempts."""
        text = self.job["problem"]
        for number, attempt in enumerate(attempts, 1):
            text += "\n\n=== Attempt %d (visible tests: %d %%) ===\n" % (number, 100 * attempt.score)
            text += attempt.report + "\n\nIts change:\n" + (attempt.diff or "none")
        messages = [{"role": "system", "content": question}, {"role": "user", "content": text}]
        return self.model.ask(messages)["content"]


def quality(attempt):
    """Return a key: an attempt that changed something, passes tests and ended by itself is better."""
    return (bool(attempt.diff), attempt.score, attempt.done)


def agreed(attempts):
    """Tell whether all attempts ended by themselves in the same state, and the tests pass there."""
    return len({attempt.state for attempt in attempts}) == 1 and all(
        a.done and a.score == 1 for a in attempts
    )


def lines(attempt):
    return {line for line in attempt.diff.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")}


def distance(one, other):
    """Return how different two changes are: 1 - Jaccard index of their changed lines."""
    union = lines(one) | lines(other)
    return 1 - len(lines(one) & lines(other)) / len(union) if union else 0.0


def parents(attempts):
    """Return the best attempt, and the one whose change is most different from it."""
    best = max(attempts, key=quality)
    others = [attempt for attempt in attempts if attempt is not best]
    return best, max(others, key=lambda attempt: (distance(best, attempt), quality(attempt)))


def select(attempts):
    """Return one attempt for each state of the best quality, the most frequent state first."""
    top = max(map(quality, attempts))
    votes = Counter(attempt.state for attempt in attempts)
    firsts = {attempt.state: attempt for attempt in reversed(attempts) if quality(attempt) == top}
    return sorted(firsts.values(), key=lambda attempt: (-votes[attempt.state], attempts.index(attempt)))


def chosen_number(text, count):
    """Return the last number from 1 to ``count`` that stands alone on a line; 0 if there is none."""
    numbers = [int(number) for number in re.findall(r"^\W*(\d{1,3})\W*$", text, re.M)]
    return next((number for number in reversed(numbers) if 1 <= number <= count), 0)


def report(messages):
    """Return what the model said and did, without the results."""
    rows = []
    for message in messages[2:]:
        if message["role"] == "assistant":
            rows.append(message["content"])
            rows += ["> " + call["function"]["arguments"][:300] for call in message.get("tool_calls", ())]
    return "\n".join(row for row in rows if row)[-MOST_REPORT:]
