"""``dgm promote``: a round of promotion, or the check of a certificate."""

import sys
from collections.abc import Iterator

from dgm.api.promotion import promote as promote_agents
from dgm.cli.app import derive
from dgm.cli.output import make_console
from dgm.cli.watching import TerminalWatcher
from dgm.render import fmt
from dgm.render.safe import one_line
from dgm.render.text import Facts
from dgm.views.promotion import CertificateView, PromotionView


def _show(view: PromotionView | CertificateView) -> None:
    facts = Facts()
    for name, value in _certificate_rows(view) if isinstance(view, CertificateView) else _rows(view):
        facts.add(name, one_line(value, 300))
    make_console().print(facts.table)
    if isinstance(view, PromotionView) and view.ending:
        again = "give it more with --max-usd" if view.exit_code == 3 else "run the same command again"
        sys.stderr.write(f"the round is not finished: {one_line(view.ending, 1_000)}; {again}\n")


def _rows(view: PromotionView) -> Iterator[tuple[str, str]]:
    yield "answer", view.outcome
    if view.gain:
        yield "gain", fmt.gain(view.gain)
    if done := view.promotions:
        agents = f"agent {', '.join(map(str, done.candidates))} against {done.incumbent}"
        yield "last round", f"{done.rounds}: {agents}, level {done.level:.2g}"
        yield "so far", fmt.promotions(done)
        yield "spend", fmt.usage(done.spend)
    yield "certificate", str(view.certificate or "")


def _certificate_rows(view: CertificateView) -> Iterator[tuple[str, str]]:
    content = view.certificate
    if content is None:
        yield "does not hold", view.problem
        return
    test = content["test"]
    yield "holds", f"agrees with {', '.join(view.checked)}"
    yield "promoted", "commit {commit}, files {tree}".format(**content["accepted"])
    yield "better than", "commit {commit}".format(**content["incumbent"])
    yield "on", "{tasks} promotion tasks of {suite}, version {version}".format(**content)
    counts = f"{test['wins']} wins, {test['losses']} losses, {fmt.p_value(test['p_value'])}"
    yield "test", f"{counts}, level {test['level']:.2g}, alpha {content['alpha']:.3g}"
    yield "round", f"{test['round']}, after {fmt.count(test['promotions'], 'promotion')}"
    yield "gain", fmt.gain(test["gain"])
    yield "digest", content["digest"]


promote = derive(promote_agents, _show, watcher=TerminalWatcher, trust=True)
