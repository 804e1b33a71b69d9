"""``dgm serve``: runs as a page in a browser."""

from dgm.cli.signals import print_line
from dgm.render.safe import one_line
from dgm.web.server import PORT
from dgm.web.server import serve as serve_runs

ADDRESS_CELLS = 2_000


def serve(
    target: str | None = None,
    /,
    *,
    host: str = "127.0.0.1",
    port: int = PORT,
    open: bool = False,  # noqa: A002
) -> int:
    """Show runs as a read-only page in a browser, also while they grow, until Ctrl-C.

    Other hosts can reach the page only with --host, and need the token in the printed address. Traffic is not
    encrypted.

    Args:
        target: A run, or a folder with runs. Default: all in $DGM_ARCHIVE and ./archive.
        host: Address to listen on; 0.0.0.0 for all addresses of this machine.
        port: Port to listen on; 0 for any free port.
        open: Open the page in a browser.
    """
    serve_runs(
        target, host=host, port=port, open=open, on_ready=lambda url: print_line(one_line(url, ADDRESS_CELLS))
    )
    return 0
