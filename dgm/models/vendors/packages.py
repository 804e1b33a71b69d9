"""Packages that only some providers need."""

from importlib.util import find_spec

from dgm.errors import UserError


def require_packages(modules: tuple[str, ...], extra: str, model: str) -> None:
    """Check that the packages of an extra are installed, without importing them.

    Args:
        modules: names to import them by.
        extra: extra of this distribution that installs them.
        model: as the user typed it, for the message.

    Raises:
        UserError: one is missing.
    """
    for module in modules:
        try:
            found = find_spec(module) is not None
        except ModuleNotFoundError:
            found = False
        if not found:
            raise UserError(f"model '{model}' needs the package {module}: pip install 'dgm[{extra}]'")
