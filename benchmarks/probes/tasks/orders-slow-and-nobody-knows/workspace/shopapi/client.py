"""A client of the shop, which signs in once and then reads orders."""

import json
import urllib.error
import urllib.request


class Refused(Exception):
    """The shop answered with an error."""

    def __init__(self, path, status):
        super().__init__(f"{path}: {status}")
        self.status = status


class Client:
    """A session with the shop."""

    def __init__(self, base, timeout_s=10):
        self.base = base.rstrip("/")
        self.timeout_s = timeout_s
        self._token = None

    def sign_in(self, user, password):
        """Sign in; later requests carry the token that the shop gives."""
        self._token = self._request("POST", "/session", {"user": user, "password": password})["token"]

    def order(self, number):
        """Return one order."""
        return self._request("GET", f"/orders/{number}")

    def cancel(self, number, reason):
        """Cancel an order."""
        return self._request("POST", f"/orders/{number}/cancel", {"reason": reason})

    def _request(self, method, path, body=None):
        headers = {"Content-Type": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=self.timeout_s) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise Refused(path, error.code) from error
