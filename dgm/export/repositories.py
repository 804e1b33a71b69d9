"""Agents as git has them: a clone of ``agents.git``, an agent's files with the history of its lineage, a patch series.

Git's plumbing copies the objects and this module writes the rest. Hooks, filters and settings of an agent's tree, of
the user and of the machine therefore take no part.
"""

import os
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from dgm.analysis.best import best_of
from dgm.analysis.lineage import Lineage, LineageStep
from dgm.archive.git_process import run_git
from dgm.archive.identity import identity_of
from dgm.archive.objects import scratch_writer
from dgm.archive.repository import scratch_repository
from dgm.archive.run import Run
from dgm.domain import Agent, AgentId, CommitId
from dgm.errors import UserError
from dgm.export.fresh import new_file, new_folder
from dgm.meta.seed_origin import load_origin
from dgm.show.diffs import Patch
from dgm.show.safe import neutralise, one_line
from dgm.show.words import resolved_text

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
_PLAIN = "* -text !eol !filter !ident !working-tree-encoding\n"
"""Attributes for the first checkout only: files are as the agents left them, byte for byte."""
_SERIES = (
    "format-patch",
    "--stdout",
    "--binary",
    "--full-index",
    "--no-renames",
    "--no-ext-diff",
    "--no-textconv",
    "--no-signature",
)


def write_repository(run: Run, target: Path) -> AgentId:
    """Make a new git repository with a branch ``agents/N`` for each agent; return the one that is checked out.

    Children that wait for a person are no agents and are left out.

    Raises:
        UserError: the run has no agent, git is not installed, or the folder cannot be made.
        ArchiveCorrupt: a commit is missing or damaged.
        Infrastructure: git takes longer than two minutes for one step.
    """
    agents = run.tree.agents
    if not agents:
        raise UserError(f"run {run.name} has no agent yet; wait until its seed is born")
    best = best_of(run)
    with _new_clone(target, f"agents/{best}", str(identity_of(run))) as git:
        _copy_objects(run, (agent.commit for agent in agents), git)
        _write_branches(git, {f"agents/{agent.id}": agent.commit for agent in agents})
    return best


def write_home(run: Run, agent: Agent, target: Path) -> int:
    """Make a new folder with an agent's files, as a git repository; return the number of files.

    The branch ``agents/N`` ends with the step that made agent N of the lineage; ``main`` is the agent itself. Where the
    seed came from a git repository, the first commit is the one it came from, or follows it. Earlier history is not
    there, as in a shallow clone: ``git fetch --unshallow`` of the repository brings it, and a push needs none.

    Raises:
        UserError: the folder is not empty or cannot be made, or git is not installed.
        ArchiveCorrupt: a commit is missing or damaged.
        Infrastructure: git takes longer than two minutes for one step.
    """
    seed, *steps = Lineage(run.tree, agent.id).steps(run)
    with _new_clone(target, MAIN, f"agent {agent.id} of {identity_of(run)}") as git:
        trees = _copy_trees(run, [seed, *steps], git)
        origin = load_origin(run.config, str(run.folder / "run.json"))
        if origin and origin.tree == trees[0]:
            first = CommitId(scratch_writer(git / "objects")("commit", origin.data))
        else:
            first = _put_commit(run, seed, trees[0], CommitId(origin.commit) if origin else None, git)
        if origin and (first != origin.commit or origin.has_parents):
            (git / "shallow").write_text(f"{first}\n")
        commits = [first, *_put_commits(run, steps, trees[1:], first, git)]
        line = zip([seed, *steps], commits, strict=True)
        _write_branches(git, {MAIN: commits[-1], **{f"agents/{step.agent.id}": one for step, one in line}})
    return len(run.source(agent.id))


def write_patch(run: Run, agent: Agent, target: Path) -> int:
    """Write what a lineage changed to a new file that ``git am`` and ``git apply`` take; return the number of commits.

    Each step that changed something is one commit, as ``git format-patch`` writes it. Files with a carriage return
    are in git's binary form, because ``git am`` strips carriage returns from text.

    Raises:
        UserError: nothing changed, the file is there already or cannot be written, or git is not installed.
        ArchiveCorrupt: a commit is missing or damaged.
        Infrastructure: git takes longer than two minutes for one step.
    """
    seed, *steps = Lineage(run.tree, agent.id).steps(run)
    steps = changed_steps(agent, steps)
    with new_file(target) as draft, scratch_repository() as git:
        trees = _copy_trees(run, [seed, *steps], git)
        first = _put_commit(run, seed, trees[0], None, git)
        last = _put_commits(run, steps, trees[1:], first, git)[-1]
        (git / "info").mkdir()
        sources = [run.repository.source(step.agent.commit) for step in (seed, *steps)]
        returns = {path for source in sources for path, entry in source.items() if b"\r" in entry.data}
        (git / "info" / "attributes").write_text("".join(map(_binary_rule, sorted(returns))))
        draft.write_bytes(run_git(git, *_SERIES, f"{first}..{last}"))
    return len(steps)


