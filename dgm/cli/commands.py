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
            CommandSpec("resume", "dgm.cli.run:resume", "Continue a search, after a stop or a crash."),
            CommandSpec("stop", "dgm.cli.run:stop", "Ask a running search to end gracefully."),
            CommandSpec(
                "status", "dgm.cli.look:status", "List runs, or print how far one is and what it spent."
            ),
            CommandSpec("approve", "dgm.cli.approve:approve", "Answer for children that wait for approval."),
        ),
    ),
    (
        "Look",
        (
            CommandSpec(
                "browse", "dgm.cli.browse:browse", "Look through a run in the terminal, also while it grows."
            ),
            CommandSpec("show", "dgm.cli.look:show", "Print a run's agents, one of them, a diff or the log."),
            CommandSpec(
                "report", "dgm.cli.report:report", "Is the best agent better? Also compares several runs."
            ),
        ),
    ),
    (
        "Repeat",
        (
            CommandSpec(
                "replay",
                "dgm.cli.judging:replay",
                "Repeat decisions, lineages or evaluations, and compare.",
            ),
        ),
    ),
    (
        "Compare",
        (CommandSpec("simulate", "dgm.cli.simulate:simulate", "Try policies in worlds that cost nothing."),),
    ),
    (
        "Use",
        (
            CommandSpec(
                "evaluate",
                "dgm.cli.judging:evaluate",
                "Evaluate agents on the tasks of a suite, or grade patches.",
            ),
            CommandSpec("solve", "dgm.cli.judging:solve", "Let an agent work on a repository of yours."),
            CommandSpec(
                "export", "dgm.cli.export:export", "Write a run, or an agent of it, for other programs."
            ),
        ),
    ),
    (
        "Machine",
        (
            CommandSpec("agent init", "dgm.cli.agent:init", "Write a working agent, to be changed."),
            CommandSpec(
                "agent check", "dgm.cli.agent:check", "Check what would stop a search with an agent."
            ),
            CommandSpec(
                "agent ablate", "dgm.cli.agent:ablate", "Evaluate an agent without each of its parts."
            ),
            CommandSpec("benchmark list", "dgm.cli.benchmark:list_", "List the benchmarks."),
            CommandSpec("benchmark show", "dgm.cli.benchmark:show", "Show a benchmark, or one of its tasks."),
            CommandSpec("benchmark fetch", "dgm.cli.benchmark:fetch", "Fetch or build the images of tasks."),
            CommandSpec("benchmark verify", "dgm.cli.benchmark:verify", "Check that tasks are sound."),
            CommandSpec("benchmark mine", "dgm.cli.benchmark:mine", "Turn a repository into tasks."),
            CommandSpec("benchmark make", "dgm.cli.benchmark:make", "Merge, filter, split or import suites."),
            CommandSpec("doctor", "dgm.cli.doctor:doctor", "Check that this machine can run a search."),
        ),
    ),
)

COMMANDS = {command.name: command for _, group in SECTIONS for command in group}

