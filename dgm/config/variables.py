"""The environment variables that dgm reads: secrets and locations, which are no settings of a run.

The variables of a provider are in its record; ``dgm.models.providers.all_variables`` lists all of them.
"""

from collections.abc import Sequence
from typing import NamedTuple


class Variable(NamedTuple):
    """One environment variable, or several that mean the same to different providers."""

    name: str
    meaning: str


OWN_VARIABLES: Sequence[Variable] = (
    Variable("DGM_ARCHIVE", "Folder in which runs are made and looked for; default: ./archive."),
    Variable(
        "DGM_ENGINE",
        "Address of the Docker engine: unix://…, tcp://host:port or ssh://user@host; several with spaces or commas "
        "between them; or of a Ray cluster: ray or ray://host:port. It comes before all others; --engine and engine= "
        "name another for one command or call.",
    ),
    Variable(
        "DGM_UNBOUNDED",
        "1: run agents on a Docker engine that does not bound their processes or memory; else none runs there.",
    ),
    Variable(
        "DGM_RAY_CERTIFICATE",
        "File with the certificate (PEM) that the head shows to its nodes; with DGM_RAY_KEY, their connections to the "
        "gateway are encrypted.",
    ),
    Variable("DGM_RAY_KEY", "File with the private key (PEM) of DGM_RAY_CERTIFICATE."),
    Variable("DGM_DEBUG", "1: print the traceback of whatever ends a command, before its one line."),
)
"""Variables of dgm itself."""
SYSTEM_VARIABLES: Sequence[Variable] = (
    Variable("HTTPS_PROXY", "Proxy for model calls; NO_PROXY names hosts that are reached without it."),
    Variable("DOCKER_HOST", "Address of the Docker engine; empty is unset."),
    Variable("DOCKER_CONTEXT", "Context of the Docker CLI; default: its current one."),
    Variable("DOCKER_CONFIG", "Folder of the Docker CLI's configuration and contexts; default: ~/.docker."),
    Variable("DOCKER_TLS_VERIFY", "Not empty: encrypt tcp:// addresses, and check who the engine is."),
    Variable(
        "DOCKER_CERT_PATH",
        "Folder with ca.pem, cert.pem and key.pem for tcp:// addresses; default: ~/.docker.",
    ),
    Variable("NO_COLOR", "Not empty: print without colours."),
    Variable("PAGER", "Program with which the browser shows long texts."),
    Variable("LC_ALL", "C or POSIX (also LC_CTYPE and LANG): draw with ASCII alone."),
    Variable(
        "XDG_CACHE_HOME", "Folder for caches (dgm/ below it): downloads, unpacked runs; default: ~/.cache."
    ),
    Variable("XDG_CONFIG_HOME", "Folder for what you agreed to pay for (dgm/ below it); default: ~/.config."),
)
"""Variables of the machine, which other programs read too."""
