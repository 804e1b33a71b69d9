"""The tree model of ``lineage`` as one big Gaussian, to hold the passes against."""

from types import MappingProxyType

import numpy as np

from dgm.policies.lineage.posterior import DRIFT_KEPT, ROOT_DRIFT_SCALE, ROOT_VARIANCE, Beliefs

NO_OFFSETS = MappingProxyType({})


def build_beliefs(parents, evidence, step, mean_drift):
    """Beliefs of trees with precision and η per agent; ``update`` must follow. A root is its own parent."""
    beliefs = Beliefs(step, mean_drift)
    for agent, (parent, (precision, eta)) in enumerate(zip(parents, evidence, strict=True)):
        beliefs.add(parent)
        beliefs.set_evidence(agent, precision, eta, 1.0)
    return beliefs


def prior(parents, step, mean_drift, offsets):
    """Mean and covariance of (θ_0, μ_0, θ_1, μ_1, …); ``offsets``: root → the anchor of its tree minus agent 0's."""
    n = len(parents)
    mean, cov = np.zeros(2 * n), np.zeros((2 * n, 2 * n))
    a = np.array([[step.rho, step.carry], [0.0, DRIFT_KEPT]])
    roots = []
    for agent, parent in enumerate(parents):
        me, up = slice(2 * agent, 2 * agent + 2), slice(2 * parent, 2 * parent + 2)
        roots.append(agent if parent == agent else roots[parent])
        if parent == agent:
            mean[me] = 0.0, mean_drift
            cov[me, me] = np.diag([ROOT_VARIANCE, ROOT_DRIFT_SCALE * step.drift])
            continue
        anchor = (1.0 - step.rho) * offsets.get(roots[agent], 0.0)
        mean[me] = a @ mean[up] + np.array([step.c1 + anchor, step.c2])
        cov[me, : 2 * agent] = a @ cov[up, : 2 * agent]
        cov[: 2 * agent, me] = cov[me, : 2 * agent].T
        cov[me, me] = a @ cov[up, up] @ a.T + np.diag([step.q, step.drift])
    return mean, cov


def posterior(parents, step, mean_drift, evidence, offsets=NO_OFFSETS):
    """Mean and covariance after ``evidence``: per agent, precision and η of its skill."""
    mean, cov = prior(parents, step, mean_drift, offsets)
    precision = np.linalg.inv(cov)
    h = precision @ mean
    for agent, (lam, eta) in enumerate(evidence):
        precision[2 * agent, 2 * agent] += lam
        h[2 * agent] += eta
    cov = np.linalg.inv(precision)
    return cov @ h, cov


def log_likelihood(parents, step, mean_drift, evidence, offsets=NO_OFFSETS):
    """log ∫ prior(x) Π exp(-½ Λ θ² + η θ) dx."""
    mean, cov = prior(parents, step, mean_drift, offsets)
    after, narrow = posterior(parents, step, mean_drift, evidence, offsets)
    before, now = np.linalg.inv(cov), np.linalg.inv(narrow)
    return (
        0.5 * after @ now @ after
        - 0.5 * mean @ before @ mean
        + 0.5 * np.linalg.slogdet(before)[1]
        - 0.5 * np.linalg.slogdet(now)[1]
    )
