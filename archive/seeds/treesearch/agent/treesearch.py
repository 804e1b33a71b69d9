"""Monte Carlo tree search: a node is a state of the repository with the conversation that led to it.

An expansion lets the model work from a node until it edits something or ends. Tests and the model value the new state;
its siblings are told in hindsight what became of it.
"""

import copy
import math
import re

from agent import prompts
from agent.tools import work
from agent.workspace import Workspace

MOST_EXPANSIONS = 24
MOST_CHILDREN = 3
STEPS = 12
RESERVED_CALLS = 2
SATISFIED = 0.9
CLOSE = 0.1
EXPLORATION = 0.7
EARLY_BONUS, EARLY_DECAY, LATE_PENALTY = 0.2, 1.0, 0.05
TEMPERATURE = 0.7


class Node:
    """A state of the search, with the number and sum of the values below it."""

    def __init__(self, state, messages=(), parent=None, diff="", finished=False):
        self.state, self.messages, self.parent, self.children = state, messages, parent, []
        self.diff, self.finished, self.closed, self.value, self.feedback = diff, finished, finished, 0.0, ""
        self.depth, self.visits, self.total = parent.depth + 1 if parent else 0, 0, 0.0

    def tree(self):
        """Yield this node and all below it."""
        yield self
        for child in self.children:
            yield from child.tree()


def uct(node):
    """Return a node's score for selection (arXiv:2410.20285, eq. 3): value, exploration, and terms for its depth."""
    depth, before = max(1, node.depth), (node.parent or node).visits
    explore = EXPLORATION * math.sqrt(math.log(before + 1) / node.visits)
    bias = EARLY_BONUS * math.exp(-EARLY_DECAY * (depth - 1)) - LATE_PENALTY * math.sqrt(depth)
    return node.total / node.visits + explore + bias


def select(root):
    """Return the node to expand: the best by ``uct`` of all that may have another child; None if there is none."""
    nodes = [node for node in root.tree() if not node.closed and len(node.children) < MOST_CHILDREN]
    return max(nodes, key=uct, default=None)


def backpropagate(node, value):
    """Count a value for a node and all above it."""
    while node:
        node.visits, node.total = node.visits + 1, node.total + value
        node = node.parent


def finalists(root):
    """Return the best nodes of different states: finished ones if there are any, the highest value first."""
    changed = [node for node in root.tree() if node.diff]
    nodes = sorted(
        [n for n in changed if n.finished] or changed, key=lambda n: (-n.value, -n.finished, -n.depth)
    )
    firsts = {}
    for node in nodes:
        if node.value >= nodes[0].value - CLOSE:
            firsts.setdefault(node.state, node)
    return list(firsts.values())


def read_value(text):
    """Return the value in [0, 1] that a judgement ends with; None if it names none."""
    found = re.findall(r"VALUE\W{0,4}(\d{1,3})\b", text)
    return min(100, int(found[-1])) / 100 if found else None


def hindsight(node):
    """Return what became of a node's children."""
    rows = ["- valued %.2f: %s\n%s" % (child.value, child.feedback, child.diff) for child in node.children]
    return prompts.HINDSIGHT + "\n".join(rows)


def solve(job, model):
    """Work on a job; True if the search came to a finished state."""
    workspace = Workspace(job["workdir"])
    try:
        return Search(job, model, workspace).run()
    finally:
        workspace.close()


class Search:
    """The search of one job."""

    def __init__(self, job, model, workspace):
        self.job, self.model, self.workspace = job, model, workspace
        messages = [
            {"role": "system", "content": prompts.system(job.get("kind"))},
            {"role": "user", "content": prompts.first_message(job)},
        ]
        self.root = Node(workspace.start, messages)
        backpropagate(self.root, workspace.test(model.left_s())[0] / 2)

    def run(self):
        best = None
        try:
            for number in range(MOST_EXPANSIONS):
                node = select(self.root)
                if node is None or self.model.calls <= RESERVED_CALLS:
                    break
                child = self.expand(node)
                print("expansion %d: depth %d, value %.2f" % (number + 1, child.depth, child.value))
                if child.finished and (child.value >= SATISFIED or not child.diff):
                    break
            best = self.choose()
            return any(node.finished for node in self.root.tree())
        finally:
            best = best or next(iter(finalists(self.root)), None)
            self.workspace.restore(best.state if best else self.workspace.save())

    def expand(self, node):
        """Add a child to a node, and value it."""
        self.workspace.restore(node.state)
        messages = copy.deepcopy(node.messages)
        if node.children:
            messages.append({"role": "user", "content": hindsight(node)})
        self.model.temperature = TEMPERATURE if node.children else 0.0
        steps = max(1, min(STEPS, self.model.calls - RESERVED_CALLS))
        moved = lambda: self.workspace.save() != node.state  # noqa: E731
        finished = work(self.model, messages, self.job["workdir"], steps, stop=moved)
        state = self.workspace.save()
        child = Node(state, messages, node, self.workspace.diff(state), finished)
        node.children.append(child)
        child.closed = finished or sum(sibling.state == state for sibling in node.children) > 1
        child.value, child.feedback = self.judge(child)
        backpropagate(child, child.value)
        return child

    def judge(self, node):
        """Return a node's value, half by the visible tests and half by the model, and why."""
        score, output = self.workspace.test(self.model.left_s())
        twin = next(
            (n for n in self.root.tree() if n is not node and n.state == node.state and n.feedback), None
        )
        if twin or not node.diff or self.model.calls <= RESERVED_CALLS:
            return (twin.value, twin.feedback) if twin else (score / 2, "nothing is changed yet")
        text = "%s\n\n=== The change ===\n%s" % (self.job["problem"], node.diff)
        text += "\n\n=== The visible tests ===\n" + output[-3000:]
        said = self.ask(prompts.VALUE, text)
        rating = read_value(said)
        return (score if rating is None else (score + rating) / 2), said[-600:]

    def choose(self):
        """Return the best node; where several are close, the one that the model names."""
        nodes, text = finalists(self.root), self.job["problem"]
        if len(nodes) < 2 or self.model.calls <= 0:
            return nodes[0] if nodes else None
        for number, node in enumerate(nodes, 1):
            text += "\n\n=== Change %d: %s ===\n%s" % (number, node.feedback, node.diff)
        numbers = map(int, re.findall(r"^\W*(\d{1,3})\W*$", self.ask(prompts.JUDGE, text), re.M))
        chosen = [nodes[number - 1] for number in numbers if 1 <= number <= len(nodes)]
        return chosen[-1] if chosen else nodes[0]

    def ask(self, question, text):
        return self.model.ask([{"role": "system", "content": question}, {"role": "user", "content": text}])[
            "content"
        ]
