"""A server on standard input and output that does wrong whatever it is asked to do wrong.

    python -I -S flawed_backend.py ERA FOLDER

What it did is in FOLDER/done, a line each. A file in FOLDER has it begin in another way: `dies` has
it end at once, and `tools` says how many tools it has.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

ERA, FOLDER = sys.argv[1], Path(sys.argv[2])
CAPABILITIES = {"tools": {"listChanged": True}, "resources": {"subscribe": True}, "logging": {}}
SERVER_KEY = "io.modelcontextprotocol/serverInfo"
LISTEN_KEY = "io.modelcontextprotocol/subscriptionId"
ME = {"name": "flawed", "version": "1"}
PAGE = 100
READ_ONLY = {"annotations": {"readOnlyHint": True}}
LIES = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
SAFE = ("echo", "peek_and_die", "hang_once")

writing = threading.Lock()
description = ["Says it again."]
listens: list[Any] = []
# The calls during which something was asked, by the ids of the questions.
asking: dict[str, Any] = {}


def say(**message: Any) -> None:
    write(json.dumps({"jsonrpc": "2.0", **message}))


def write(line: str) -> None:
    with writing:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def answer(message_id: Any, **result: Any) -> None:
    say(id=message_id, result={"resultType": "complete", **result})


def text(message_id: Any, words: str, **more: Any) -> None:
    answer(message_id, content=[{"type": "text", "text": words}], **more)


def record(what: str) -> int:
    """Note what is done; the answer is how often it was."""
    with (FOLDER / "done").open("a+") as done:
        done.write(f"{what} {os.getpid()}\n")
        done.flush()
        done.seek(0)
        return [line.split()[0] for line in done].count(what)


def tools() -> list[dict[str, Any]]:
    schema = {"type": "object"}
    listed = [
        {"name": name, "description": description[0], "inputSchema": schema}
        | (READ_ONLY if name in SAFE else {})
        for name in ("echo", *DOES)
        if name != "lie"
    ]
    listed += [
        {"name": "lie", "inputSchema": schema, "outputSchema": LIES},
        {"name": "banana", "inputSchema": {"type": "banana"}},
        {"name": "circle", "inputSchema": {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#"}}}},
        {"name": "shapeless", "inputSchema": "no object", "description": 7},
        {"description": "without a name", "inputSchema": schema},
    ]
    many = FOLDER / "tools"
    count = int(many.read_text()) if many.exists() else 0
    return listed + [
        {"name": f"tool_{number}", "inputSchema": schema, "description": f"Number {number}."}
        for number in range(count)
    ]


def die(message_id: Any, arguments: dict[str, Any]) -> None:
    record("die")
    os.kill(os.getpid(), signal.SIGKILL)


def peek_and_die(message_id: Any, arguments: dict[str, Any]) -> None:
    if record("peek_and_die") == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    text(message_id, "peeked")


def hang(message_id: Any, arguments: dict[str, Any]) -> None:
    record("hang")


def hang_once(message_id: Any, arguments: dict[str, Any]) -> None:
    if record("hang_once") > 1:
        text(message_id, "at last")


def freeze(message_id: Any, arguments: dict[str, Any]) -> None:
    record("freeze")
    os.kill(os.getpid(), signal.SIGSTOP)


def flood(message_id: Any, arguments: dict[str, Any]) -> None:
    """Say much that nobody asked for, in every way there is, for as long as we are."""

    def pour(stream: Any, words: str) -> None:
        while True:
            stream.write(words)

    stray = json.dumps({"jsonrpc": "2.0", "method": "notifications/nothing"}) + "\n"
    threading.Thread(target=pour, args=(sys.stderr, "drip\n" * 1000), daemon=True).start()
    text(message_id, "pouring")
    threading.Thread(target=pour, args=(sys.stdout, stray * 1000), daemon=True).start()


def slow(message_id: Any, arguments: dict[str, Any]) -> None:
    """Take long, and say meanwhile that it goes on."""

    def work() -> None:
        for step in range(arguments["steps"]):
            params = {"progressToken": arguments["_token"], "progress": step}
            say(method="notifications/progress", params=params)
            time.sleep(arguments["seconds"])
        text(message_id, "done")

    threading.Thread(target=work, daemon=True).start()


def lie(message_id: Any, arguments: dict[str, Any]) -> None:
    text(message_id, "n is a word", structuredContent={"n": "word"})


def announce(kind: str, **params: Any) -> None:
    """Tell everyone who listens that something changed."""
    for listen in listens or [None]:
        meta = {} if listen is None else {"_meta": {LISTEN_KEY: listen}}
        say(method=f"notifications/{kind}", params={**meta, **params})


def change(message_id: Any, arguments: dict[str, Any]) -> None:
    description[0] = arguments["description"]
    announce("tools/list_changed")
    text(message_id, "changed")


def stray(message_id: Any, arguments: dict[str, Any]) -> None:
    """Say what belongs to nothing, and what cannot be read, before the answer."""
    for other in (987_654, "987654", -1, str(message_id)):
        answer(other, content=[])
        say(id=other, error={"code": -1, "message": "no"})
    say(id=None, error={"code": -32700, "message": "What?"})
    for method, params in (
        ("notifications/progress", {"progressToken": 987_654, "progress": 1}),
        ("notifications/progress", {"progressToken": {}, "progress": "much"}),
        ("notifications/cancelled", {"requestId": 987_654}),
        ("notifications/cancelled", {"requestId": message_id}),
        ("notifications/message", {"level": "loud", "data": "?"}),
        ("notifications/resources/updated", {"uri": "x://y"}),
        ("notifications/elicitation/complete", {"elicitationId": "x"}),
        ("notifications/initialized", {}),
        ("notifications/made-up", {}),
    ):
        say(method=method, params=params)
    for number, method in enumerate(("made/up", "tools/call", "initialize", "ping")):
        say(id=f"q{number}", method=method, params={})
    write("no JSON at all")
    write("[]")
    write('{"jsonrpc": "1.0", "id": 1}')
    text(message_id, "after all that")
    answer(message_id, content=[])


def other_id(message_id: Any, arguments: dict[str, Any]) -> None:
    answer(arguments.get("id", message_id + 1000), content=[])


def huge(message_id: Any, arguments: dict[str, Any]) -> None:
    text(message_id, "x" * (arguments["megabytes"] * 1_000_000))


def ask(message_id: Any, arguments: dict[str, Any]) -> None:
    """Ask the client something; what it says is the answer."""
    question = f"q{message_id}"
    asking[question] = message_id
    say(id=question, method=arguments["method"], params=arguments["params"])


def log(message_id: Any, arguments: dict[str, Any]) -> None:
    note(arguments["data"])
    text(message_id, "logged")


def touch(message_id: Any, arguments: dict[str, Any]) -> None:
    announce("resources/updated", uri=arguments["uri"])
    text(message_id, "touched")


def note(words: str) -> None:
    """Log something, without a word about what it is of."""
    say(method="notifications/message", params={"level": "error", "data": words})


DOES = {
    each.__name__: each
    for each in (
        *(die, peek_and_die, hang, hang_once, freeze, flood),
        *(slow, lie, change, stray, other_id, huge),
        *(ask, log, touch),
    )
}


def call(message_id: Any, name: str, arguments: dict[str, Any]) -> None:
    if name in DOES:
        DOES[name](message_id, arguments)
    else:
        del arguments["_token"]
        text(message_id, json.dumps([name, arguments, os.getpid()]))


def request(message_id: Any, method: str, params: dict[str, Any]) -> None:
    if method == "initialize" and ERA == "handshake":
        version = {"protocolVersion": "2025-11-25", "capabilities": CAPABILITIES}
        say(id=message_id, result={**version, "serverInfo": ME})
    elif method == "server/discover" and ERA == "stateless":
        version = {"supportedVersions": ["2026-07-28"], "capabilities": CAPABILITIES}
        answer(message_id, **version, _meta={SERVER_KEY: ME})
    elif method == "tools/list":
        start, listed = int(params.get("cursor", 0)), tools()
        more = {"nextCursor": str(start + PAGE)} if start + PAGE < len(listed) else {}
        answer(message_id, tools=listed[start : start + PAGE], **more)
    elif method == "subscriptions/listen" and ERA == "stateless":
        listens.append(message_id)
        told = {"notifications": params["notifications"], "_meta": {LISTEN_KEY: message_id}}
        say(method="notifications/subscriptions/acknowledged", params=told)
    elif method == "resources/list":
        answer(message_id, resources=[{"uri": "flaw://a", "name": "a"}])
    elif method in ("resources/subscribe", "resources/unsubscribe"):
        note(f"{method} {params['uri']}")
        record(method)
        say(id=message_id, result={})
    elif method in ("ping", "logging/setLevel"):
        say(id=message_id, result={})
    elif method == "tools/call":
        token = params.get("_meta", {}).get("progressToken")
        call(message_id, params["name"], {**(params.get("arguments") or {}), "_token": token})
    else:
        say(id=message_id, error={"code": -32601, "message": f"Method not found: {method}"})


def main() -> None:
    """Answer until the input ends."""
    if (FOLDER / "dies").exists():
        sys.exit("no ink in the pen")
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("method") == "notifications/cancelled":
            record("cancelled")
        elif message.get("id") in asking:
            text(asking.pop(message["id"]), json.dumps(message))
        elif "id" in message and "method" in message:
            request(message["id"], message["method"], message.get("params", {}))


if __name__ == "__main__":
    main()
