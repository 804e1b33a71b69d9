"""The agents that the archive holds, waiting children included, so that nothing is made twice."""

from collections.abc import Mapping, Sequence

from dgm.archive.approvals import WaitingChild
from dgm.archive.events import AgentBorn
from dgm.archive.run import Run
from dgm.archive.tree import Tree
from dgm.domain import NO_ACTION, ActionId, Agent, AgentId, CommitId
from dgm.meta.syntax_key import VERSION, syntax_key

SIBLINGS = 100
"""An edit is compared with at most this many of the parent's newest children."""


class DuplicateIndex:
    """A run's agents by content and by syntax; each is read once."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._contents: dict[str, str] = {}
        self._keys: list[str] = []
        self._waiting: dict[ActionId, str] = {}

    def contents(self, itself: ActionId = NO_ACTION) -> Mapping[str, str]:
        """Return git tree id → name, for every agent's source and every waiting child except ``itself``."""
        agents = self._run.tree.agents
        if len(self._contents) != len(agents):
            self._contents = map_contents(self._run, agents)
        waiting = {action: one for action, one in self._run.tree.waiting.items() if action != itself}
        for action, one in waiting.items():
            if action not in self._waiting:
                self._waiting[action] = self._run.repository.tree_of(one.child.commit)
        if not waiting:
            return self._contents
        return {**{self._waiting[action]: child_of(action) for action in waiting}, **self._contents}

    def syntax(self, there: int | None = None, itself: ActionId = NO_ACTION) -> Mapping[str, str]:
        """Return ``syntax_key`` → name, for every agent's source and every waiting child.

        Agents without a key, or with a key of another version, get one from their sources.

        Args:
            there: only of the first ``there`` agents, and of no waiting child.
            itself: a waiting child that does not count.
        """
        agents = self._run.tree.agents
        if len(self._keys) != len(agents):
            for born in self._run.store.events(AgentBorn):
                if born.id == len(self._keys) < len(agents):
                    key = born.outcome.syntax
                    self._keys.append(
                        key if key.startswith(VERSION) else syntax_key(self._run.source(born.id))
                    )
        asked = {action: one for action, one in self._run.tree.waiting.items() if action != itself}
        waiting = {one.child.syntax: child_of(action) for action, one in asked.items()}
        known = {key: name_of(AgentId(agent)) for agent, key in enumerate(self._keys[:there])}
        return known if there is not None else {**waiting, **known}

    def add(self, event: AgentBorn, content: str) -> None:
        """Add a birth before it is in the tree, to save ``map_contents`` and ``syntax`` the work."""
        self._contents[content] = name_of(event.id)
        if event.outcome.syntax.startswith(VERSION) and len(self._keys) == event.id:
            self._keys.append(event.outcome.syntax)

    def twin(self, content: str, syntax: str, itself: ActionId = NO_ACTION) -> tuple[str, str]:
        """Return the stage at which a child about to be born fails as a copy, and why; two empty texts if it is new.

        Args:
            content: git tree id of its source.
            syntax: its ``syntax_key``; empty if it is not to be compared.
            itself: its action, if it waits.
        """
        same = self.contents(itself).get(content)
        if same:
            return "duplicate", f"the same content as {same}, which was there first"
        same = self.syntax(itself=itself).get(syntax) if syntax else None
        if same:
            why = f"but for comments, docstrings and layout the same as {same}, which was there first"
            return "syntax", why
        return "", ""


def map_contents(run: Run, agents: Sequence[Agent]) -> dict[str, str]:
    """Return git tree id → name, for each agent's source."""
    trees = run.repository.trees_of(agent.commit for agent in agents)
    return {content: name_of(agent.id) for agent, content in zip(agents, trees, strict=True)}


def map_siblings(
    tree: Tree, parent: AgentId, there: int, waiting: Mapping[ActionId, WaitingChild]
) -> Mapping[str, CommitId]:
    """Return the children of one first parent, waiting ones included, as name → commit.

    Args:
        tree: with all of them.
        parent: the first parent.
        there: only of the first ``there`` agents.
        waiting: children that wait at that moment.
    """
    own = [tree.agents[child] for child in tree.children(parent) if child < there]
    born = {name_of(each.id): each.commit for each in own if each.parents[0] == parent}
    asked = {child_of(action): one.child for action, one in waiting.items()}
    named = born | {name: child.commit for name, child in asked.items() if child.parents[0] == parent}
    latest = dict(list(named.items())[-SIBLINGS:])
    # Not by name: a waiting child may be an agent by the time of a replay.
    return dict(sorted(latest.items(), key=lambda each: each[1]))


def name_of(agent: AgentId) -> str:
    """Return the name of an agent for messages."""
    return f"agent {agent}"


def child_of(action: ActionId) -> str:
    """Return the name, for messages, of a child that is no agent yet."""
    return f"the child of action {action}"
