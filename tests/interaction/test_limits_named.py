"""Every limit: its error names the setting in its data, for operators, and not in its sentence."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import closing
from inspect import isawaitable
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import pytest

from folkmoot.bounds import body_bounds, rate_limits, room_options
from folkmoot.clock import SystemClock
from folkmoot.core import errors as e
from folkmoot.core import strict
from folkmoot.core.closecodes import CLOSE_REASONS
from folkmoot.core.policy import PrincipalType
from folkmoot.quotas import SENTENCES, Quotas
from folkmoot.ratelimits import AccountRates, RateLimits
from folkmoot.rooms.machine.chat import ChatRates, SendRates
from folkmoot.settings import FIELDS, Settings
from folkmoot.store.jobs import JobQueue
from folkmoot.transports.limits import SESSION_BYTES
from folkmoot.transports.mcp.sessions import Sessions
from folkmoot.transports.websocket import link
from tests.harness import ask, head, run
from tests.mcp_harness import BOTH, INITIALIZE, Meeting, meeting

# The sections that hold nothing but limits; elsewhere a limit begins with `max_`.
SECTIONS = ("rates", "limits", "quotas")

# Limits that nobody is told of, and what they do instead.
WITHOUT_ERROR = {
    "rates.recover_handle_per_day": "slows, and refuses nobody",
    "limits.ping_seconds": "is when the hub pings",
    "limits.pong_seconds": "closes a WebSocket with 4408",
    "limits.frames_per_second": "closes a WebSocket with 4029",
    "limits.unsent_frames": "closes a WebSocket with 4008",
    "limits.unsent_bytes": "closes a WebSocket with 4008",
    "limits.unfinished_bytes": "closes a WebSocket with 4008",
    "quotas.room_bytes": "trims a room",
    "quotas.memory_room_bytes": "trims a room",
    "quotas.memory_bytes_per_account": "trims a room",
    "quotas.memory_bytes": "trims a room",
    "events.max_bytes": "has a client told to read anew",
    "mcp.max_stream_bytes": "has a client told that a stream cannot be resumed",
}

Provoke: TypeAlias = Callable[[Path, str], Awaitable[str]]


def is_limit(path: str) -> bool:
    section, _, name = path.partition(".")
    return section in SECTIONS or name.startswith("max_") or path == "store.queue"


LIMITS = sorted(path for path in FIELDS if is_limit(path) and path not in WITHOUT_ERROR)


def settings(path: str, value: int = 1) -> Settings:
    section, _, name = path.partition(".")
    return msgspec.convert({section: {name: value}}, Settings)


async def said(work: Callable[[], Any], times: int = 1) -> str:
    """What is said when something is done too often."""
    with pytest.raises(e.FolkmootError) as caught:  # noqa: PT012 - the last one is refused
        for _ in range(times):
            if isawaitable(done := work()):
                await done
    return json.dumps(caught.value.as_http())


async def rate(_: Path, path: str) -> str:
    limits = rate_limits(settings(path))
    name = next(name for name, limit in limits.items() if limit.setting == path)
    counted = RateLimits(SystemClock(), limits)
    return await said(lambda: counted.take(name, "someone"), 2)


async def chat_rate(_: Path, path: str) -> str:
    who = PrincipalType[path.split("_")[1].upper()]
    limit, counted = room_options(settings(path)).chat[who], ChatRates()
    return await said(lambda: counted.take("someone", limit, 1.0), 2)


async def send_rate(_: Path, path: str) -> str:
    kind = "mcp.response.ping" if "answer" in path else "chat.message"
    in_bytes = "bytes" in path
    rates, counted = room_options(settings(path, 1024 if in_bytes else 1)).rates, SendRates()
    size = 10 * 1024 if in_bytes else 1
    return await said(lambda: counted.take("someone", rates, kind, size, 1.0), 11)


async def body_rate(_: Path, path: str) -> str:
    rate, counted = body_bounds(settings(path, 1024)).rate, AccountRates()
    return await said(lambda: counted.take("someone", rate, 10 * 1024, 1.0), 2)


async def message(_: Path, path: str) -> str:
    limits = room_options(settings(path, 1024 if "bytes" in path else 8)).limits
    raw = b'"%s"' % (b"x" * 1024) if "bytes" in path else b"[" * 9 + b"]" * 9
    return await said(lambda: strict.decode(raw, limits))


async def quota(_: Path, path: str) -> str:
    name = path.partition(".")[2]
    assert name in SENTENCES
    return f"quotas.{Quotas().exceeded(name, 2, 1).data['quota']}"


async def session(_: Path, path: str) -> str:
    sizes = {"most_bytes": 2 * SESSION_BYTES} if "bytes" in path else {"most_of_one": 1}
    sessions = Sessions(SystemClock(), idle_seconds=60, most=1_000, **sizes)
    for number in range(2):
        sessions.open(str(number), "", address="here", user_id="ada").in_flight += 1
    if "bytes" in path:
        return await said(lambda: sessions.to_make_room(stranger=True))
    return await said(lambda: sessions.in_excess("ada"))


async def queue(_: Path, path: str) -> str:
    jobs = JobQueue(settings(path).store.queue, "writes")

    async def unit(_: Any) -> None: ...

    first = asyncio.ensure_future(jobs.ask(unit))
    await asyncio.sleep(0)
    told = await said(lambda: jobs.ask(unit))
    first.cancel()
    return told


def at_a_hub(value: int, use: Callable[[Meeting, str], Awaitable[str]]) -> Provoke:
    async def provoke(folder: Path, path: str) -> str:
        section, _, name = path.partition(".")
        async with meeting(folder, "stateless", **{section: {name: value}}) as there:
            return await use(there, (await there.hub.accounts.register("ada")).token)

    return provoke


def posting(
    content: object, path: str = "/v1/rooms", *, signed: bool = True
) -> Callable[[Meeting, str], Awaitable[str]]:
    """Has the hub read something, of someone it knows or of a stranger."""

    async def post(there: Meeting, token: str) -> str:
        headers = BOTH | ({"authorization": f"Bearer {token}"} if signed else {})
        body = json.dumps(content).encode()
        answer = await ask(there.port, path, method="POST", headers=headers, body=body)
        assert answer.status in {400, 413, 429, 503}, answer.text
        return answer.text

    return post


async def connections(there: Meeting, _: str) -> str:
    _, first = await asyncio.open_connection("127.0.0.1", there.port)
    with closing(first):
        answer = await ask(there.port, "/")
        assert answer.status == 503
        return answer.text


def twice(path: str) -> Callable[[Meeting, str], Awaitable[str]]:
    """Asks for something once more while the first connection that did is still open."""

    async def asked(there: Meeting, token: str) -> str:
        headers = {"authorization": f"Bearer {token}"}
        reader, first = await asyncio.open_connection("127.0.0.1", there.port)
        with closing(first):
            first.write(head(path, **headers))
            await reader.readuntil(b"\r\n\r\n")
            answer = await ask(there.port, path, headers=headers)
            assert answer.status in (429, 503)
            return answer.text

    return asked


async def sessions(there: Meeting, _: str) -> str:
    await there.post(INITIALIZE)
    return (await there.post(INITIALIZE)).text


OF_EACH_NODE = {
    "events.max_streams",
    "events.max_streams_per_account",
    "http.max_connections",
    "http.max_connections_per_account",
    "http.max_connections_per_address",
}

PROVOKED: dict[str, Provoke] = {
    **{path: rate for path in LIMITS if path.startswith("rates.")},
    **{path: chat_rate for path in LIMITS if path.startswith("rates.chat_")},
    **{path: send_rate for path in LIMITS if path.endswith("_per_second")},
    **{path: quota for path in LIMITS if path.startswith("quotas.")},
    "rates.body_bytes_per_second": body_rate,
    "limits.message_bytes": message,
    "limits.nesting": message,
    "quotas.sessions_per_account": session,
    "http.max_body_bytes": at_a_hub(1024, posting("x" * 20_000)),
    "http.max_anonymous_body_bytes": at_a_hub(1024, posting("x" * 2_000, signed=False)),
    "http.max_body_values": at_a_hub(100, posting([0] * 200)),
    "http.max_anonymous_body_values": at_a_hub(100, posting([0] * 200, signed=False)),
    "http.max_bodies_bytes": at_a_hub(65_536, posting("x" * 1_100_000)),
    "http.max_connections": at_a_hub(1, connections),
    "http.max_connections_per_address": at_a_hub(1, connections),
    "http.max_connections_per_account": at_a_hub(1, twice("/v1/rooms")),
    "events.max_streams": at_a_hub(1, twice("/v1/events")),
    "events.max_streams_per_account": at_a_hub(1, twice("/v1/events")),
    "mcp.max_sessions": at_a_hub(1, sessions),
    "mcp.max_anonymous_sessions": at_a_hub(1, sessions),
    "mcp.max_session_bytes": session,
    "rooms.max_rooms_each": at_a_hub(0, posting({"name": "square"})),
    "mail.max_body_characters": at_a_hub(
        1, posting({"to": "ada", "body": "Too long."}, "/v1/messages")
    ),
    "store.queue": queue,
}


def test_every_limit_is_provoked():
    assert sorted(PROVOKED) == LIMITS
    assert all(path in FIELDS for path in WITHOUT_ERROR)


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=pytest.mark.one_node("the limit is of each node"))
        if path in OF_EACH_NODE
        else path
        for path in LIMITS
    ],
)
def test_the_error_of_a_limit_names_its_setting_in_its_data_and_not_to_people(path, tmp_path):
    told = run(PROVOKED[path](tmp_path, path))
    assert path in told
    assert "Setting" not in told


def test_no_close_reason_is_too_long_or_names_a_setting():
    for reason in (*CLOSE_REASONS.values(), link.UNREAD, link.UNFINISHED):
        assert len(reason.encode()) <= 123, "a close frame has no room for more"
        assert "limits." not in reason
