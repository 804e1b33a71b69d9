"""The table of commands; ``dgm --help`` is printed from it alone, without further imports."""

from typing import NamedTuple


class CommandSpec(NamedTuple):
    """One command of the program; its name may have two words."""

    name: str
    target: str
    """``module:attribute`` of its function (``dgm.cli.app``), imported on use."""
    summary: str


SECTIONS: tuple[tuple[str, tuple[CommandSpec, ...]], ...] = (
    (
        "Search",
        (
            CommandSpec("run", "dgm.cli.run:run", "Start a search for better agents."),
            CommandSpec("resume", "dgm.cli.run:resume", "Continue a search after a stop or a crash."),
            CommandSpec("stop", "dgm.cli.run:stop", "Stop a search gracefully."),
            CommandSpec("approve", "dgm.cli.run:approve", "Approve or reject children that wait for you."),
        ),
    ),
    (
        "Look",
        (
            CommandSpec("status", "dgm.cli.look:status", "List all runs, or show a run's progress and spend."),
            CommandSpec("show", "dgm.cli.look:show", "Show a run's tree, or an agent: results, diff, lineage."),
            CommandSpec("browse", "dgm.cli.browse:browse", "Browse a run in the terminal, also while it grows."),
            CommandSpec("report", "dgm.cli.report:report", "Compare the best agent with the seed, or runs."),
            CommandSpec("replay", "dgm.cli.replay:replay", "Repeat what a run recorded, and compare."),
        ),
    ),
    (
        "Use",
        (
            CommandSpec("evaluate", "dgm.cli.evaluate:evaluate", "Evaluate agents, or grade predictions."),
            CommandSpec("solve", "dgm.cli.solve:solve", "Let an agent work on a repository of yours."),
            CommandSpec("export", "dgm.cli.export:export", "Write an agent, tables or a packed run."),
            CommandSpec("simulate", "dgm.cli.simulate:simulate", "Compare search policies without a model."),
        ),
    ),
    (
        "Set up",
        (
            CommandSpec("doctor", "dgm.cli.doctor:doctor", "Check this machine; fix, clean, list settings."),
            CommandSpec("agent init", "dgm.cli.agent:init", "Create an agent from a template."),
            CommandSpec("agent check", "dgm.cli.agent:check", "Check that an agent can work on a task."),
            CommandSpec("agent ablate", "dgm.cli.agent:ablate", "Measure what each part of an agent adds."),
            CommandSpec("benchmark list", "dgm.cli.benchmark:list_", "List task suites."),
            CommandSpec("benchmark show", "dgm.cli.benchmark:show", "Show a suite, or one of its tasks."),
            CommandSpec("benchmark fetch", "dgm.cli.benchmark:fetch", "Prepare a suite's images."),
            CommandSpec("benchmark verify", "dgm.cli.benchmark:verify", "Check that a suite's tasks are sound."),
            CommandSpec("benchmark mine", "dgm.cli.benchmark:mine", "Turn a repository's history into tasks."),
            CommandSpec("benchmark make", "dgm.cli.benchmark:make", "Import, merge, filter or split suites."),
        ),
    ),
)

GROUPS = {
    "agent": "Create, check or ablate an agent of yours.",
    "benchmark": "List, show, fetch, verify, mine or make task suites.",
}
"""First word of several commands → what they do together."""
COMMANDS = {command.name: command for _, group in SECTIONS for command in group}
MOVED = {
    "list": "dgm status",
    "tree": "dgm show RUN",
    "diff": "dgm show RUN AGENT --diff",
    "lineage": "dgm show RUN AGENT --lineage",
    "log": "dgm show RUN --events",
    "sweep": "dgm run --seeds 1:4 --vary KEY=A,B",
    "compare": "dgm report RUN RUN",
    "archive pack": "dgm export RUN RUN.dgm",
    "archive unpack": "dgm export RUN.dgm FOLDER/",
    "archive verify": "dgm status RUN",
    "archive": "dgm export, or dgm doctor --clean",
    "sandbox": "dgm doctor --build, or dgm doctor --clean",
    "settings": "dgm doctor --settings",
    "trust": "--trust of the command that asks",
    "docs": "the website, or docs/ in the repository",
    "completion": "dgm doctor",
    "agent list": "dgm agent init --help",
    "benchmark calibrate": "dgm evaluate --attempts 3",
    "benchmark import": "dgm benchmark make",
    "benchmark merge": "dgm benchmark make",
    "benchmark filter": "dgm benchmark make",
    "benchmark split": "dgm benchmark make",
    "benchmark draw": "dgm benchmark make",
}
"""Former command → what replaces it."""


def help_text() -> str:
    """Return the text of ``dgm --help``."""
    lines = [
        "Usage: dgm COMMAND [OPTIONS]",
        "",
        "Evolve coding agents: a growing archive of agents that edit their own source,",
        "validated in sandboxes and scored by the metaproductivity of their clades.",
    ]
    for title, commands in SECTIONS:
        words = {command.name.split()[0]: command.summary for command in commands}
        lines += ["", f"{title}:"]
        lines += [f"  {word:<10} {GROUPS.get(word, summary)}" for word, summary in words.items()]
    lines += ["", "Every command has --help. Start with 'dgm doctor', then 'dgm run --max-evaluations 120'."]
    return "\n".join(lines)


def group_help(group: str) -> str:
    """Return the text of ``dgm GROUP --help``."""
    commands = [command for command in COMMANDS.values() if command.name.split()[0] == group]
    lines = [f"Usage: dgm {group} COMMAND [OPTIONS]", "", GROUPS[group], "", "Commands:"]
    lines += [f"  {command.name.split()[1]:<8} {command.summary}" for command in commands]
    return "\n".join(lines)
