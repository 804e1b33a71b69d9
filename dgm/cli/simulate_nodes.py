"""``dgm simulate --nodes``: what share of many nodes one head keeps busy."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from dgm.cli.arguments import Amount
from dgm.cli.output import emit_json
from dgm.errors import UserError

if TYPE_CHECKING:
    from dgm.simulate.scale.plan import ScaleStudy

_SHARES = ("working", "opening", "head", "pulling", "away")
_FROM_0 = Amount(least=0.0)
_SCALE: Sequence[tuple[str, Any, float, str]] = (
    ("--slots", click.IntRange(1, 10_000), 32, "Sandboxes of a node at once"),
    ("--evaluation-s", Amount(), 60.0, "Mean seconds of an evaluation"),
    ("--calls", click.IntRange(0, 10_000), 20, "Model calls of an evaluation"),
    ("--children", _FROM_0, 0.05, "Children that are made for each evaluation"),
    ("--sandbox-s", _FROM_0, 1.5, "Seconds to open its sandboxes"),
    ("--images", click.IntRange(1, 10_000), 1, "Images that tasks work in"),
    ("--image-mb", Amount(), 1_000.0, "Size of each, which each node pulls once"),
    ("--node-mb-s", Amount(), 100.0, "MB that a node pulls in a second, at most"),
    ("--registry-mb-s", Amount(), 1_000.0, "MB that the registry gives all nodes in a second, at most"),
    ("--node-failures", _FROM_0, 0.01, "Failures of a node in an hour"),
    ("--outage-s", Amount(), 300.0, "Seconds for which it is away then"),
    ("--hours", Amount(), 1.0, "Virtual time"),
    ("--head-speed", Amount(), 1.0, "How many times as fast as this machine the head is"),
)
NODES = ("--nodes", *(name for name, *_ in _SCALE))
"""The options of this kind of simulation."""


def nodes_options(command: Any) -> Any:
    """Add the options that define a simulation of many nodes."""
    for name, kind, default, text in reversed(_SCALE):
        shown = f"{default:,g}" if isinstance(default, float) else default
        command = click.option(
            name,
            type=kind,
            default=default,
            help=f"With --nodes: {text[0].lower()}{text[1:]} (default {shown}).",
        )(command)
    return click.option(
        "--nodes",
        type=click.IntRange(1, 10_000),
        multiple=True,
        help="Simulate so many machines and one head instead, on virtual time; what the head takes is measured here.",
    )(command)


def take_scale(given: dict[str, Any]) -> dict[str, Any]:
    """Remove the options of ``nodes_options`` but ``--nodes`` from those of a command, and return them."""
    return {name: given.pop(name) for name in (option[2:].replace("-", "_") for option in NODES[1:])}


def simulate_nodes(
    nodes: Sequence[int], scale: dict[str, Any], policies: Sequence[str], failures: float, as_json: bool
) -> int:
    """Simulate clusters of these numbers of nodes, and print what share of their slots is busy.

    Raises:
        UserError: a number or the policy makes no sense.
    """
    from dgm.publish.finding import archive_folders
    from dgm.simulate.crew import quiet
    from dgm.simulate.scale.plan import ScalePlan
    from dgm.simulate.scale.studying import study_scale

    if len(policies) > 1:
        raise UserError("--policy: name one with --nodes; its decisions are measured")
    speed = scale.pop("head_speed")
    plans = [ScalePlan(number, **scale, failures=failures) for number in dict.fromkeys(nodes)]
    quiet()
    if not as_json:
        sys.stderr.write("measuring what the head takes on this machine\n")
    folder = next((each for each in archive_folders() if each.is_dir()), None)
    study = study_scale(plans, policies[0] if policies else "lineage", speed, folder)
    emit_json(study.record()) if as_json else _print(study)
    return 0


def _print(study: "ScaleStudy") -> None:
    from dgm.simulate.scale.plan import BUSY_AIM

    costs, plan = study.costs, study.results[0].plan
    costs_ms = {
        "decision": costs.decision_s,
        "log": costs.journal_s,
        "sandboxes": costs.sandboxes_s,
        f"each of {plan.calls} model calls": costs.call_s,
        f"{plan.children:g} of a child at": costs.child_s,
    }
    parts = ", ".join(f"{name} {1000 * seconds:.1f}" for name, seconds in costs_ms.items())
    titles = "".join(f"{name:>9}" for name in _SHARES)
    heading = (
        f"{'nodes':>6} {'slots':>8} {'busy':>7}  {titles} {'evaluations/h':>14} {'repeated':>9} {'pulls':>6}"
    )
    out = [
        f"the head takes {1000 * costs.evaluation_s(plan):.1f} ms for an evaluation: {parts}",
        "",
        f"{heading} {'head at work':>13}",
    ]
    for result in study.results:
        shares = "".join(f"{result.shares[name]:>9.1%}" for name in _SHARES)
        nodes, slots = result.plan.nodes, result.plan.nodes * result.plan.slots
        out.append(
            f"{nodes:>6,} {slots:>8,} {result.busy:>7.1%}  {shares} {result.evaluations_per_hour:>14,.0f} "
            f"{result.lost:>9,} {result.pulls:>6,} {result.head_busy:>13.0%}"
        )
    ends = f"one head ends at about {study.slots_of_one_head[0]:,} slots that are {BUSY_AIM:.0%} busy with "
    out += [
        "",
        "shares of the time of all slots; busy: working or opening sandboxes; head: waiting for the head",
        f"{ends}evaluations of {plan.evaluation_s:g} s; a policy must have enough to do for all slots",
    ]
    sys.stdout.write("\n".join(out) + "\n")
