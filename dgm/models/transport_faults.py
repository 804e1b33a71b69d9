"""The meaning of a connection error. The packages' classes are distinguished by name, so that none is imported."""

import re
from collections.abc import Iterable

from dgm.errors import DgmError
from dgm.models.fault_kinds import AccountFault, Fault, TemporaryFault, one_line


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
            return TemporaryFault(one_line(f"the provider's answer cannot be read: {error}", secrets))
        if isinstance(cause, Exception) and (fault := judge_transport(cause, secrets=secrets)) is not None:
            return fault
        return (
            TemporaryFault(one_line(_error_text(error), secrets))
            if _class_names(error) & {"APIConnectionError", "APITimeoutError"}
            else None
        )
    if "httpx2" in packages or "httpx" in packages:
        return _judge_error(error, secrets)
    if (
        isinstance(error, UnicodeDecodeError)
        or "JSONDecodeError" in _class_names(error)
        or "pydantic_core" in packages
    ):
        return TemporaryFault(one_line(f"the provider's answer cannot be read: {error}", secrets))
    return (
        TemporaryFault(one_line(_error_text(error), secrets))
        if isinstance(error, OSError | EOFError)
        else None
    )


def _judge_error(error: Exception, secrets: Iterable[str]) -> Fault:
    names = _class_names(error)
    if names & {"UnsupportedProtocol", "InvalidURL", "LocalProtocolError"}:
        said = f"the provider's address or a header cannot be used: {_error_text(error)}"
        return AccountFault(one_line(said, secrets))
    if "TooManyRedirects" in names:
        return AccountFault(one_line(f"the provider's address leads nowhere: {_error_text(error)}", secrets))
    if "ProxyError" in names and re.search(r"\b40[137]\b|auth", str(error), re.IGNORECASE):
        hint = " (a proxy refuses: see HTTPS_PROXY, HTTP_PROXY and ALL_PROXY)"
        return AccountFault(one_line(_error_text(error), secrets, hint))
    return TemporaryFault(one_line(_error_text(error), secrets))


def _class_names(error: BaseException) -> set[str]:
    return {kind.__name__ for kind in type(error).__mro__}


def _error_text(error: BaseException) -> str:
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(error).__name__).lower()
    return f"{name}: {error}" if str(error) else name
