"""A person at a browser who allows what apps ask, for programs that open one by themselves.

BROWSER_TOKEN=… BROWSER_LOG=… python browser.py URL       in the background, as browsers do
BROWSER_TOKEN=… BROWSER_LOG=… python browser.py URL -     tells where the app is to be answered

It uses the standard library alone, so that it starts at once.
"""

from __future__ import annotations

import json
import os
import sys
import time
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

SCOPES = ["mail.read", "account.read"]
TRIES = 600


def ask(
    there: SplitResult, method: str, target: str, sent: object = None, cookie: str = ""
) -> HTTPResponse:
    link = HTTPConnection(there.netloc, timeout=30)
    link.request(
        method,
        target,
        None if sent is None else json.dumps(sent),
        {
            "content-type": "application/json",
            "origin": f"http://{there.netloc}",
            "sec-fetch-site": "same-origin",
            "folkmoot-page": "1",
            "cookie": cookie,
        },
    )
    return link.getresponse()


def consent(url: str) -> str:
    """Where the hub sends the browser once the person has signed in and consented."""
    there = urlsplit(url)
    page = ask(there, "GET", f"{there.path}?{there.query}")
    if page.status == 302:
        there = urlsplit(page.headers["location"])
    opened = ask(there, "POST", "/v1/session", {"token": os.environ["BROWSER_TOKEN"]})
    cookie = opened.headers["set-cookie"].partition(";")[0]
    decision = {"query": there.query, "allow": True, "scopes": SCOPES}
    return json.load(ask(there, "POST", "/v1/authorization", decision, cookie))["redirect"]


def follow(url: str) -> None:
    """Go there; some apps begin to listen only after they opened the browser."""
    there = urlsplit(url)
    for _ in range(TRIES):
        try:
            ask(there, "GET", f"{there.path}?{there.query}").read()
        except ConnectionRefusedError:
            time.sleep(0.05)
        else:
            return


def main(url: str, told: str = "") -> None:
    if not told and os.fork():
        return
    back = consent(url)
    with Path(os.environ["BROWSER_LOG"]).open("a") as log:
        log.write(f"{url}\n")
    if told:
        sys.stdout.write(back)
    else:
        follow(back)


if __name__ == "__main__":
    main(*sys.argv[1:])
