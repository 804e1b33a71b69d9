"""The interface between a run's log and programs that follow it, and the addresses of such programs.

An address is ``scheme:rest``, such as ``mlflow:http://host:5000``; ``env:NAME`` stands for one in an environment
variable. Addresses may hold tokens: no run records them, and messages name their scheme only.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Protocol

from dgm.archive.events import Recorded
from dgm.archive.run import Run
from dgm.errors import UserError
from dgm.plugins import find_installed, make_plugin
from dgm.sinks.feed import Feed

GROUP = "sinks"
BUILTIN: Mapping[str, str] = {
    "mlflow": "dgm.sinks.mlflow:MlflowSink",
    "otlp": "dgm.sinks.otlp:OtlpSink",
    "tensorboard": "dgm.sinks.tensorboard:TensorBoardSink",
    "wandb": "dgm.sinks.wandb:WandbSink",
}
_MODULES = {
    "mlflow": "mlflow",
    "otlp": "opentelemetry.exporter",
    "tensorboard": "tensorboard",
    "wandb": "wandb",
}
"""Scheme → the module of its library; the extra of dgm that installs it has the scheme's name."""
_ADDRESS = re.compile(r"([a-z][a-z0-9-]+):(.*)")
_SCHEME = re.compile(r"[a-z][a-z0-9+-]*:")
_VARIABLE = re.compile(r"env:([A-Za-z_][A-Za-z0-9_]*)")


class Sink(Protocol):
    """A receiver of a run's events; a function of ``SinkContext`` opens it.

    All methods may raise anything; the sink is then closed, and opened again later. After that, and after a kill, it
    gets all events from the first one, and must deliver nothing twice and omit nothing. So it asks the other side
    for its position, or has a ``Cursor``.
    """

    def observe(self, recorded: Recorded, feed: Feed) -> None:
        """Take note of one event that the feed has folded; events come once each, in the order of the log."""

    def deliver(self) -> int:
        """Deliver all that was noted; return the number of delivered things."""

    def finish(self, feed: Feed) -> None:
        """Deliver the state of a run that nobody writes any more: its end, and the best agent."""

    def close(self) -> None:
        """Let go of connections and files; what was not delivered is dropped."""


SHAPE = {"observe": 2, "deliver": 0, "finish": 1, "close": 0}


@dataclass(frozen=True, slots=True)
class SinkContext:
    """The inputs of a sink."""

    rest: str
    """The address behind its scheme."""
    run: Run
    """Open for reading."""


def resolve_address(address: str, argument: str) -> str:
    """Return an address, or the one in the variable that ``env:NAME`` names.

    Raises:
        UserError: the variable is not set.
    """
    if named := _VARIABLE.fullmatch(address.strip()):
        value = os.environ.get(named[1], "").strip()
        if not value:
            raise UserError(f"the environment variable {named[1]} is not set", argument=argument)
        return value
    return address.strip()


def hide_address(address: str) -> str:
    """Return the scheme of an address, for messages: the rest may hold a token."""
    scheme = _SCHEME.match(address)
    return f"{scheme[0]}…" if scheme else "the address"


def is_sink(scheme: str) -> bool:
    """Return whether an address with this scheme names a sink."""
    return scheme in BUILTIN or scheme in find_installed(GROUP)


def list_schemes() -> list[str]:
    """Return the schemes of all sinks."""
    return sorted({*BUILTIN, *find_installed(GROUP)})


def check_sink(address: str) -> None:
    """Make sure that an address names a sink whose library is installed.

    Raises:
        UserError: it does not, or the library is missing.
    """
    scheme, _ = _split(address)
    if scheme in BUILTIN and not _is_installed(_MODULES[scheme]):
        raise UserError(f"{scheme}: is not installed; run: pip install 'dgm[{scheme}]'")


def open_sink(address: str, run: Run) -> Sink:
    """Return the sink at an address, which may be ``env:NAME``.

    Raises:
        UserError: there is no such sink, its library is missing, or its address is not valid.
    """
    address = resolve_address(address, "sink")
    check_sink(address)
    scheme, rest = _split(address)
    sink: Sink = make_plugin(GROUP, scheme, SinkContext(rest, run), BUILTIN, SHAPE)
    return sink


def _split(address: str) -> tuple[str, str]:
    parts = _ADDRESS.fullmatch(address)
    if parts is None or not is_sink(parts[1]):
        known = ", ".join(f"{name}:" for name in list_schemes())
        raise UserError(f"{hide_address(address)} is no sink; an address begins with one of {known}")
    return parts[1], parts[2]


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False
