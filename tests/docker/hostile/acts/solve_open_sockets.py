"""Opens sockets: the internet, the host's addresses, the engine, raw, packet, vsock, abstract names"""

import contextlib
import pathlib
import socket

reached = []
TRIES = [
    (socket.AF_INET, socket.SOCK_STREAM, (host, port))
    for host in ("1.1.1.1", "172.17.0.1", "169.254.169.254", "10.0.0.1")
    for port in (80, 443, 22, 53)
]
TRIES += [
    (socket.AF_INET6, socket.SOCK_STREAM, ("2606:4700:4700::1111", 443)),
    (socket.AF_INET, socket.SOCK_DGRAM, ("8.8.8.8", 53)),
    (socket.AF_UNIX, socket.SOCK_STREAM, "/var/run/docker.sock"),
    (socket.AF_UNIX, socket.SOCK_STREAM, "/run/docker.sock"),
    (socket.AF_UNIX, socket.SOCK_STREAM, "/run/containerd/containerd.sock"),
    (socket.AF_VSOCK, socket.SOCK_STREAM, (2, 22)),
    (socket.AF_INET, socket.SOCK_RAW, ("1.1.1.1", 0)),
    (socket.AF_PACKET, socket.SOCK_RAW, ("lo", 0)),
]
with contextlib.suppress(OSError):
    for line in pathlib.Path("/proc/net/unix").read_text().splitlines()[1:]:
        if line.split()[-1].startswith("@"):
            TRIES.append((socket.AF_UNIX, socket.SOCK_STREAM, "\0" + line.split()[-1][1:]))
for family, kind, address in TRIES:
    try:
        with socket.socket(family, kind) as made:
            made.settimeout(0.3)
            made.connect(address)
            made.send(b"hello")
            reached.append((str(family), address))
    except OSError as error:
        print(family, address, error)
try:
    reached.append(socket.gethostbyname("pypi.org"))
except OSError as error:
    print("name:", error)
print("reached:", reached)
