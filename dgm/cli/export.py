"""``dgm export``: write a run, or an agent of it, in forms that other programs read."""

import shlex
import sys

from dgm.api.exporting import Content, Exported
from dgm.api.exporting import export as export_run
from dgm.cli.app import derive
from dgm.render.fmt import count as count_text
from dgm.render.safe import one_line
from dgm.views.probes import ProbeState

_NOUNS = {
    "points": "point",
    "rows": "row",
    "files": "file",
    "agents": "agent",
    "commits": "commit",
    "events": "event",
    "traces": "trace",
    "predictions": "prediction",
    "bytes": "byte",
    "evaluations": "evaluation",
    "logs": "log",
    "preferences": "preference",
    "samples": "sample",
}


def _show(exported: Exported) -> None:
    subject = exported.run if exported.agent is None else f"agent {exported.agent} of {exported.run}"
    counts = [
        count_text(count, _NOUNS[name]) if name in _NOUNS else f"{count} {name.replace('_', ' ')}"
        for name, count in exported.counts.items()
    ]
    lines = [f"{exported.what} of {subject}: {', '.join(counts)} in {exported.target}"]
    if exported.documents:
        lines.append(f"provenance and packages: {' and '.join(exported.documents)}")
    if exported.model_name_or_path:
        lines.append(f"model_name_or_path: {exported.model_name_or_path}")
    if exported.what is Content.RUN and not exported.addresses:
        replaced = ", ".join(f"{count} {name}" for name, count in sorted(exported.replaced.items()))
        lines.append(f"replaced: {replaced or 'nothing'}")
    if exported.addresses:
        addresses = ", ".join(exported.addresses)
        lines.append(f"check run.json before you resume: your keys would be sent by its settings {addresses}")
    if exported.probes in (ProbeState.NEVER, ProbeState.INCOMPLETE):
        command = f"dgm probe {shlex.quote(exported.run)} {exported.agent}"
        warning = (
            f"warning: probes: {exported.probes}; {command} tries the agent's solutions for insecure code"
        )
        sys.stderr.write(f"{one_line(warning, 1000)}\n")
    sys.stdout.writelines(f"{one_line(line, 1000)}\n" for line in lines)


export = derive(export_run, _show)
