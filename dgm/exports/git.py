"""An agent as git has it: its files with the history of its lineage, or that history as a patch series.

Git's plumbing copies the objects and this module writes the rest. Hooks, filters and settings of an agent's tree, of
the user and of the machine therefore take no part.
"""

import os
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dgm.analysis.agents import trace_lineage
from dgm.archive.git import Objects, quote_name
from dgm.archive.repository import scratch_objects
from dgm.archive.run import Run, identity_of
from dgm.domain import SEED, Agent, CommitId, Snapshot
from dgm.errors import UserError
from dgm.exports.files import new_file, new_folder
from dgm.meta.seeds import load_origin
from dgm.render.safe import neutralise, one_line

TITLE_CHARS = 72
NAME_CHARS = 30
"""Characters shown of a run's name."""
MAIN = "main"
_BY = "dgm <dgm@localhost>"
_CONFIG = """[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = false
\tlogallrefupdates = true
"""
_SERIES = (
    "format-patch --stdout --binary --full-index --no-renames --no-ext-diff --no-textconv --no-signature"
)


@dataclass(frozen=True, slots=True)
class _Step:
    agent: Agent
    source: Snapshot
    tree: CommitId
    changed: Sequence[str]
    """Paths that differ from the previous step."""


def write_source(run: Run, agent: Agent, target: Path) -> dict[str, int]:
    """Make a new folder with an agent's files, as a git repository; return the numbers of files and of its steps.

    The branch ``agents/N`` ends with the step that made agent N of the lineage; ``main`` is the agent itself. Where the
    seed came from a git repository, the first commit is the one it came from, or follows it. Earlier history is not
    there, as in a shallow clone: ``git fetch --unshallow`` of the repository brings it, and a push needs none.

    Raises:
        UserError: the folder is not empty or cannot be made, or git is not installed.
        ArchiveCorrupt: a commit is missing or damaged.
        Infrastructure: git takes longer than two minutes for one step.
    """
    seed, *steps = _read_steps(run, agent)
    with _new_clone(target, f"agent {agent.id} of {identity_of(run)}") as git:
        _copy_trees(run, [seed, *steps], git)
        # Only the origin of agent 0 is recorded.
        origin = load_origin(run.config, str(run.folder / "run.json")) if seed.agent.id == SEED else None
        if origin and origin.tree == seed.tree:
            first = _write_commit(origin.data, git)
        else:
            first = _put_commit(run, seed, CommitId(origin.commit) if origin else None, git)
        if origin and (first != origin.commit or origin.has_parents):
            (git.repository / "shallow").write_text(f"{first}\n")
        commits = [first, *_put_commits(run, steps, first, git)]
        branches = {f"agents/{step.agent.id}": c for step, c in zip([seed, *steps], commits, strict=True)}
        _write_branches(git, {MAIN: commits[-1], **branches})
    return {"files": len((seed, *steps)[-1].source), "steps": len(commits)}


def write_patch(run: Run, agent: Agent, target: Path) -> int:
    """Write what a lineage changed to a new file that ``git am`` and ``git apply`` take; return the number of commits.

    Each step that changed something is one commit, as ``git format-patch`` writes it. Files with a carriage return
    are in git's binary form, because ``git am`` strips carriage returns from text.

    Raises:
        UserError: nothing changed, the file is there already or cannot be written, or git is not installed.
        ArchiveCorrupt: a commit is missing or damaged.
        Infrastructure: git takes longer than two minutes for one step.
    """
    seed, *steps = _read_steps(run, agent)
    steps = [step for step in steps if step.changed]
    if not steps:
        raise UserError(f"agent {agent.id} has the source of the seed, so there is nothing to propose")
    with new_file(target) as draft, scratch_objects() as git:
        _copy_trees(run, [seed, *steps], git)
        first = _put_commit(run, seed, None, git)
        last = _put_commits(run, steps, first, git)[-1]
        returns = {
            path for step in (seed, *steps) for path, entry in step.source.items() if b"\r" in entry.data
        }
        rules = git.repository / "attributes"
        rules.write_text("".join(map(_binary_rule, sorted(returns))))
        settings = ["-c", f"core.attributesFile={rules}"]
        draft.write_bytes(git.run(*settings, *_SERIES.split(), f"{first}..{last}"))
    return len(steps)


