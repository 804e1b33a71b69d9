"""The changes of an agent against its parent, the root of its line, or a marked agent."""

from collections.abc import Sequence

from dgm.analysis.outline import trace_lineage
from dgm.archive.repository import AgentRepository, patch
from dgm.domain import AgentId, CommitId
from dgm.show.agents import root_text
from dgm.show.diffs import ChangedFile, Patch
from dgm.show.safe import one_line
from dgm.show.spans import Line, Span, Tone, make_line
from dgm.show.words import count_text
from dgm.tui.bodies import Body, DiffBody, LineBody, LineTarget, StackedBody, heading_line
from dgm.tui.reader import RunReader
from dgm.tui.tabs import Load

FILES = 40
"""Maximum number of file names that stand above a patch."""


def find_compared_agents(
    reader: RunReader, agent: AgentId, marks: Sequence[AgentId]
) -> Sequence[AgentId | None]:
    """Return the agents to compare with: parents, the root of its line, marked agents; None stands for nothing.

    A root is compared with nothing first, so that its whole source is seen.
    """
    born = reader.born([agent]).get(agent)
    parents: Sequence[AgentId | None] = born.parents if born else ()
    members = reader.members
    root = trace_lineage(members, agent)[:1] if born and members is not None else ()
    found = [*(parents or [None]), *root, *marks]
    return [other for other in dict.fromkeys(found) if other != agent]


def load(reader: RunReader, agent: AgentId, other: AgentId | None, *, beside: bool) -> Load:
    """Return a loader of the patch from another agent to this one; from nothing where there is no other.

    Args:
        reader: the run.
        agent: the agent.
        other: of ``find_compared_agents``.
        beside: whether both sides stand beside each other.
    """
    known = reader.born([agent] if other is None else [agent, other])
    base = None if other is None else known.get(other)
    root = root_text(base) if base is not None and not base.parents else ""
    repository = AgentRepository(reader.folder / "agents.git")

    def look() -> Body:
        commit = CommitId(known[agent].commit)
        if other is None:
            data = patch({}, repository.source(commit))
        else:
            data = repository.diff(CommitId(known[other].commit), commit)
        return make_patch_body(
            data, _comparison_title(known[agent].parents, agent, other, root), beside=beside
        )

    return look


def make_patch_body(data: bytes, title: str, *, beside: bool) -> "PatchBody":
    """Return a patch as git writes it, ready to be shown in both forms."""
    body = PatchBody(Patch(data), title, beside=True)
    # The lines are paired now, so that nobody waits for it when the patch is turned.
    if not beside:
        body.toggle_form()
    return body


def _comparison_title(parents: tuple[AgentId, ...], agent: AgentId, other: AgentId | None, root: str) -> str:
    """Return the title of a comparison; ``root`` is the name of the other agent where it has no parents."""
    if other is None:
        return f"agent {agent}, all of its source: it has no parent"
    who = "its parent " if other in parents else f"{root}, " if root else ""
    return f"agent {agent} against {who}agent {other}"


class PatchBody(StackedBody):
    """A patch below the names of the files in it; a name leads to its part of the patch."""

    def __init__(self, data: Patch, title: str, *, beside: bool = False) -> None:
        self._files = data.files[:FILES]
        self._diff = DiffBody(data, beside=beside)
        super().__init__([LineBody(list(_head_lines(data, title))), self._diff])

    def target(self, number: int) -> LineTarget | None:
        """Return the line where the file of that name begins."""
        above = len(self.parts[0])
        if not 1 <= number <= len(self._files):
            return None
        begin = self._files[number - 1].line
        patch = self._diff.patch
        return LineTarget(line=above + (patch.row_of(begin) if self._diff.beside else begin))


def _head_lines(data: Patch, title: str) -> Sequence[Line]:
    if not len(data):
        return [heading_line(title), (), make_line("  no difference")]
    added, removed = sum(file.added for file in data.files), sum(file.removed for file in data.files)
    changes = (Span(f" +{added:,}", Tone.ADDED), Span(f" -{removed:,}", Tone.REMOVED))
    names = [_file_line(file) for file in data.files[:FILES]]
    left = len(data.files) - len(names)
    more = [make_line(f"  and {left:,} more")] if left else []
    return [heading_line(title, f": {count_text(len(data.files), 'file')}", *changes), *names, *more, ()]


def _file_line(file: ChangedFile) -> Line:
    counts = (
        (Span("  binary          ", Tone.WARN),)
        if file.binary
        else (
            Span(f"  {f'+{file.added:,}':>7}", Tone.ADDED),
            Span(f" {f'-{file.removed:,}':>7}  ", Tone.REMOVED),
        )
    )
    return make_line(*counts, one_line(file.path, 200))
