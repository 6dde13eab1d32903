"""A tape for other programs and other people: as one JSON document, as HAR 1.2, or as Markdown.

All of them are made in one pass, piece by piece, in the memory of the calls that are open. In an
HTTP archive each call is an entry with its answer, each notification one without; what never was
HTTP gets an address of its transport, server and method: `stdio://server/tools/call?name=echo`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from folkmoot.proxy.tape.lines import (
    CorrelationLine,
    EndLine,
    Header,
    HttpPart,
    Line,
    MessageLine,
    TapeSide,
)
from folkmoot.proxy.tape.timeline import Moment, grouped, moments
from folkmoot.telemetry.redaction import visible

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
    """Each request with its answer, if any; each notification alone."""
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


LONGEST: Final = 8_000
"""Characters of one message that are shown; a report is to be read by people."""

_TICKS = re.compile("`+")


def as_markdown(lines: Iterable[Line]) -> Iterator[str]:
    """The page, piece by piece."""
    source = iter(lines)
    header = next((line for line in source if isinstance(line, Header)), None)
    if header is not None:
        yield _about(header)
    for group in grouped(moments(source)):
        yield "".join(map(_told, group))


def _about(header: Header) -> str:
    redacted = "Secrets were replaced." if header.redaction else "Nothing was redacted."
    rows = {
        "Recorded": code(header.started),
        "By": code(header.program),
        "Client": _side(header.client),
        "Server": _side(header.server),
        "Tape": code(header.tape),
        "Redaction": redacted,
        "Note": code(header.note) if header.note else "",
    }
    table = "\n".join(f"| {name} | {value} |" for name, value in rows.items() if value)
    return f"# A recorded conversation\n\n| | |\n|---|---|\n{table}\n"


def _side(side: TapeSide) -> str:
    return f"{code(side.transport)} {code(side.target)}" if side.target else code(side.transport)


def _told(moment: Moment) -> str:
    arrow = "client → server" if moment.from_client else "server → client"
    if moment.shape == "response":
        head = f"**Answer** {moment.seq}, {arrow}"
        if moment.answer:
            took = f"{moment.answer.seconds * 1000:.1f} ms"
            head = f"**Answer** {moment.seq} to {moment.answer.request}, after {took}"
        if moment.failed:
            head += ": **tool error**" if moment.tool_failed else ": **error**"
    else:
        name = f" {code(moment.name)}" if moment.name else ""
        head = f"## {moment.seq}. {code(moment.method)}{name}\n\n"
        head += f"{arrow}, at {moment.at:.3f} s"
    line = moment.line
    if line.verdict:
        head += f"; {line.verdict} by {code(line.by)}"
    if moment.redacted:
        head += f"; {moment.redacted} redacted"
    told = f"\n{head}\n\n{block(line.message)}"
    if line.at_server is not msgspec.UNSET:
        told += f"\nAs the server saw it:\n\n{block(line.at_server)}"
    return told


def block(raw: msgspec.Raw) -> str:
    """JSON as a fenced code block that its content cannot end."""
    text = msgspec.json.format(bytes(raw), indent=2).decode("utf-8", "replace")
    note = ""
    if len(text) > LONGEST:
        note = f"\n({len(text) - LONGEST:,} more characters are not shown.)\n"
        text = text[:LONGEST]
    fence = _fence(text, 3)
    return f"{fence}json\n{text}\n{fence}\n{note}"


def code(text: str) -> str:
    """A word as code within a line, also within a table."""
    if not text:
        return ""
    shown = visible(text).replace("|", "\\|")
    fence = _fence(shown, 1)
    gap = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{gap}{shown}{gap}{fence}"


def _fence(text: str, least: int) -> str:
    longest = max(map(len, _TICKS.findall(text)), default=0)
    return "`" * max(least, longest + 1)


def as_json(lines: Iterable[Line]) -> Iterator[str]:
    """One document: header, messages, correlations and end."""
    end: EndLine | None = None
    ties: list[CorrelationLine] = []
    between = ""
    for line in lines:
        if isinstance(line, Header):
            yield f'{{"header":{_encoded(line)},\n"messages":['
        elif isinstance(line, MessageLine):
            yield f"{between}\n{_encoded(line)}"
            between = ","
        elif isinstance(line, CorrelationLine):
            ties.append(line)
        else:
            end = line
    told = ",".join(f"\n{_encoded(tie)}" for tie in ties)
    yield f'],\n"correlations":[{told}],\n"end":{_encoded(end)}}}\n'


def _encoded(value: Any) -> str:
    return msgspec.json.encode(value).decode()


FORMATS: Final[dict[str, Callable[[Iterable[Line]], Iterator[str]]]] = {
    "json": as_json,
    "har": as_har,
    "markdown": as_markdown,
}
"""The forms a tape can be given, by name."""