def changed_steps(agent: Agent, steps: Iterable[LineageStep]) -> list[LineageStep]:
    """Return the steps of an agent's lineage that changed something.

    Raises:
        UserError: there is none.
    """
    changed = [step for step in steps if step.patch]
    if not changed:
        raise UserError(f"agent {agent.id} has the source of the seed, so there is nothing to propose")
    return changed


def commit_message(run: Run, step: LineageStep) -> str:
    """Return the message of a step's commit: what changed, and where that comes from.

    The maker's words are indented, so that ``git am`` and ``git apply`` read no header and no diff in them.
    """
    agent, name = step.agent, one_line(run.name, NAME_CHARS)
    facts = f"Evaluations resolved: {resolved_text(step.own)}\nCommit of the archive: {agent.commit}\n"
    if not agent.parents:
        return f"Agent {agent.id}, from which the run {name} started\n\n{facts}"
    title, reason = step_title(step), neutralise(" ".join(agent.rationale.split()))
    parents = " and ".join(f"agent {parent}" for parent in agent.parents)
    operator = one_line(agent.operator, NAME_CHARS)
    origin = textwrap.fill(
        f"Agent {agent.id} of the run {name}, made from {parents} by {operator}.", TITLE_CHARS
    )
    rest = textwrap.fill(reason, TITLE_CHARS, initial_indent="  ", subsequent_indent="  ")
    return "\n\n".join([title, *([rest] if reason not in ("", title) else []), origin, facts])


def step_title(step: LineageStep) -> str:
    """Return what the maker of a step said of it, cut to a title; the changed files where it said nothing."""
    paths = changed_files(step.patch)
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    files = f"Change {neutralise(paths[0])}{more}" if paths else "Change the agent"
    return one_line(" ".join(step.agent.rationale.split()) or files, TITLE_CHARS)


def changed_files(patch: bytes) -> list[str]:
    """Return the paths that a patch of dgm's own changes, sorted."""
    return sorted({file.path for file in Patch(patch).files})


@contextmanager
def _new_clone(target: Path, branch: str, description: str) -> Iterator[Path]:
    """Yield the ``.git`` of a new folder; check ``branch`` out into the folder, byte for byte, at the end."""
    with new_folder(target) as draft:
        git = draft / ".git"
        for part in ("objects/pack", "objects/info", "refs/heads", "refs/tags", "info"):
            (git / part).mkdir(parents=True)
        (git / "config").write_text(_CONFIG)
        (git / "description").write_text(f"{one_line(description, 400)}\n", encoding="utf-8")
        (git / "HEAD").write_text(f"ref: refs/heads/{branch}\n")
        (git / "info" / "attributes").write_text(_PLAIN)
        yield git
        run_git(git, "--work-tree=..", "read-tree", "-u", "--reset", "HEAD")
        (git / "info" / "attributes").unlink()


def _copy_objects(run: Run, wanted: Iterable[CommitId], git: Path) -> None:
    """Copy commits or trees, and all that they need, into a new repository."""
    run_git(git, "index-pack", "--stdin", given=run.repository.pack_objects(wanted))


def _copy_trees(run: Run, steps: Iterable[LineageStep], git: Path) -> list[CommitId]:
    trees = [CommitId(tree) for tree in run.repository.trees_of(step.agent.commit for step in steps)]
    _copy_objects(run, trees, git)
    return trees


def _write_branches(git: Path, branches: Mapping[str, CommitId]) -> None:
    """Write ``packed-refs`` as git does: sorted by name, without tags that git would peel."""
    lines = [f"{commit} refs/heads/{name}\n" for name, commit in sorted(branches.items())]
    (git / "packed-refs").write_text("# pack-refs with: peeled fully-peeled sorted \n" + "".join(lines))


def _put_commits(
    run: Run, steps: Iterable[LineageStep], trees: Iterable[CommitId], parent: CommitId, git: Path
) -> list[CommitId]:
    commits = [parent]
    for step, tree in zip(steps, trees, strict=True):
        commits.append(_put_commit(run, step, tree, commits[-1], git))
    return commits[1:]


def _put_commit(run: Run, step: LineageStep, tree: CommitId, parent: CommitId | None, git: Path) -> CommitId:
    """Write a commit with a title that says what changed; those of ``agents.git`` all have one title."""
    signature = f"{_BY} {int(run.config.get('created', 0))} +0000"
    lines = [f"tree {tree}", *([f"parent {parent}"] if parent else [])]
    lines += [f"author {signature}", f"committer {signature}", "", commit_message(run, step)]
    return CommitId(scratch_writer(git / "objects")("commit", "\n".join(lines).encode()))


def _binary_rule(path: str) -> str:
    """Return the line of git's attributes that has a file's changes written in binary form."""
    escaped = re.sub(rb"[*?\[\\]", rb"\\\g<0>", os.fsencode(path))
    return '"/' + "".join(f"\\{byte:03o}" for byte in escaped) + '" -diff\n'