def _read_steps(run: Run, agent: Agent) -> list[_Step]:
    steps: list[_Step] = []
    agents = trace_lineage(run.tree, agent.id)
    trees = run.repository.trees_of(step.commit for step in agents)
    for step, tree in zip(agents, trees, strict=True):
        before = steps[-1].source if steps else {}
        source = run.repository.source(step.commit)
        changed = sorted(
            path for path in before.keys() | source.keys() if before.get(path) != source.get(path)
        )
        steps.append(_Step(step, source, CommitId(tree), changed))
    return steps


def _commit_message(run: Run, step: _Step) -> str:
    """Return the message of a step's commit: what changed, and where that comes from.

    The agent's words are indented, so that ``git am`` and ``git apply`` read no header and no diff in them.
    """
    agent, name, tally = step.agent, one_line(run.name, NAME_CHARS), run.tree.own(step.agent.id)
    facts = f"Evaluations resolved: {tally.resolved} of {tally.n}\nCommit of the archive: {agent.commit}\n"
    if not agent.parents:
        return f"Agent {agent.id}, from which the run {name} started\n\n{facts}"
    rationale = " ".join(agent.rationale.split())
    more = f" and {len(step.changed) - 1} more" if len(step.changed) > 1 else ""
    files = f"Change {step.changed[0]}{more}" if step.changed else "Change the agent"
    title, reason = one_line(rationale or files, TITLE_CHARS), neutralise(rationale)
    parents = " and ".join(f"agent {parent}" for parent in agent.parents)
    operator = one_line(agent.operator, NAME_CHARS)
    origin = f"Agent {agent.id} of the run {name}, made from {parents} by {operator}."
    rest = textwrap.fill(reason, TITLE_CHARS, initial_indent="  ", subsequent_indent="  ")
    body = [] if reason in ("", title) else [rest]
    return "\n\n".join([title, *body, textwrap.fill(origin, TITLE_CHARS), facts])


@contextmanager
def _new_clone(target: Path, description: str) -> Iterator[Objects]:
    """Yield the objects of a new folder; check its main branch out into the folder, byte for byte, at the end."""
    with new_folder(target) as draft:
        folder = draft / ".git"
        for part in ("objects/pack", "objects/info", "refs/heads", "refs/tags", "info"):
            (folder / part).mkdir(parents=True)
        (folder / "config").write_text(_CONFIG)
        (folder / "description").write_text(f"{one_line(description, 400)}\n", encoding="utf-8")
        (folder / "HEAD").write_text(f"ref: refs/heads/{MAIN}\n")
        git = Objects(folder)
        yield git
        main = (folder / "refs" / "heads" / MAIN).read_text().strip()
        git.run(f"--work-tree={draft}", "read-tree", "-u", "--reset", main)


def _copy_trees(run: Run, steps: Sequence[_Step], git: Objects) -> None:
    git.run("index-pack", "--stdin", data=run.repository.pack_objects(step.tree for step in steps))


def _write_branches(git: Objects, branches: Mapping[str, CommitId]) -> None:
    for name, commit in branches.items():
        file = git.repository / "refs" / "heads" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"{commit}\n")


def _put_commits(run: Run, steps: Sequence[_Step], parent: CommitId, git: Objects) -> list[CommitId]:
    commits = [parent]
    for step in steps:
        commits.append(_put_commit(run, step, commits[-1], git))
    return commits[1:]


def _put_commit(run: Run, step: _Step, parent: CommitId | None, git: Objects) -> CommitId:
    """Write a commit with a title that says what changed; those of ``agents.git`` all have one title."""
    signature = f"{_BY} {int(run.config.get('created', 0))} +0000"
    lines = [f"tree {step.tree}", *([f"parent {parent}"] if parent else [])]
    lines += [f"author {signature}", f"committer {signature}", "", _commit_message(run, step)]
    return _write_commit("\n".join(lines).encode(), git)


def _write_commit(data: bytes, git: Objects) -> CommitId:
    return CommitId(
        git.run("hash-object", "-t", "commit", "-w", "--stdin", "--literally", data=data).decode().strip()
    )


def _binary_rule(path: str) -> str:
    """Return the line of git's attributes that has a file's changes written in binary form."""
    pattern = re.sub(rb"[*?\[\\]", rb"\\\g<0>", os.fsencode(path))
    return f"{quote_name('/' + os.fsdecode(pattern)).decode()} -diff\n"
