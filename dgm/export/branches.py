"""``agents.git`` as an ordinary clone: a branch per agent, the best one checked out, no link back to this machine.

Git's plumbing copies the objects and this module writes the rest. Hooks, filters and settings of an agent's tree, of
the user and of the machine therefore take no part.
"""

from collections.abc import Iterable
from pathlib import Path

from dgm.analysis.best import best_of
from dgm.archive.git_process import run_git
from dgm.archive.identity import identity_of
from dgm.archive.run import Run
from dgm.domain import Agent, AgentId, CommitId
from dgm.errors import UserError
from dgm.export.fresh import new_folder
from dgm.show.safe import one_line

_CONFIG = """[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = false
\tlogallrefupdates = true
"""
_PLAIN = "* -text !eol !filter !ident !working-tree-encoding\n"
"""Attributes for the first checkout only: files are as the agents left them, byte for byte."""


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
    with new_folder(target) as draft:
        git = draft / ".git"
        make_git_folder(git, f"agents/{best}", str(identity_of(run)))
        copy_objects(run, (agent.commit for agent in agents), git)
        (git / "packed-refs").write_text(_packed_refs(agents))
        run_git(git, "--work-tree=..", "read-tree", "-u", "--reset", "HEAD")
        (git / "info" / "attributes").unlink()
    return best


def make_git_folder(git: Path, branch: str, description: str) -> None:
    """Make a repository without objects, whose checked out branch is ``branch``.

    Files are checked out byte for byte until ``info/attributes`` is removed.
    """
    for part in ("objects/pack", "objects/info", "refs/heads", "refs/tags", "info"):
        (git / part).mkdir(parents=True)
    (git / "config").write_text(_CONFIG)
    (git / "description").write_text(f"{one_line(description, 400)}\n", encoding="utf-8")
    (git / "HEAD").write_text(f"ref: refs/heads/{branch}\n")
    (git / "info" / "attributes").write_text(_PLAIN)


def copy_objects(run: Run, wanted: Iterable[CommitId], git: Path) -> None:
    """Copy commits or trees, and all that they need, into a new repository."""
    run_git(git, "index-pack", "--stdin", given=run.repository.pack_objects(wanted))


def _packed_refs(agents: Iterable[Agent]) -> str:
    """Return the content of ``packed-refs`` as git writes it: sorted by name, without tags that git would peel."""
    lines = sorted((f"refs/heads/agents/{agent.id}", agent.commit) for agent in agents)
    return "# pack-refs with: peeled fully-peeled sorted \n" + "".join(
        f"{commit} {ref}\n" for ref, commit in lines
    )
