"""Leaves pipes, sockets and (where it can) devices"""

import os
import socket

import task

os.mkfifo(task.WORKDIR / "pipe")
listener = socket.socket(socket.AF_UNIX)
listener.bind(str(task.WORKDIR / "socket"))
task.attempt(os.mknod, str(task.WORKDIR / "disk"), 0o60666, os.makedev(8, 0))
task.attempt(os.mknod, str(task.WORKDIR / "zero"), 0o20666, os.makedev(1, 5))
