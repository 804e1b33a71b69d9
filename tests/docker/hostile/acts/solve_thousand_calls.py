"""Calls the model 1,000 times"""

import collections
import http.client
import json
import os
import urllib.parse

address = urllib.parse.urlsplit(os.environ["OPENAI_BASE_URL"])
connection = http.client.HTTPConnection(address.hostname, address.port, timeout=60)
body = json.dumps({"model": "default", "messages": [{"role": "user", "content": "again"}]})
headers = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"}
answers = collections.Counter()
for n in range(1_000):
    connection.request("POST", "/v1/chat/completions", body, headers)
    response = connection.getresponse()
    response.read()
    answers[response.status] += 1
    if n % 100 == 99:
        print("answers:", dict(answers), flush=True)
