"""A headless Chromium for tests, driven over a pipe by its DevTools protocol; no network, and no package for it.

Messages are JSON objects ended by NUL: to the browser on its file descriptor 3, from it on 4
(https://chromedevtools.github.io/devtools-protocol/).
"""

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from pathlib import Path

NAMES = ("chromium-headless-shell", "chrome-headless-shell", "chromium", "chromium-browser", "google-chrome")
TIMEOUT_S = 60.0
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
_LAUNCH = """
import fcntl, os, sys
away = [fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3]]
os.dup2(away[0], 3)
os.dup2(away[1], 4)
os.execvp(sys.argv[3], sys.argv[3:])
"""
"""Puts the two ends of the pipe where the browser looks for them."""


def executable():
    """The browser's path; None where there is none."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Chromium:
    """One browser process; ``with`` ends it. Cut off from the network by the kernel where that may be asked for."""

    def __init__(self):
        self._scratch = tempfile.TemporaryDirectory(prefix="dgm-chromium-", ignore_cleanup_errors=True)
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()
        command = [executable(), *FLAGS, f"--user-data-dir={self._scratch.name}", "about:blank"]
        self.cut = _may_unshare()
        if self.cut:
            command = ["unshare", "-n", *command]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _LAUNCH, str(to_browser), str(from_browser), *command],
            pass_fds=(to_browser, from_browser),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._left = b""
        self._number = 0
        self._events = deque()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(60)
        os.close(self._out)
        os.close(self._in)
        self._scratch.cleanup()

    def page(self, width=1280, height=900, *, mobile=False, scheme="light"):
        """An empty page of this size in a tab of its own."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        return Page(self, session, (width, height), mobile=mobile, scheme=scheme)

    def call(self, method, session=None, **parameters):
        """What a method answers; events that arrive meanwhile are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + TIMEOUT_S
        while True:
            answer = self._next(end)
            assert answer, f"{method}: no answer in {TIMEOUT_S} s"
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self._events.append(answer)

    def events(self, session, settle_s=0.0):
        """Those of a session that arrived, in order; waits until none came for ``settle_s``."""
        while found := self._next(time.monotonic() + settle_s):
            self._events.append(found)
        mine = [event for event in self._events if event.get("sessionId") == session]
        self._events = deque(event for event in self._events if event.get("sessionId") != session)
        return mine

    def _next(self, end):
        while b"\0" not in self._left:
            ready, _, _ = select.select([self._in], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                return None
            piece = os.read(self._in, 1 << 20)
            assert piece, "the browser has ended"
            self._left += piece
        message, _, self._left = self._left.partition(b"\0")
        return json.loads(message)


class Page:
    """A tab: what it loaded, what it complained of, and what a user would do in it."""

    def __init__(self, browser, session, size, *, mobile, scheme):
        self._browser = browser
        self._session = session
        self.size = size
        self._seen = []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self(f"{domain}.enable")
        self(
            "Network.emulateNetworkConditions",
            offline=True,
            latency=0,
            downloadThroughput=-1,
            uploadThroughput=-1,
        )
        self(
            "Emulation.setDeviceMetricsOverride",
            width=size[0],
            height=size[1],
            deviceScaleFactor=1,
            mobile=mobile,
        )
        self("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def __call__(self, method, **parameters):
        return self._browser.call(method, self._session, **parameters)

    def open(self, file):
        """Loads a file and waits until it stands there."""
        self("Page.navigate", url=Path(file).resolve().as_uri())
        end = time.monotonic() + TIMEOUT_S
        while not any(event["method"] == "Page.loadEventFired" for event in self.events()):
            assert time.monotonic() < end, f"{file}: not loaded in {TIMEOUT_S} s"
            time.sleep(0.05)
        return self

    def events(self, settle_s=0.05):
        """Everything that was heard of the page."""
        self._seen += self._browser.events(self._session, settle_s)
        return self._seen

    def complaints(self):
        """Errors and messages of the console, and of the page's security policy."""
        kinds = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
        return [event["params"] for event in self.events(0.3) if event["method"] in kinds]

    def requests(self):
        """Addresses that were asked for."""
        asked = [event for event in self.events(0.3) if event["method"] == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in asked]

    def js(self, expression):
        """The value of an expression in the page."""
        answer = self("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def mouse(self, kind, x, y, **more):
        """An event of the mouse, such as ``mouseMoved`` or ``mouseWheel``."""
        self("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def picture(self, file, *, whole=False):
        """A PNG of what is seen, or of the whole page."""
        more = {}
        if whole:
            height = min(16_000, self.js("document.documentElement.scrollHeight"))
            clip = {"x": 0, "y": 0, "width": self.size[0], "height": height, "scale": 1}
            more = {"captureBeyondViewport": True, "clip": clip}
        data = self("Page.captureScreenshot", format="png", **more)["data"]
        Path(file).write_bytes(base64.b64decode(data))

    def pdf(self):
        """The page as it is printed on A4."""
        paper = {"paperWidth": 8.27, "paperHeight": 11.69}
        answer = self("Page.printToPDF", printBackground=True, **paper)
        return base64.b64decode(answer["data"])


def _may_unshare():
    if os.geteuid() or not shutil.which("unshare"):
        return False
    return subprocess.run(["unshare", "-n", "true"], capture_output=True, check=False).returncode == 0
