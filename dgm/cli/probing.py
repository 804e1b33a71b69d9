"""``dgm probe`` and ``dgm bisect``, derived from their functions in ``dgm.api``."""

import sys

from dgm.api.probing import bisect as bisect_lineage
from dgm.api.probing import probe as probe_agents
from dgm.cli.app import derive
from dgm.cli.output import print_view, show_patch
from dgm.cli.watching import TerminalWatcher
from dgm.render.evaluation_text import incomplete_text
from dgm.render.probe_text import render_bisection, render_probes
from dgm.views.bisection import BisectionView
from dgm.views.probes import ProbeView


def _show_probes(view: ProbeView) -> None:
    print_view(render_probes(view))
    if missing := incomplete_text(view.evaluation):
        sys.stderr.write(f"{missing}\n")


probe = derive(probe_agents, _show_probes, watcher=TerminalWatcher, trust=True, omit=("allow_paid",))


def _show_bisection(view: BisectionView) -> None:
    print_view(render_bisection(view))
    if view.patch:
        show_patch(view.patch)


bisect = derive(bisect_lineage, _show_bisection, watcher=TerminalWatcher, trust=True, omit=("allow_paid",))
