"""One call to the model, over the OpenAI chat protocol, repeated while it fails in a way that may pass."""

import http.client
import json
import os
import re
import time
import urllib.error
import urllib.request

MODEL = os.environ.get("DGM_MODEL", "default")
TEMPERATURE = 0.0
# Where the same is answered again and again, another answer has to be likely.
LIVELY = 0.7
PASSING = (408, 409, 425, 429)
LONGEST_PAUSE_S = 30.0
LENGTH = re.compile(
    r"context.{0,20}(length|window|size)|maximum.{0,20}tokens|too (long|large|many tokens)", re.I
)
TOOLS = re.compile(r"\btools?\b|tool[-_ ]?(choice|call)|function.?calling|--jinja", re.I)


class TooLong(Exception):
    """The conversation does not fit into the model."""


class NoTools(Exception):
    """The model or its server takes no tools."""


class GivenUp(Exception):
    """No further answer can be had."""


def reply(body, end, temperature=TEMPERATURE):
    """The next message, and whether its length limit cut it off; ``end`` is a time of the monotonic clock."""
    body = dict(body, model=MODEL, temperature=temperature)
    pause = 1.0
    while True:
        try:
            choice = ask(body, max(1.0, end - time.monotonic()))
            return dict(choice["message"], role="assistant"), choice.get("finish_reason") == "length"
        except urllib.error.HTTPError as error:
            text = error.read().decode("utf-8", "replace")
            judge(error.code, text, "tools" in body)
            why, wanted = "%d %s" % (error.code, text[:300]), error.headers.get("Retry-After", "")
        except (OSError, ValueError, LookupError, TypeError, http.client.HTTPException) as error:
            why, wanted = "%s: %s" % (type(error).__name__, error), ""
        delay = float(wanted) if re.fullmatch(r"\d{1,4}", wanted) else pause
        if time.monotonic() + delay > end:
            raise GivenUp("the model does not answer: " + why)
        print("asking again in %.0f s: %s" % (delay, why))
        time.sleep(delay)
        pause = min(2 * pause, LONGEST_PAUSE_S)


def judge(status, text, with_tools):
    """Raise what a refusal means, unless the same request may be answered later."""
    if "context_length_exceeded" in text or (status in (400, 413, 422) and LENGTH.search(text)):
        raise TooLong(text)
    if with_tools and status in (400, 404, 422, 500, 501) and TOOLS.search(text):
        raise NoTools(text)
    # Whoever lends the model has repeated the call already, and does the whole job again.
    if "model_unavailable" in text or (status < 500 and status not in PASSING):
        raise GivenUp("refused: %d %s" % (status, text[:500]))


def ask(body, timeout_s):
    """The first choice of one answer."""
    data = json.dumps(body).encode("utf-8")
    headers = {"Content-Type": "application/json", "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
    url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    request = urllib.request.Request(url, data=data, headers=headers)
    with urllib.request.urlopen(request, timeout=timeout_s) as answer:
        return json.load(answer)["choices"][0]
