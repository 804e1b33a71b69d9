"""``dgm agent``: agents of the user's own, made, checked, and evaluated without each of their parts."""

import sys
from collections import Counter
from collections.abc import Iterator

from rich.table import Table

from dgm.api import ablating, own_agent
from dgm.cli.app import derive
from dgm.cli.output import print_view
from dgm.cli.watching import TerminalWatcher
from dgm.evaluation.ablation import DIFFERENCE, LEVEL, Effect, PartEffect
from dgm.render import fmt
from dgm.render.evaluation_text import incomplete_text
from dgm.render.safe import neutralise, one_line
from dgm.views.own_agent import AblationView, AgentCheckView, ImportView, NewAgentView

MESSAGE_CELLS = 400
HEADS = ("part", "with", "without", "difference (95 %)", "p", "tokens/turn", "verdict")


def _show_new(view: NewAgentView) -> None:
    sys.stdout.writelines(f"{line}\n" for line in _new_lines(view))


def _new_lines(view: NewAgentView) -> Iterator[str]:
    folder = neutralise(str(view.folder))
    yield f"{folder}: {view.description} ({fmt.count(view.files, 'file')})"
    suite = ""
    if view.imported:
        yield from (
            f"  {name:<15}{one_line(text, MESSAGE_CELLS)}" for name, text in _import_rows(view.imported)
        )
    yield "Next:"
    if not view.imported:
        yield f"  change             {' and '.join(f'{folder}/{name}' for name in view.edit)}"
    yield f"  check it for free  dgm agent check {folder}"
    if view.repository:
        suite = " --benchmark SUITE"
        yield f"  make tasks         dgm benchmark mine {neutralise(str(view.repository))} --out SUITE"
    yield f"  evolve it          dgm run --agent {folder}{suite} --model MODEL --max-usd 5"


def _import_rows(imported: ImportView) -> Iterator[tuple[str, str]]:
    counts = Counter(file.kind for file in imported.taken)
    yield "taken over", ", ".join(f"{kind} {count}" for kind, count in counts.items()) + " (files)"
    yield from (("left out", f"{remark.path}: {remark.reason}") for remark in imported.left_out)
    yield from (("will not work", f"{remark.path}: {remark.reason}") for remark in imported.out_of_reach)
    yield "evolves", ", ".join(imported.evolves)
    yield "version", f"{imported.version} ({imported.version_remark})"


def _show_check(view: AgentCheckView) -> None:
    for finding in view.findings:
        mark = {"ok": "ok", "warn": "--", "stop": "NO"}[finding.level]
        sys.stdout.write(f"{mark}  {finding.part:<9} {one_line(finding.message, MESSAGE_CELLS)}\n")
        if finding.advice:
            sys.stdout.write(f"{'':<14}→ {one_line(finding.advice, MESSAGE_CELLS)}\n")
    if view.fit:
        sys.stdout.write(f"Nothing would stop a search: dgm run --agent {neutralise(str(view.folder))}\n")
    else:
        sys.stdout.write("A search would stop at the lines with NO.\n")


def _show_ablation(view: AblationView) -> None:
    table = Table(box=None, pad_edge=False, header_style="")
    for number, head in enumerate(HEADS):
        table.add_column(head, justify="right" if 0 < number < len(HEADS) - 1 else "left", no_wrap=True)
    for part in view.parts:
        table.add_row(*_part_cells(part))
    print_view(table)
    judged = [part for part in view.parts if part.effect != Effect.NEEDED]
    count = fmt.count(len(judged), "part")
    lines = [
        "difference: percentage points of tasks resolved with the part minus without it; 95 % for this part alone",
        f"p: exact paired test over tasks, adjusted for {count} (Holm); up to {LEVEL} counts as an effect",
    ]
    if any(part.effect == Effect.NOT_SHOWN for part in judged):
        lines.append(
            f"'{Effect.NOT_SHOWN}' does not mean that there is none: a difference of {100 * DIFFERENCE:.0f} points "
            f"takes at least {view.tasks_to_show} tasks to show, and here are {max(part.tasks for part in judged)}"
        )
    sys.stdout.write("\n".join([*lines, f"recorded in {one_line(view.folder, MESSAGE_CELLS)}"]) + "\n")
    if text := incomplete_text(view):
        sys.stderr.write(f"{text}\n")


def _part_cells(part: PartEffect) -> tuple[str, ...]:
    name = one_line(part.part, 60)
    if part.effect == Effect.NEEDED:
        return name, "–", "–", "–", "–", "–", part.effect
    low, high = (100 * end for end in part.interval)
    return (
        name,
        f"{part.with_part}/{part.pairs}",
        f"{part.without_part}/{part.pairs}",
        f"{100 * part.difference:+.0f} ({low:+.0f} to {high:+.0f})",
        fmt.p_value(part.p).removeprefix("p ").removeprefix("= "),
        f"{part.tokens:,}",
        part.effect,
    )


init = derive(own_agent.agent_init, _show_new)
check = derive(own_agent.agent_check, _show_check)
ablate = derive(
    ablating.agent_ablate,
    _show_ablation,
    watcher=TerminalWatcher,
    omit=("tasks", "attempts", "allow_paid", "confirm"),
)
