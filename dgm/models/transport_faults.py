"""The meaning of a connection error. The packages' classes are distinguished by name, so that none is imported."""

import re
from collections.abc import Iterable

from dgm.errors import DgmError
from dgm.models.fault_kinds import Account, Fault, Passing, one_line


def judge_transport(error: Exception, *, secrets: Iterable[str] = ()) -> Fault | None:
    """Return the meaning of a transport error; None: it is a mistake in this program, not the provider's.

    The vendors' packages use one class for every error of the transport: the cause distinguishes them.
    """
    if isinstance(error, DgmError):
        return None
    packages = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
    cause = error.__cause__
    if packages & {"openai", "anthropic"}:
        if type(error).__name__ == "APIResponseValidationError":
            return Passing(one_line(f"the provider's answer cannot be read: {error}", secrets))
        if isinstance(cause, Exception) and (fault := judge_transport(cause, secrets=secrets)) is not None:
            return fault
        return (
            Passing(one_line(_named(error), secrets))
            if _names(error) & {"APIConnectionError", "APITimeoutError"}
            else None
        )
    if "httpx2" in packages or "httpx" in packages:
        return _of_transport(error, secrets)
    if (
        isinstance(error, UnicodeDecodeError)
        or "JSONDecodeError" in _names(error)
        or "pydantic_core" in packages
    ):
        return Passing(one_line(f"the provider's answer cannot be read: {error}", secrets))
    return Passing(one_line(_named(error), secrets)) if isinstance(error, OSError | EOFError) else None


def _of_transport(error: Exception, secrets: Iterable[str]) -> Fault:
    names = _names(error)
    if names & {"UnsupportedProtocol", "InvalidURL", "LocalProtocolError"}:
        said = f"the provider's address or a header cannot be used: {_named(error)}"
        return Account(one_line(said, secrets))
    if "TooManyRedirects" in names:
        return Account(one_line(f"the provider's address leads nowhere: {_named(error)}", secrets))
    if "ProxyError" in names and re.search(r"\b40[137]\b|auth", str(error), re.IGNORECASE):
        hint = " (a proxy refuses: see HTTPS_PROXY, HTTP_PROXY and ALL_PROXY)"
        return Account(one_line(_named(error), secrets, hint))
    return Passing(one_line(_named(error), secrets))


def _names(error: BaseException) -> set[str]:
    return {kind.__name__ for kind in type(error).__mro__}


def _named(error: BaseException) -> str:
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(error).__name__).lower()
    return f"{name}: {error}" if str(error) else name
