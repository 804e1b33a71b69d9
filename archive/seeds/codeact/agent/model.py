"""The model, over the OpenAI chat protocol: one call, repeated while a failure may pass, within a job's limits."""

import json
import os
import time
import urllib.error
import urllib.request

MODEL = os.environ.get("DGM_MODEL", "default")
LONGEST_PAUSE_S = 30.0
KEPT_CHARACTERS = 400


class Ended(Exception):
    """No further answer can be had: a limit is reached, or the model refuses or cannot be reached."""


class Model:
    """The model of one job; ``calls`` are left, and ``left_s()`` seconds."""

    temperature = 0.0

    def __init__(self, job):
        total = float(job.get("time_limit_s") or 3600)
        self.end = time.monotonic() + total - min(30.0, total / 8)
        self.calls = int(job.get("calls", 80))

    def left_s(self):
        return self.end - time.monotonic()

    def ask(self, messages, tools=()):
        """Return the next message, fit to be sent back; raise Ended if there is none."""
        pause, self.calls = 1.0, self.calls - 1
        while self.calls >= 0 and self.left_s() > 0:
            body = {"model": MODEL, "messages": messages, "temperature": self.temperature}
            try:
                return clean(self.post(dict(body, tools=tools) if tools else body))
            except urllib.error.HTTPError as error:
                text = "%d %s" % (error.code, error.read().decode("utf-8", "replace")[:500])
                if "context_length_exceeded" in text and shorten(messages):
                    continue
                # If the model is unavailable, the complete job will be done again.
                if "model_unavailable" in text or (error.code < 500 and error.code not in (408, 409, 429)):
                    raise Ended("refused: " + text) from error
            except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
                text = "%s: %s" % (type(error).__name__, error)
            print("asking again in %.0f s: %s" % (pause, text))
            time.sleep(max(0.0, min(pause, self.left_s())))
            pause = min(2 * pause, LONGEST_PAUSE_S)
        raise Ended("no calls left" if self.calls < 0 else "no time left")

    def post(self, body):
        key, url = os.environ["OPENAI_API_KEY"], os.environ["OPENAI_BASE_URL"] + "/chat/completions"
        headers = {"Content-Type": "application/json", "Authorization": "Bearer " + key}
        request = urllib.request.Request(url, data=json.dumps(body).encode("utf-8"), headers=headers)
        with urllib.request.urlopen(request, timeout=max(1.0, self.left_s())) as answer:
            return json.load(answer)["choices"][0]["message"]


def clean(message):
    """Return an answer without malformed parts; a call with malformed arguments has none."""
    content, calls = message.get("content"), []
    for number, call in enumerate(message.get("tool_calls") or ()):
        name, arguments = str(call["function"]["name"]), call["function"].get("arguments")
        try:
            valid = isinstance(json.loads(arguments), dict)
        except (ValueError, TypeError):
            valid = False
        function = {"name": name, "arguments": arguments if valid else "{}"}
        calls.append({"id": call.get("id") or "call_%d" % number, "type": "function", "function": function})
    answer = {"role": "assistant", "content": content if isinstance(content, str) else ""}
    return dict(answer, tool_calls=calls) if calls else answer


def shorten(messages):
    """Cut the longer half of all messages but the first two; return whether any was cut."""
    rest = sorted(messages[2:], key=lambda message: -len(message["content"]))
    cut = [m for m in rest[: (len(rest) + 1) // 2] if len(m["content"]) > 2 * KEPT_CHARACTERS]
    for message in cut:
        message["content"] = message["content"][:KEPT_CHARACTERS] + "\n[the rest is left out]"
    return bool(cut)
