"""Which version of a policy, and of the worlds, a result belongs to.

Kept results are used again only for the same code. A version covers:

- the code of the policy's parts and of the modules of ``dgm.policies``, ``dgm.simulate`` and ``dgm.stats`` that they
  import, without docstrings and comments;
- the family's own ranges.

So one policy can be changed without repeating the trials of all the others. ``FORMAT`` must be raised by hand after a
change of the loop, of how parameters are drawn from those ranges, or of the fields of a result. A version does not
cover the versions of numpy and scipy. For a plug-in it covers only the modules that the entry points name, or that
define the plug-in's parts.
"""

import ast
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from dgm.config import PolicySettings
from dgm.plugins import find_installed, find_plugin
from dgm.policies import registry
from dgm.policies.composed import Composition
from dgm.policies.seed_share import SEED_SHARE
from dgm.simulate.contenders import ORACLE, contender_settings, policy_settings
from dgm.simulate.families import COMMON, FAMILIES, OPERATORS
from dgm.simulate.items import POOL

FORMAT = 3
"""Of results, of what the loop does in a trial, and of how a world's parameters are drawn."""

_PACKAGES = ("dgm.policies", "dgm.simulate", "dgm.stats")
_WORLDS = ("dgm.simulate.world", "dgm.simulate.worker")
_APART = ("dgm.policies.registry", "dgm.simulate.families", "dgm.simulate.contenders")
"""Name many policies or families, of which a trial meets one."""
_COMPOSED = "dgm.policies.composed"
"""How the parts of a policy answer together; imported by the registry alone, which stands apart."""
_CHOICE = (
    "dgm.policies.operators",
    "dgm.policies.bandit",
    "dgm.policies.mates",
    "dgm.simulate.operators",
    "dgm.simulate.memory",
)
"""What else decides where a world has several operators; no other trial imports it."""
_SEED_SHARE = "dgm.policies.seed_share"
"""Bounds what the seed takes of a budget; imported by the registry alone, and met by small budgets alone."""
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@cache
def fingerprint(policy: str, family: str, budget: int) -> str:
    """Return the version of a policy and its worlds, 16 hexadecimal digits.

    Args:
        policy: the policy in the notation of ``contenders``.
        family: the family of worlds.
        budget: the budget of the trial, in evaluations. If the seed may try every task of a world within its share of
            the budget, the rule on that share decides nothing. Then it is no part of the version.

    Raises:
        UserError: there is no such policy.
    """
    said, modules = "", ["dgm.simulate.oracle"]
    if policy != ORACLE:
        settings = policy_settings(policy)
        said, modules = settings.model_dump_json(), list(_modules_of(settings))
    if family == OPERATORS:
        said += contender_settings(policy).model_dump_json(include={"operator", "operators"})
        modules += _CHOICE
    if policy != ORACLE and (family == OPERATORS or budget * SEED_SHARE < POOL):
        modules.append(_SEED_SHARE)
    ranges = repr(replace(FAMILIES[family], about="")) if family in FAMILIES else ""
    parts = [str(FORMAT), said, ranges, repr(sorted(COMMON.items()))]
    parts += [_code(module) for module in sorted(_reached((*modules, *_WORLDS)))]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _modules_of(settings: PolicySettings) -> Iterator[str]:
    """Yield the modules that put the policy together, and those that name or define it and its parts."""
    yield _COMPOSED
    found = find_plugin("policies", settings.name, registry.POLICIES)
    yield _entry("policies", settings.name, registry.POLICIES)
    own = found
    if not isinstance(found, Composition):
        yield found.__module__
        own = Composition("", "", "", "")
    for group, field, builtin in (
        ("gates", "gate", registry.GATES),
        ("parent_rules", "parent", registry.PARENT_RULES),
        ("evaluation_rules", "evaluation", registry.EVALUATION_RULES),
        ("task_rules", "task", registry.TASK_RULES),
        ("recommendations", "recommendation", registry.RECOMMENDATIONS),
    ):
        name = getattr(settings, field) or getattr(own, field)
        if name:
            yield _entry(group, name, builtin)
            yield find_plugin(group, name, builtin).__module__


def _entry(group: str, name: str, builtin: Mapping[str, str]) -> str:
    """Return the module that the registry, or a plug-in's entry point, names."""
    return builtin[name].partition(":")[0] if name in builtin else find_installed(group)[name].module


def _reached(modules: Iterable[str]) -> set[str]:
    """Return the modules, and those of our packages that they import, directly or indirectly."""
    reached: set[str] = set()
    waiting = list(modules)
    while waiting:
        module = waiting.pop()
        if module not in reached and module not in _APART:
            reached.add(module)
            waiting += _imports(module)
    return reached


@cache
def _parsed(module: str) -> ast.Module:
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        return ast.Module([], [])
    return ast.parse(Path(spec.origin).read_bytes())


@cache
def _imports(module: str) -> tuple[str, ...]:
    names: list[str] = []
    for node in ast.walk(_parsed(module)):
        if isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
    ours = [name for name in names if name.startswith(_PACKAGES)]
    return tuple(name for name in ours if _is_module(name))


def _is_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


@cache
def _code(module: str) -> str:
    tree = _parsed(module)
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED):
            node.body = [line for line in node.body if not _is_text(line)] or [ast.Pass()]
    return f"{module}\n{ast.unparse(tree)}"


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
