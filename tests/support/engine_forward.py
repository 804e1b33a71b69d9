"""A socket of an engine passed on by TCP, with or without TLS, and a program ``ssh`` that passes it on itself."""

import contextlib
import datetime
import ipaddress
import selectors
import socket
import ssl
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

SSH = """#!{python}
import os, re, socket, sys, threading

with open({log!r}, "a") as log:
    print(os.getpid(), *sys.argv[1:], file=log)
if {refuses!r}:
    sys.exit({refuses!r})
local, _, remote = sys.argv[sys.argv.index("-L") + 1].partition(":")


def copy(one, other):
    while data := one.recv(65536):
        other.sendall(data)
    other.shutdown(socket.SHUT_WR)


def serve(near):
    far = socket.socket(socket.AF_UNIX)
    far.connect(remote)
    threading.Thread(target=copy, args=(near, far), daemon=True).start()
    copy(far, near)


def accept():
    while True:
        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()


listener = socket.socket(socket.AF_UNIX)
listener.bind(local)
listener.listen()
threading.Thread(target=accept, daemon=True).start()
print("welcome to the host", flush=True)
print(re.search(r"echo (\\S+)", sys.argv[-1])[1], flush=True)
sys.stdin.read()
"""
"""Program that does what ssh does of its options: it forwards a socket until its standard input ends."""


@contextlib.contextmanager
def forward_tcp(
    path: str, context: ssl.SSLContext | None = None, *, ends_early: bool = False
) -> Iterator[int]:
    """Pass connections to a port of this machine on to the socket at ``path``; yield the port. All end with it.

    Args:
        path: the socket.
        context: the encryption on the port's side.
        ends_early: whether a connection ends when the near side has said all that it wants to say.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        accepted: list[socket.socket] = []
        given = (listener, accepted, path, context, ends_early)
        threading.Thread(target=_accept, args=given, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        for near in accepted:
            with contextlib.suppress(OSError):
                near.shutdown(socket.SHUT_RDWR)


def _accept(
    listener: socket.socket,
    accepted: list[socket.socket],
    path: str,
    context: ssl.SSLContext | None,
    ends_early: bool,
) -> None:
    while True:
        try:
            near, _ = listener.accept()
        except OSError:
            return
        accepted.append(near)
        threading.Thread(target=_serve, args=(near, path, context, ends_early), daemon=True).start()


def _serve(near: socket.socket, path: str, context: ssl.SSLContext | None, ends_early: bool) -> None:
    with contextlib.suppress(OSError), contextlib.ExitStack() as opened:
        opened.enter_context(near)
        far = opened.enter_context(socket.socket(socket.AF_UNIX))
        if context is not None:
            near = opened.enter_context(context.wrap_socket(near, server_side=True))
        far.connect(path)
        _copy(near, far, ends_early)


def _copy(near: socket.socket, far: socket.socket, ends_early: bool) -> None:
    """Copy both ways in one thread, since a TLS socket is not for two; a closed half is passed on as one."""
    chosen = selectors.DefaultSelector()
    for one, other in ((near, far), (far, near)):
        chosen.register(one, selectors.EVENT_READ, other)
    while True:
        for key, _ in chosen.select():
            one, other = key.fileobj, key.data
            if data := _read_ready(one):
                other.sendall(data)
                continue
            chosen.unregister(one)
            if one is far or ends_early:
                return
            far.shutdown(socket.SHUT_WR)


def _read_ready(one: socket.socket) -> bytes:
    data = one.recv(65536)
    while isinstance(one, ssl.SSLSocket) and one.pending():
        data += one.recv(one.pending())
    return data


def make_certificates(folder: Path, host: str = "127.0.0.1") -> None:
    """Write ``ca.pem``, and ``cert.pem`` and ``key.pem`` that it signed for ``host`` and for any client."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    def name(text: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

    now = datetime.datetime.now(datetime.UTC)
    authority, own = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())

    def certify(subject: str, key: ec.EllipticCurvePrivateKey, *, is_authority: bool) -> bytes:
        made = (
            x509.CertificateBuilder()
            .subject_name(name(subject))
            .issuer_name(name("authority"))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(
                x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(host))]), critical=False
            )
            .sign(authority, hashes.SHA256())
        )
        return made.public_bytes(serialization.Encoding.PEM)

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ca.pem").write_bytes(certify("authority", authority, is_authority=True))
    (folder / "cert.pem").write_bytes(certify("engine", own, is_authority=False))
    (folder / "key.pem").write_bytes(
        own.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )


def server_context(folder: Path) -> ssl.SSLContext:
    """Return the encryption of a server that lets in clients of the authority alone."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=folder / "ca.pem")
    # As an engine: the certificates have no key identifier, which Python 3.13 would refuse.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    return context


def install_ssh(folder: Path, refuses: str = "") -> Path:
    """Write the program ``ssh`` into a folder of its own; return the file in which it notes its ids and arguments.

    Args:
        folder: an existing folder, to be put on ``PATH``.
        refuses: what it says before it fails; empty: it forwards.
    """
    log, program = folder / "ssh.log", folder / "ssh"
    program.write_text(SSH.format(python=sys.executable, log=str(log), refuses=refuses), encoding="utf-8")
    program.chmod(0o755)
    return log
