"""One request to a partner's server."""

import json
import ssl
import urllib.error
import urllib.request

TIMEOUT_S = 10


class FeedError(Exception):
    """A server answered, and not with a feed."""

    def __init__(self, url, status):
        super().__init__(f"{url} answers {status}")
        self.status = status


def fetch(url, ca_file=None, timeout_s=TIMEOUT_S):
    """Return the JSON document at an address.

    ca_file: certificates of the partner's own authority; None: those of the system.
    """
    context = ssl.create_default_context(cafile=ca_file)
    try:
        with urllib.request.urlopen(url, timeout=timeout_s, context=context) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        raise FeedError(url, error.code) from error
