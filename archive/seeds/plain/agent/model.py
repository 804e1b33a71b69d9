"""One call to the model, over the OpenAI chat protocol."""

import json
import os
import urllib.request

MODEL = os.environ.get("DGM_MODEL", "default")
TEMPERATURE = 0.0
REQUEST_TIMEOUT_S = 600


def reply(messages, tools):
    """The assistant's next message."""
    body = {"model": MODEL, "messages": messages, "tools": tools, "temperature": TEMPERATURE}
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        data=json.dumps(body).encode("utf-8"),
        headers={
            "Content-Type": "application/json",
            "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"],
        },
    )
    with urllib.request.urlopen(request, timeout=REQUEST_TIMEOUT_S) as response:
        return json.load(response)["choices"][0]["message"]
