"""The table of commands; ``dgm --help`` is printed from it alone, without further imports."""

from typing import NamedTuple

FIRST = "dgm run --max-evaluations 120"
"""The first search proposed to a new user."""


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
            CommandSpec(
                "approve", "dgm.cli.approve:approve", "Approve or reject children that wait for you."
            ),
            CommandSpec("note", "dgm.cli.approve:note", "Tell the editors of an agent what you think of it."),
        ),
    ),
    (
        "Look",
        (
            CommandSpec(
                "status", "dgm.cli.look:status", "List all runs, or show a run's progress and spend."
            ),
            CommandSpec(
                "show", "dgm.cli.look:show", "Show a run's tree, or an agent: results, diff, lineage."
            ),
            CommandSpec(
                "browse", "dgm.cli.browse:browse", "Browse a run in the terminal, also while it grows."
            ),
            CommandSpec(
                "serve", "dgm.cli.serve:serve", "Show runs as a page in a browser, also while they grow."
            ),
            CommandSpec("report", "dgm.cli.report:report", "Compare the best agent with the seed, or runs."),
            CommandSpec("replay", "dgm.cli.judging:replay", "Repeat what a run recorded, and compare."),
        ),
    ),
    (
        "Use",
        (
            CommandSpec(
                "promote", "dgm.cli.promote:promote", "Certify that an agent is better; check a certificate."
            ),
            CommandSpec("evaluate", "dgm.cli.judging:evaluate", "Evaluate agents, or grade predictions."),
            CommandSpec("probe", "dgm.cli.probing:probe", "Probe agents for insecure code."),
            CommandSpec(
                "bisect", "dgm.cli.probing:bisect", "Find the ancestor and the edit that broke an agent."
            ),
            CommandSpec("solve", "dgm.cli.judging:solve", "Let an agent work on a repository of yours."),
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
            CommandSpec(
                "benchmark verify", "dgm.cli.benchmark:verify", "Check that a suite's tasks are sound."
            ),
            CommandSpec(
                "benchmark mine", "dgm.cli.benchmark:mine", "Turn a repository's history into tasks."
            ),
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
    "agent ablate --part": "dgm agent ablate AGENT PART",
    "agent init --from": "dgm agent init FOLDER --template NAME",
    "agent init --import": "dgm agent init FOLDER --repository FOLDER",
    "agent list": "dgm agent init --help",
    "approve --list": "dgm approve RUN",
    "approve --no": "dgm approve RUN CHILD no",
    "approve --yes": "dgm approve RUN CHILD yes",
    "archive": "dgm export, dgm status or dgm doctor --clean",
    "archive gc": "dgm doctor --clean",
    "archive pack": "dgm export RUN FILE.dgm",
    "archive rm": "dgm doctor --clean RUN",
    "archive unpack": "dgm export FILE.dgm FOLDER/",
    "archive verify": "dgm status FILE.dgm (a packed run is verified when it is opened)",
    "benchmark calibrate": "dgm evaluate AGENT --benchmark SUITE --split all --attempts 3",
    "benchmark filter": "dgm benchmark make OUT SUITE --where CONDITION",
    "benchmark import": "dgm benchmark make OUT FOLDER",
    "benchmark merge": "dgm benchmark make OUT SUITE SUITE",
    "benchmark split": "dgm benchmark make OUT SUITE --holdout SHARE --by time",
    "compare": "dgm report RUN RUN…",
    "completion": "dgm --install-completion",
    "diff": "dgm show RUN AGENT [OTHER] --diff",
    "docs": "the folder docs of the repository",
    "evaluate --predictions": "dgm evaluate FILE --benchmark SUITE",
    "evaluate --seed-agent": "dgm evaluate FOLDER",
    "export --evaluations": "dgm export RUN evaluations.csv",
    "export --patch": "dgm export RUN AGENT FILE.patch",
    "export --pr-text": "dgm export RUN AGENT FILE.patch",
    "export --predictions": "dgm export RUN AGENT FILE.jsonl",
    "export --repository": "git clone RUN/agents.git",
    "export --spend": "dgm export RUN spend.csv",
    "export --standalone": "dgm export RUN AGENT FOLDER/",
    "export --trajectories": "dgm export RUN trajectories/",
    "export --tree": "dgm export RUN FILE.graphml",
    "lineage": "dgm show RUN AGENT --lineage",
    "list": "dgm status",
    "log": "dgm show RUN --events",
    "replay --benchmark": "dgm evaluate RUN:seed RUN:AGENT --benchmark SUITE",
    "replay --perform": "dgm replay RUN --what work",
    "sandbox": "dgm doctor --build",
    "sandbox build": "dgm doctor --build",
    "sandbox gc": "dgm doctor --clean",
    "sandbox list": "dgm doctor",
    "settings": "dgm doctor --settings",
    "solve --agent": "dgm solve RUN:AGENT REPOSITORY PROBLEM",
    "solve --repo": "dgm solve RUN:AGENT REPOSITORY PROBLEM",
    "solve --yes": "dgm solve RUN:AGENT REPOSITORY PROBLEM --apply",
    "sweep": "dgm run FILE --seeds 1:4 --vary KEY=A,B",
    "tree": "dgm show RUN",
    "trust": "COMMAND --trust",
}
"""Former command, or command and option → its form of today."""
_ANY = {"--sandbox": "sandbox", "--engine": "engine"}
_SEARCH = {
    **_ANY,
    "--operator": "operator",
    "--timeout-factor": "limits.time_factor",
    "--until-score": "budget.until_score",
    "--patience": "budget.patience",
    "--max-tokens": "budget.tokens",
    "--max-agents": "budget.agents",
    "--max-hours": "budget.hours",
}
_MINING = {
    **_ANY,
    "--workers": "workers",
    "--cpu-hours": "mining.processor_hours",
    **{f"--{name}": f"mining.{name}" for name in ("holdout", "since", "language", "image", "issues")},
}
SETTINGS = {
    "run": _SEARCH,
    "resume": {**_SEARCH, "--workers": "workers", "--benchmark": "benchmark"},
    "evaluate": {**_ANY, "--timeout-factor": "limits.time_factor"},
    "benchmark mine": _MINING,
    **dict.fromkeys(
        ("solve", "replay", "doctor", "agent check", "agent ablate", "benchmark fetch", "benchmark verify"),
        _ANY,
    ),
}
"""Command → former option that still works → its setting."""
RENAMED = {
    "evaluate": {"--task": "--tasks"},
    "benchmark mine": {"--statement-model": "--model"},
}
"""Command → former option that still works → its new name."""


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
    lines += [
        "",
        "Every command has --help. --install-completion lets your shell complete them.",
        f"Start with 'dgm doctor', then '{FIRST}'.",
    ]
    return "\n".join(lines)


def group_help(group: str) -> str:
    """Return the text of ``dgm GROUP --help``."""
    commands = [command for command in COMMANDS.values() if command.name.split()[0] == group]
    lines = [f"Usage: dgm {group} COMMAND [OPTIONS]", "", GROUPS[group], "", "Commands:"]
    lines += [f"  {command.name.split()[1]:<8} {command.summary}" for command in commands]
    return "\n".join(lines)
