"""Independent answers of several authors, one round of debate, one judge.

The authors work one after another in the repository, which is set back in between, and see nothing of each other.
"""

import re
from collections import Counter
from typing import NamedTuple

from agent import prompts
from agent.tools import work
from agent.workspace import Workspace

TEMPERATURE = 0.7


class Answer(NamedTuple):
    """An author's change: the state it left, its score by the visible tests, whether it ended by itself."""

    author: int
    state: str
    score: float
    done: bool
    diff: str


def solve(job, model):
    """Work on a job; True if an author ended by itself."""
    workspace = Workspace(job["workdir"])
    answers, best = [], None
    try:
        for number in range(len(prompts.AUTHORS)):
            answers.append(answer(job, model, workspace, number))
            if majority(answers, len(prompts.AUTHORS)):
                break
        best = decide(job, model, candidates(answers))
        return any(each.done for each in answers)
    finally:
        best = best or next(iter(candidates(answers)), None)
        workspace.restore(best.state if best and best.diff else workspace.save())
        print("chosen: %s" % (best and "author %d" % (best.author + 1)))
        workspace.close()


def answer(job, model, workspace, number):
    """Let an author work on the problem from the start."""
    workspace.restore(workspace.start)
    authors = len(prompts.AUTHORS)
    messages = [
        {"role": "system", "content": prompts.system(job.get("kind"), prompts.AUTHORS[number])},
        {"role": "user", "content": prompts.first_message(job)},
    ]
    # The debate takes a call of each author, the judgement one more.
    steps = max(1, (model.calls - authors - 1) // (authors - number))
    print("author %d" % (number + 1))
    model.temperature = TEMPERATURE if number else 0.0
    done = work(model, messages, job["workdir"], steps)
    state, (score, _) = workspace.save(), workspace.test(model.left_s())
    return Answer(number, state, score, done, workspace.diff(state))


def majority(answers, authors):
    """Tell whether more than half of all authors ended by themselves in one state that passes the tests."""
    votes = Counter(each.state for each in answers if each.done and each.score == 1)
    return bool(votes) and votes.most_common(1)[0][1] > authors / 2


def candidates(answers):
    """Return one answer for each state, the best first: changed something, score, number of authors, order."""
    votes = Counter(each.state for each in answers)
    firsts = {each.state: each for each in reversed(answers)}
    return sorted(firsts.values(), key=lambda a: (not a.diff, -a.score, -votes[a.state], a.author))


def decide(job, model, ranked):
    """Return the judge's choice after a debate; without one, what most authors vote for, else the first."""
    ranked = [each for each in ranked if each.diff] or ranked
    if len(ranked) == 1:
        return ranked[0]
    text = job["problem"]
    for number, each in enumerate(ranked, 1):
        text += "\n\n=== Change %d (visible tests: %d %%) ===\n%s" % (number, 100 * each.score, each.diff)
    numbers = range(1, len(ranked) + 1)
    roles = ["\n\nYou are the author of change %d." % number for number in numbers]
    arguments = [ask(model, prompts.REBUT, text + role) for role in roles]
    debate = ["\n\n=== Author of change %d ===\n%s" % (n, said) for n, said in enumerate(arguments, 1)]
    verdict = vote(ask(model, prompts.JUDGE, text + "".join(debate)), len(ranked))
    votes = Counter(number for said in arguments if (number := vote(said, len(ranked))))
    # The first of the most frequent ones is the better ranked one.
    elected = min(votes, key=lambda number: (-votes[number], number)) if votes else 1
    print("votes: %s, judge: %s" % (dict(votes), verdict or "none"))
    return ranked[(verdict or elected) - 1]


def vote(text, count):
    """Return the last number from 1 to ``count`` that stands alone on a line; 0 if there is none."""
    numbers = [int(number) for number in re.findall(r"^\W*(\d{1,3})\W*$", text, re.M)]
    return next((number for number in reversed(numbers) if 1 <= number <= count), 0)


def ask(model, question, text):
    return model.ask([{"role": "system", "content": question}, {"role": "user", "content": text}])["content"]
