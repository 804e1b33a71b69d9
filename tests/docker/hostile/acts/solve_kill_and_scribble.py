"""Kills its keeper and leaves processes that write into whatever reads the workdir"""

import os
import pathlib
import signal

import task

for _ in range(4):
    if os.fork() == 0:
        os.setsid()
        null = os.open("/dev/null", os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        if os.fork():
            os._exit(0)
        while True:
            for process in pathlib.Path("/proc").glob("[0-9]*"):
                try:
                    if (process / "comm").read_text().strip() in ("tar", "head", "sh", "cat"):
                        for name in ("1", "3", "4"):
                            with open(process / "fd" / name, "wb", 0) as file:
                                file.write(b"scribble" * 200)
                        os.kill(int(process.name), signal.SIGSTOP)
                except OSError:
                    pass
os.kill(os.getppid(), signal.SIGKILL)
os._exit(0)
