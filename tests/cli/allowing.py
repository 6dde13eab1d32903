"""A person at a browser: opens the link of `folkmoot login`, and allows it or not.

Run with TOKEN SCOPES LINK; the scopes `-` are a no.
"""

from __future__ import annotations

import json
import sys
from http.client import HTTPConnection
from urllib.parse import parse_qs, urlsplit


def main(token: str, scopes: str, link: str) -> None:
    place = urlsplit(link)
    host = f"localhost:{place.port}"
    headers = {
        "host": host,
        "origin": f"http://{host}",
        "folkmoot-page": "1",
        "sec-fetch-site": "same-origin",
        "content-type": "application/json",
    }

    def ask(path: str, body: object) -> str:
        connection = HTTPConnection(place.hostname or "", place.port)
        connection.request("POST", path, json.dumps(body), headers)
        answer = connection.getresponse()
        assert answer.status < 300, answer.read()
        return (answer.getheader("set-cookie") or "").partition(";")[0]

    headers["cookie"] = ask("/v1/session", {"token": token})
    [code] = parse_qs(place.query)["user_code"]
    given = {"user_code": code, "allow": scopes != "-", "scopes": scopes.split(",")}
    ask("/v1/device-authorization", given)


if __name__ == "__main__":
    main(*sys.argv[1:])
