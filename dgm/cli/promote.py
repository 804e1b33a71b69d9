"""``dgm promote``: a round of promotion, or the check of a certificate."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from dgm.api import promotion as api
from dgm.cli.app import derive
from dgm.cli.output import make_console
from dgm.cli.watching import TerminalWatcher
from dgm.errors import UserError
from dgm.render import fmt
from dgm.render.safe import one_line
from dgm.render.text import Facts
from dgm.views.promotion import CertificateView, Outcome, PromotionView


def _promote(
    *run_and_agents: str,
    max_usd: float | None = None,
    workers: int | None = None,
    certificate: Path | None = None,
    verify: Path | None = None,
    benchmark: str | None = None,
    agent: str | None = None,
    watcher: TerminalWatcher,
) -> PromotionView | CertificateView:
    """Perform a round of promotion: is the best agent better than the one that was promoted last?

    Each round makes the tests of later ones stricter, so ask when there is a new best agent. Without one, nothing
    happens. A round that was interrupted is continued.

    Args:
        run_and_agents: A run, and candidates (default: its best agent).
        max_usd: Limit on the cost of this session (default: the rest of the run's).
        workers: Parallel evaluations (default: the run's).
        certificate: Also write the certificate of a promotion to this file.
        verify: Check this certificate instead; if a run is named, also with its logs.
        benchmark: With --verify: compare it with the suite that it was made on.
        agent: With --verify: compare the promoted agent with the files in this folder.
        watcher: is informed.
    """
    performing = {"max_usd": max_usd, "workers": workers, "certificate": certificate}
    checking = {"benchmark": benchmark, "agent": agent}
    for name, value in (checking if verify is None else performing).items():
        if value is not None:
            raise UserError(f"has an effect only with{'' if verify is None else 'out'} verify", argument=name)
    if verify is not None:
        if len(run_and_agents) > 1:
            raise UserError("a certificate is compared with one run", argument="verify")
        run = run_and_agents[0] if run_and_agents else None
        return api.verify_certificate(verify, run=run, benchmark=benchmark, agent=agent)
    if not run_and_agents:
        raise UserError("name a run")
    run, *agents = run_and_agents
    return api.promote(
        run, *agents, max_usd=max_usd, workers=workers, certificate=certificate, watcher=watcher
    )


def _show(view: PromotionView | CertificateView) -> None:
    facts = Facts()
    if isinstance(view, CertificateView):
        for name, value in _certificate_rows(view):
            facts.add(name, one_line(value, 300))
        make_console().print(facts.table)
        return
    reason = ": the best agent is certified, not evaluated, or was compared before"
    facts.add("answer", view.outcome + (reason if view.outcome is Outcome.NOTHING_NEW else ""), "bold")
    facts.add("gain", _gain(view.gain) if view.gain else "")
    if done := view.promotions:
        agents = f"agent {', '.join(map(str, done.candidates))} against {done.incumbent}"
        facts.add("last round", f"{done.rounds}: {agents}, level {done.level:.2g}")
        facts.add("so far", fmt.promotions(done))
        facts.add("spend", fmt.usage(done.spend))
    facts.add("certificate", one_line(str(view.certificate or ""), 300))
    make_console().print(facts.table)
    if view.ending:
        again = "give it more with --max-usd" if view.exit_code == 3 else "run the same command again"
        sys.stderr.write(f"the round is not finished: {one_line(view.ending, 1_000)}; {again}\n")


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
    yield "gain", _gain(test["gain"])
    yield "digest", content["digest"]


def _gain(gain: Sequence[float]) -> str:
    return f"{fmt.points(gain[0])} to {fmt.points(gain[1])} points (confidence sequence)"


promote = derive(_promote, _show, watcher=TerminalWatcher, trust=True)
