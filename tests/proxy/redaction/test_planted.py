"""A secret that is planted anywhere is not on the tape."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.core import errors as e
from folkmoot.core.envelope import MessageContext, MessageDirection, MessageEnvelope
from folkmoot.core.message import decode_message
from folkmoot.core.ports import Carried
from folkmoot.core.session import SessionContext, SessionId
from folkmoot.core.timing import TimingContext
from folkmoot.core.transport import Headers, HttpMetadata, SseMetadata, TransportContext
from folkmoot.core.verdict import Block
from folkmoot.proxy.redaction import PLACEHOLDER
from folkmoot.proxy.tape import read_tape
from tests.core.strategies import OBJECTS
from tests.proxy.redaction.secrets import FORMED, PASSWORDS, SOME, escaped, redactor
from tests.proxy.tape.strategies import record

pytestmark = pytest.mark.requirement("proxy.record-no-secrets")

Plant = Callable[[str], Any]
TIMING = TimingContext(1.0, 2.0)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with TemporaryDirectory() as name:
        yield Path(name)


# Places where a secret must show by its form.
TEXTS: list[Plant] = [
    lambda s: s,
    lambda s: f"It is {s}.",
    lambda s: f"two\nlines: {s}\n",
    lambda s: f"https://example.org/a?b=1&access_token={s}&c=2#d",
    lambda s: f"https://example.org/{s}/x",
    lambda s: f"Authorization: Bearer {s}",
    lambda s: {"text": s},
    lambda s: {"list": [1, [s]]},
    lambda s: {s: "as a name"},
    lambda s: {"headers": [{"name": "x", "value": s}]},
]

# Places where a secret may look like anything.
NAMED: list[Plant] = [
    lambda s: {"token": s},
    lambda s: {"apiKey": s, "other": 1},
    lambda s: {"DB_PASSWORD": s},
    lambda s: {"client-secret": [s, None]},
    lambda s: {"credentials": {"user": "u", "pass": s}},
    lambda s: {"env": [{"name": "API_KEY", "value": s}]},
    lambda s: {"recovery_code": s},
    lambda s: {"authorization": f"Basic {s}"},
]

# As itself, and as JSON in a string, up to three strings deep.
WRAPPED: list[Plant] = [
    lambda v: v,
    json.dumps,
    lambda v: json.dumps({"a": json.dumps(v)}),
    lambda v: json.dumps({"a": [json.dumps({"b": json.dumps(v, indent=1)})]}, indent=2),
]

BODIES: list[Plant] = [
    lambda v: {"id": 1, "method": "tools/call", "params": {"name": "t", "arguments": {"x": v}}},
    lambda v: {"id": 1, "result": {"content": [{"type": "text", "text": v}]}},
    lambda v: {"id": 1, "result": {"structuredContent": {"x": v}}},
    lambda v: {"id": 1, "error": {"code": 1, "message": str(v), "data": v}},
    lambda v: {"method": "notifications/message", "params": {"data": v}},
    lambda v: {"method": "x", "unknown": v},
]

SPELLED: list[Callable[[str], str]] = [lambda text: text, escaped]

planted = st.one_of(
    st.tuples(FORMED, st.sampled_from(TEXTS)), st.tuples(PASSWORDS, st.sampled_from(NAMED))
)


def on_tape(folder: Path, carried: Carried) -> bytes:
    return record(folder / "tape", [carried], redactor=redactor()).read_bytes()


def of(body: dict[str, Any], spell: Callable[[str], str] = str) -> Carried:
    raw = spell(json.dumps({"jsonrpc": "2.0", **body}, ensure_ascii=False)).encode()
    return Carried(MessageEnvelope.new(decode_message(raw), TIMING))


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
        if value[:1] in ("{", "[", '"'):
            with suppress(ValueError):
                yield from strings(json.loads(value))
    elif isinstance(value, dict):
        for name, member in value.items():
            yield from strings(name)
            yield from strings(member)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)


@given(
    plant=planted,
    wrap=st.sampled_from(WRAPPED),
    body=st.sampled_from(BODIES),
    spell=st.sampled_from(SPELLED),
)
def test_a_secret_in_a_message_is_not_on_the_tape(folder, plant, wrap, body, spell):
    secret, put = plant
    written = on_tape(folder, of(body(wrap(put(secret))), spell))
    for in_ascii in (True, False):
        assert json.dumps(secret, ensure_ascii=in_ascii)[1:-1].encode() not in written
    assert secret.encode() not in written
    entry = read_tape(folder / "tape").entries[0]
    assert not any(secret in text for text in strings(msgspec.json.decode(written.splitlines()[1])))
    assert entry.redacted
    assert all(place.part == "message" for place in entry.redacted)


@pytest.mark.parametrize(
    "part", ["authorization", "x-api-key", "cookie", "uri", "event", "session", "block"]
)
@SOME
@given(secret=FORMED)
def test_a_secret_in_a_context_is_not_on_the_tape(folder, secret, part):
    headers = Headers.of([(part, f"Bearer {secret}" if part == "authorization" else secret)])
    transport = {
        "uri": TransportContext(HttpMetadata(Headers(), "GET", f"/sse?session_id={secret}")),
        "event": TransportContext(SseMetadata(secret, f"{secret}-1", None, None, secret)),
    }.get(part, TransportContext(HttpMetadata(headers, "POST", "/mcp")))
    session = SessionContext.with_id(SessionId(secret))
    context = MessageContext(TIMING, MessageDirection.CLIENT_TO_SERVER, session, transport)
    message = decode_message(b'{"jsonrpc":"2.0","method":"x"}')
    block = Block(e.BlockedByInterceptor(f"No {secret}.", said=secret)) if part == "block" else None
    envelope = MessageEnvelope(message, context).with_extension("note", {"token": secret})
    assert secret.encode() not in on_tape(folder, Carried(envelope, None, block, "guard"))
    told = {place.part for place in read_tape(folder / "tape").entries[0].redacted}
    assert told >= {"session", "transport", "extensions"}
    assert ("error" in told) == (part == "block")


@SOME
@given(body=st.sampled_from(BODIES[:5]), value=OBJECTS, secret=FORMED)
def test_what_is_not_secret_stays_as_it_was(body, value, secret):
    said = {"jsonrpc": "2.0", **body([value, {"zz": secret}, value])}
    raw, places = redactor().message(of(said).envelope.message)
    assert places
    text = PLACEHOLDER.sub(secret, raw.decode())
    after, before = json.loads(text), json.loads(json.dumps(said))
    assert list(after) == list(before)
    clean, _ = redactor().message(of(body([value])).envelope.message)
    if clean is None:
        assert after == before
