"""The table of commands; ``dgm --help`` is printed from it alone, without further imports."""

from typing import NamedTuple

FIRST = "dgm run --max-evaluations 120"
"""The first search proposed to a new user."""


class CommandSpec(NamedTuple):
    """One command of the program."""

    name: str
    target: str
    """``module:attribute`` of its function (``dgm.cli.app``) or click command, imported on use."""
    summary: str


SECTIONS: tuple[tuple[str, tuple[CommandSpec, ...]], ...] = (
    (
        "Search",
        (
            CommandSpec("run", "dgm.cli.run:run", "Start a search for better agents."),
            CommandSpec("resume", "dgm.cli.run:resume", "Go on with a search, after a stop or a crash."),
            CommandSpec("sweep", "dgm.cli.sweep:sweep", "Perform many runs: variants of settings × seeds."),
            CommandSpec("stop", "dgm.cli.control:stop", "Ask a running search to end in good order."),
            CommandSpec(
                "list", "dgm.cli.runs:list_", "List all runs: state, age, best agent, spend, budget left."
            ),
            CommandSpec("status", "dgm.cli.status:status", "Say how far a search is and what it has spent."),
            CommandSpec("approve", "dgm.cli.approve:approve", "Say yes or no to children that wait for you."),
        ),
    ),
    (
        "Look",
        (
            CommandSpec(
                "browse", "dgm.cli.browse:browse", "Look through a run in the terminal, also while it grows."
            ),
            CommandSpec("tree", "dgm.cli.look:tree", "Print the archive as a tree of agents."),
            CommandSpec("show", "dgm.cli.look:show", "Print one agent: origin, tallies, evaluations, cost."),
            CommandSpec("diff", "dgm.cli.look:diff", "Print what changed in an agent's source."),
            CommandSpec("lineage", "dgm.cli.look:lineage", "Print the steps from the seed to an agent."),
            CommandSpec("log", "dgm.cli.log:log", "Print the events of a run, also as they come."),
            CommandSpec(
                "report", "dgm.cli.report:report", "Compare the best agent with the seed, on unseen tasks."
            ),
        ),
    ),
    (
        "Repeat",
        (
            CommandSpec(
                "replay",
                "dgm.cli.replay:replay",
                "Do a run's decisions, lineages or evaluations again and compare.",
            ),
        ),
    ),
    (
        "Compare",
        (
            CommandSpec(
                "compare", "dgm.cli.compare:compare", "Compare runs in pairs, and draw their curves."
            ),
            CommandSpec("simulate", "dgm.cli.simulate:simulate", "Try policies in worlds that cost nothing."),
        ),
    ),
    (
        "Use",
        (
            CommandSpec(
                "evaluate",
                "dgm.cli.evaluate:evaluate",
                "Let agents work on every task of a benchmark's split.",
            ),
            CommandSpec("solve", "dgm.cli.solve:solve", "Let an agent work on a repository of yours."),
            CommandSpec(
                "export", "dgm.cli.export:export", "Write a run, or an agent of it, for other programs."
            ),
            CommandSpec(
                "archive", "dgm.cli.archive:archive", "Pack, unpack, verify and remove runs, free space."
            ),
        ),
    ),
    (
        "Machine",
        (
            CommandSpec(
                "agent",
                "dgm.cli.agent:agent",
                "Make, check and ablate an agent of yours; list the shipped ones.",
            ),
            CommandSpec(
                "benchmark", "dgm.cli.benchmark:benchmark", "List, fetch, import and verify task suites."
            ),
            CommandSpec(
                "trust", "dgm.cli.trust:trust", "Say yes to what another person's suite or run does here."
            ),
            CommandSpec("sandbox", "dgm.cli.sandbox:sandbox", "Build, list and remove sandbox images."),
            CommandSpec(
                "settings", "dgm.cli.settings:settings", "Print every setting: type, default, meaning."
            ),
            CommandSpec("docs", "dgm.cli.docs:docs", "Print a page of the documentation."),
            CommandSpec(
                "completion", "dgm.cli.completion:completion", "Print a script that lets your shell complete."
            ),
            CommandSpec("doctor", "dgm.cli.doctor:doctor", "Check that this machine can run a search."),
        ),
    ),
)

COMMANDS = {command.name: command for _, group in SECTIONS for command in group}

MOVED: dict[str, str] = {}
"""Former command → its form of today."""


def help_text() -> str:
    """Return the text of ``dgm --help``."""
    lines = [
        "Usage: dgm COMMAND [OPTIONS] …",
        "",
        "Evolve coding agents: a growing archive of agents that edit their own source,",
        "validated in sandboxes and scored by the metaproductivity of their clades.",
    ]
    for title, group in SECTIONS:
        lines += ["", f"{title}:"]
        lines += [f"  {command.name:<11} {command.summary}" for command in group]
    lines += [
        "",
        "Options:",
        "  --version   Print the version.",
        "  -h, --help  Print this. Every command has a --help of its own.",
        "",
        f"Start with: dgm doctor, then {FIRST}",
    ]
    return "\n".join(lines)