MOVED: dict[str, str] = {
    "archive pack": "dgm export RUN FILE.dgm",
    "archive unpack": "dgm export FILE.dgm FOLDER/",
    "archive verify": "dgm status FILE.dgm (a packed run is verified when it is opened)",
    "export --evaluations": "dgm export RUN evaluations.csv",
    "export --patch": "dgm export RUN AGENT FILE.patch",
    "export --pr-text": "dgm export RUN AGENT FILE.patch",
    "export --predictions": "dgm export RUN AGENT FILE.jsonl",
    "export --repository": "git clone RUN/agents.git",
    "export --spend": "dgm export RUN spend.csv",
    "export --standalone": "dgm export RUN AGENT FOLDER/",
    "export --trajectories": "dgm export RUN trajectories/",
    "export --tree": "dgm export RUN FILE.graphml",
    "compare": "dgm report RUN RUN…",
    "benchmark calibrate": "dgm evaluate AGENT --benchmark SUITE --split all --attempts 3",
    "evaluate --predictions": "dgm evaluate FILE --benchmark SUITE",
    "evaluate --seed-agent": "dgm evaluate FOLDER",
    "evaluate --task": "dgm evaluate RUN:AGENT --tasks TASK",
    "evaluate --sandbox": "dgm evaluate RUN:AGENT --set sandbox=ENGINE",
    "solve --agent": "dgm solve RUN:AGENT REPOSITORY PROBLEM",
    "solve --repo": "dgm solve RUN:AGENT REPOSITORY PROBLEM",
    "solve --yes": "dgm solve RUN:AGENT REPOSITORY PROBLEM --apply",
    "replay --perform": "dgm replay RUN --what work",
    "replay --benchmark": "dgm evaluate RUN:seed RUN:AGENT --benchmark SUITE",
    "agent list": "dgm agent init --help",
    "agent init --from": "dgm agent init FOLDER --template NAME",
    "agent init --import": "dgm agent init FOLDER --repository FOLDER",
    "agent ablate --part": "dgm agent ablate AGENT PART",
    "benchmark mine --holdout": "dgm benchmark mine REPO --set mining.holdout=SHARE",
    "benchmark mine --since": "dgm benchmark mine REPO --set mining.since=DAY",
    "benchmark mine --language": "dgm benchmark mine REPO --set mining.language=NAME",
    "benchmark mine --image": "dgm benchmark mine REPO --set mining.image=docker:NAME",
    "benchmark mine --report": "dgm benchmark mine REPO --set mining.reports=['GLOB']",
    "benchmark mine --statement-model": "dgm benchmark mine REPO --model MODEL",
    "benchmark mine --issues": "dgm benchmark mine REPO --set mining.issues=FILE",
    "benchmark mine --cpu-hours": "dgm benchmark mine REPO --set mining.processor_hours=HOURS",
    "benchmark mine --workers": "dgm benchmark mine REPO --set workers=4",
    **{
        f"{name} --{option}": f"dgm {name} --set {setting}"
        for name in (
            "agent check",
            "agent ablate",
            "benchmark verify",
            "benchmark mine",
            "benchmark fetch",
            "doctor",
        )
        for option, setting in (("sandbox", "sandbox=NAME"), ("engine", "engine=ADDRESS"))
    },
    "archive gc": "dgm doctor --clean",
    "archive rm": "dgm doctor --clean RUN",
    "benchmark filter": "dgm benchmark make OUT SUITE --where CONDITION",
    "benchmark import": "dgm benchmark make OUT FOLDER",
    "benchmark merge": "dgm benchmark make OUT SUITE SUITE",
    "benchmark split": "dgm benchmark make OUT SUITE --holdout SHARE --by time",
    "sandbox": "dgm doctor --build",
    "sandbox build": "dgm doctor --build",
    "sandbox gc": "dgm doctor --clean",
    "sandbox list": "dgm doctor",
    "settings": "dgm doctor --settings",
    "trust": "COMMAND --trust",
    "sweep": "dgm run FILE --seeds 1:4 --vary KEY=A,B",
    "list": "dgm status",
    "tree": "dgm show RUN",
    "diff": "dgm show RUN AGENT [OTHER] --diff",
    "lineage": "dgm show RUN AGENT --lineage",
    "log": "dgm show RUN --events",
}
"""Former command, or command and option → its form of today."""


def group_text(group: str) -> str:
    """Return the help of commands that begin with the same word; empty if there are none."""
    lines = [
        f"  {name:<16}  {spec.summary}" for name, spec in COMMANDS.items() if name.startswith(f"{group} ")
    ]
    return "\n".join([f"Usage: dgm {group} COMMAND [OPTIONS] …", "", *lines]) if lines else ""


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
        lines += [f"  {command.name:<16} {command.summary}" for command in group]
    lines += [
        "",
        "Options:",
        "  --version             Print the version.",
        "  --install-completion  Let your shell complete commands and options.",
        "  -h, --help            Print this. Every command has a --help of its own.",
        "",
        f"Start with: dgm doctor, then {FIRST}",
    ]
    return "\n".join(lines)
