"""A tape as an HTTP archive (HAR 1.2), for the many programs that show one.

Each call is an entry with its answer, each notification one without. What never was HTTP gets an
address made of its transport, server and method: `stdio://server/tools/call?name=echo`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from folkmoot.proxy.tape.lines import Header, HttpPart, Line
from folkmoot.proxy.tape.timeline import Moment, moments

VERSION: Final = "1.2"
MIME: Final = "application/json"
UNKNOWN: Final = -1
"""What HAR writes for a size that nobody knows."""


def as_har(lines: Iterable[Line]) -> Iterator[str]:
    """The archive, piece by piece."""
    source = iter(lines)
    header = next((line for line in source if isinstance(line, Header)), None)
    name, _, version = (header.program if header else "").partition(" ")
    creator = {"name": name or "folkmoot", "version": version}
    yield f'{{"log":{{"version":"{VERSION}","creator":{_encoded(creator)},"entries":['
    between = ""
    for asked, answer in _calls(moments(source)):
        yield f"{between}\n{_encoded(_entry(asked, answer, header))}"
        between = ","
    yield "]}}\n"


def _calls(timeline: Iterable[Moment]) -> Iterator[tuple[Moment, Moment | None]]:
    """Each request with its answer, once it came; each notification by itself."""
    waiting: dict[int, Moment] = {}
    for moment in timeline:
        if moment.shape == "request":
            waiting[moment.seq] = moment
        elif moment.shape == "notification":
            yield moment, None
        elif moment.answer is not None and moment.answer.request in waiting:
            yield waiting.pop(moment.answer.request), moment
    for moment in waiting.values():
        yield moment, None


def _entry(asked: Moment, answer: Moment | None, header: Header | None) -> dict[str, Any]:
    timing = asked.line.timing
    took = answer.answer.seconds * 1000 if answer and answer.answer else 0.0
    session = asked.line.session
    return {
        "startedDateTime": _instant(timing.system_time),
        "time": took,
        "request": _request(asked, header),
        "response": _response(asked, answer),
        "cache": {},
        "timings": {"send": 0, "wait": took, "receive": 0},
        "_mcp": {
            "direction": asked.line.direction.value,
            "type": asked.shape,
            "method": asked.method,
            "name": asked.name,
            "request": asked.seq,
            "response": answer.seq if answer else None,
            "outcome": answer.answer.outcome if answer and answer.answer else None,
            "session": session.id,
            "version": session.version,
            "verdict": asked.line.verdict,
        },
    }


def _request(asked: Moment, header: Header | None) -> dict[str, Any]:
    transport = asked.line.transport
    text = bytes(asked.line.message).decode("utf-8", "replace")
    http = transport if isinstance(transport, HttpPart) else None
    return {
        "method": http.method if http else "POST",
        "url": _url(asked, header),
        "httpVersion": "HTTP/1.1" if http else "",
        "cookies": [],
        "headers": _headers(http),
        "queryString": [{"name": "name", "value": asked.name}] if asked.name and not http else [],
        "postData": {"mimeType": MIME, "text": text},
        "headersSize": UNKNOWN,
        "bodySize": len(asked.line.message),
    }


def _response(asked: Moment, answer: Moment | None) -> dict[str, Any]:
    transport = answer.line.transport if answer else None
    http = transport if isinstance(transport, HttpPart) else None
    status, words = (http and http.status) or 200, "OK"
    if answer is None:
        # A status of 0 is how an archive says that nothing came back.
        status, words = (202, "Accepted") if asked.shape == "notification" else (0, "")
    raw = bytes(answer.line.message) if answer else b""
    return {
        "status": status,
        "statusText": words,
        "httpVersion": "HTTP/1.1" if http else "",
        "cookies": [],
        "headers": _headers(http),
        "content": {"size": len(raw), "mimeType": MIME, "text": raw.decode("utf-8", "replace")},
        "redirectURL": "",
        "headersSize": UNKNOWN,
        "bodySize": len(raw) if answer else UNKNOWN,
    }


def _headers(http: HttpPart | None) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in http.headers] if http else []


def _url(asked: Moment, header: Header | None) -> str:
    server = header.server if header else None
    target = server.target if server else ""
    transport = asked.line.transport
    if isinstance(transport, HttpPart):
        if urlsplit(transport.uri).scheme:
            return transport.uri
        if urlsplit(target).netloc:
            parts = urlsplit(target)
            return f"{parts.scheme}://{parts.netloc}/{transport.uri.lstrip('/')}"
        return f"http://server/{transport.uri.lstrip('/')}"
    words = target.split() if "://" not in target else [urlsplit(target).netloc]
    host = quote(words[0].rpartition("/")[2], safe="") if words else "server"
    query = f"?{urlencode({'name': asked.name})}" if asked.name else ""
    scheme = server.transport if server else "unknown"
    return f"{quote(scheme, safe='')}://{host}/{quote(asked.method, safe='/')}{query}"


def _instant(seconds: float) -> str:
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        moment = datetime.fromtimestamp(0, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _encoded(value: Any) -> str:
    return msgspec.json.encode(value).decode()
