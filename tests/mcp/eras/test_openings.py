"""How the bridge finds out who speaks which era, and what it makes of it."""

from __future__ import annotations

from typing import Any

import pytest

from folkmoot.core.session import ProtocolVersion
from folkmoot.mcp.eras import EraBridge, ToClient, ToServer
from folkmoot.mcp.wire import MOST_OPEN
from tests.mcp.eras.script import (
    ADA,
    BOX,
    CAPABILITIES,
    CLIENT,
    META,
    OFFERED,
    SERVER,
    TOLD,
    VERSION,
    Line,
    bridge,
    client,
    error,
    message,
    notice,
    ours,
    passed,
    play,
    refused,
    request,
    result,
    returned,
    said,
    server,
    shown,
    to_client,
    to_server,
    too_many,
)

pytestmark = pytest.mark.requirement("mcp.eras-bridged")

HELLO: dict[str, Any] = request(
    0, "initialize", protocolVersion="2025-06-18", capabilities=OFFERED, clientInfo=ADA
)
WELCOME: dict[str, Any] = result(
    0, protocolVersion="2025-06-18", capabilities=TOLD, serverInfo=BOX, instructions="Hi."
)
PROBE = request(ours(1), "server/discover", _meta=META)
DONE: dict[str, Any] = {"resultType": "complete", "_meta": {SERVER: BOX}}
LISTED = DONE | {"ttlMs": 0, "cacheScope": "private"}
SAYS = {"supportedVersions": ["2026-07-28"], "capabilities": TOLD, "instructions": "Hi."}
FOUND: dict[str, Any] = LISTED | SAYS
LIST = request(1, "tools/list", _meta=META)
DISCOVER = request(1, "server/discover", _meta=META)
SHAKE = request(
    ours(1), "initialize", protocolVersion="2025-11-25", capabilities=OFFERED, clientInfo=ADA
)
SHAKEN: dict[str, Any] = WELCOME["result"]
INITIALIZED = to_server(notice("notifications/initialized"))


def after(message: dict[str, Any], number: int) -> dict[str, Any]:
    """One of our requests, made later."""
    return message | {"id": ours(number)}


@pytest.mark.parametrize(
    "refused",
    [
        error(0, -32601),
        error(0, -32022, data={"supported": ["2026-07-28"], "requested": "2025-06-18"}),
        error(0, -32602, "params._meta must be an object"),
        error(0, -32000, "Bad Request"),
    ],
    ids=["no such method", "no such version", "bad params", "bad request"],
)
def test_a_server_that_refuses_the_handshake_but_can_be_discovered_is_bridged(refused):
    machine = bridge()
    play(
        machine,
        *passed(HELLO),
        server(refused),
        to_server(PROBE),
        server(result(ours(1), **FOUND)),
        to_client(WELCOME),
    )
    assert not machine.transparent
    assert machine.server_version == ProtocolVersion("2026-07-28")


def test_a_client_of_an_unknown_version_is_offered_the_newest_of_the_handshake_era():
    hello = request(0, "initialize", protocolVersion=["?"], capabilities={}, clientInfo=ADA)
    meta = {VERSION: "2026-07-28", CLIENT: ADA, CAPABILITIES: {}}
    unknown = {"name": "unknown", "version": "unknown"}
    play(
        bridge(),
        *passed(hello),
        server(error(0, -32601)),
        to_server(request(ours(1), "server/discover", _meta=meta)),
        server(result(ours(1), supportedVersions=["2026-07-28"])),
        to_client(result(0, protocolVersion="2025-11-25", capabilities={}, serverInfo=unknown)),
    )


@pytest.mark.parametrize(
    ("answer", "version"),
    [
        (WELCOME, ProtocolVersion("2025-06-18")),
        (error(0, -32022, data={"supported": ["2024-11-05"]}), None),
    ],
    ids=["welcome", "another version"],
)
def test_a_server_that_shakes_hands_needs_no_bridge(answer, version):
    machine = bridge()
    play(machine, *passed(HELLO), *returned(answer))
    assert machine.transparent
    assert machine.server_version == version


def test_a_server_that_answers_neither_question_is_left_to_its_client():
    machine = bridge()
    other = request(1, "tools/list")
    play(
        machine,
        *passed(HELLO),
        server(error(0, -32603, "broken")),
        to_server(PROBE),
        server(error(ours(1), -32603, "broken")),
        to_client(error(0, -32603, "broken")),
        *passed(other),
        *returned(error(1, -32601)),
    )
    assert not machine.transparent


def test_a_server_of_unknown_stateless_versions_is_refused_in_a_sentence():
    play(
        bridge(),
        *passed(HELLO),
        server(error(0, -32601)),
        to_server(PROBE),
        server(error(ours(1), -32022, data={"supported": ["2031-01-01"]})),
        refused(0, "The server speaks no version of the stateless era that is known."),
    )


def test_what_a_client_says_before_the_hands_are_shaken_waits_and_is_not_lost():
    ready = notice("notifications/initialized")
    ping = request(1, "ping")
    same, other = bridge(), bridge()
    play(
        same,
        *passed(HELLO),
        client(ping),
        client(ready),
        *returned(WELCOME),
        to_server(ping),
        to_server(ready),
    )
    play(
        other,
        *passed(HELLO),
        client(ping),
        server(error(0, -32601)),
        to_server(PROBE),
        server(result(ours(1), **FOUND)),
        to_client(WELCOME),
        to_client(result(1)),
    )


@pytest.mark.parametrize(
    "refused",
    [
        error(1, -32601),
        error(1, -32022, data={"supported": ["2025-11-25"]}),
        error(1, -32000, "Server not initialized"),
        result(1, supportedVersions=["2025-11-25"]),
    ],
    ids=["no such method", "no such version", "not initialised", "only older versions"],
)
def test_a_server_that_cannot_be_discovered_is_initialised(refused):
    machine = bridge()
    play(
        machine,
        *passed(DISCOVER),
        server(refused),
        to_server(SHAKE),
        client(request(2, "ping2", _meta=META)),
        server(result(ours(1), **SHAKEN)),
        INITIALIZED,
        to_client(result(1, **FOUND)),
        to_server(request(2, "ping2") | {"params": {}}),
    )
    assert machine.server_version == ProtocolVersion("2025-06-18")


def test_a_request_refused_for_no_clear_reason_is_made_again_after_the_handshake():
    play(
        bridge(),
        *passed(LIST),
        server(error(1, -32602, "Invalid request parameters", data="")),
        to_server(PROBE),
        server(error(ours(1), -32601)),
        to_server(after(SHAKE, 2)),
        server(result(ours(2), **SHAKEN)),
        INITIALIZED,
        to_server(request(1, "tools/list") | {"params": {}}),
        server(result(1, tools=[])),
        to_client(result(1, tools=[], **LISTED)),
    )


OTHER = request(2, "tools/list", _meta=META)
AGAIN = request(2, "server/discover", _meta=META)
# Openings after which both sides speak the same era.
SAME_ERA: dict[str, tuple[Line, ...]] = {
    "a typed result shows the stateless era": (
        *passed(LIST),
        *returned(result(1, resultType="complete", tools=[])),
    ),
    "so does a capability that is missing": (
        *passed(LIST),
        *returned(error(1, -32021, data={"requiredCapabilities": {}})),
    ),
    "and a stateless version": (
        *passed(LIST),
        *returned(error(1, -32022, data={"supported": ["2031-01-01"]})),
    ),
    "an error of a stateless server stays an error": (
        *passed(LIST),
        server(error(1, -32602, "bad cursor")),
        to_server(PROBE),
        server(result(ours(1), **FOUND)),
        to_client(error(1, -32602, "bad cursor")),
    ),
    "a lenient server that wants no handshake is let be": (
        *passed(LIST),
        server(result(1, tools=[])),
        to_server(SHAKE),
        server(error(ours(1), -32601)),
        to_client(result(1, tools=[])),
    ),
    "nobody gets the answer to a question of ours": (
        *passed(LIST),
        *passed(OTHER),
        server(error(1, -32602)),
        to_server(PROBE),
        server(result(2, resultType="complete", tools=[])),
        server(result(ours(1), **FOUND)),
        to_client(error(1, -32602)),
        to_client(result(2, resultType="complete", tools=[])),
    ),
    "the first answer counts of a server that takes no opening": (
        *passed(DISCOVER),
        server(error(1, -32603, "broken")),
        to_server(SHAKE),
        client(AGAIN),
        server(error(ours(1), -32603, "broken")),
        to_client(error(1, -32603, "broken")),
        to_server(AGAIN),
        *returned(result(2, **FOUND)),
    ),
    "a slow server names its stateless version after all": (
        *passed(DISCOVER),
        server(error(1, -32001, "timed out")),
        to_server(SHAKE),
        server(error(ours(1), -32022, data={"supported": ["2026-07-28"]})),
        to_client(error(1, -32001, "timed out")),
    ),
    "a client of both eras gives up on the newer": (
        *passed(DISCOVER),
        *passed(HELLO),
        *returned(WELCOME),
    ),
}


@pytest.mark.parametrize("how", SAME_ERA)
def test_two_that_speak_the_same_era_need_no_bridge(how):
    machine = bridge()
    play(machine, *SAME_ERA[how])
    assert machine.transparent


def test_a_lenient_server_is_initialised_and_asked_again_what_may_be_asked_twice():
    call = request(2, "tools/call", name="a", _meta=META)
    play(
        bridge(),
        *passed(LIST),
        *passed(call),
        server(result(2, content=[])),
        to_server(SHAKE),
        server(result(1, tools=[])),
        server(result(ours(1), **SHAKEN)),
        INITIALIZED,
        to_client(result(2, content=[], **DONE)),
        to_server(request(1, "tools/list") | {"params": {}}),
        server(result(1, tools=["t"])),
        to_client(result(1, tools=["t"], **LISTED)),
    )


def test_a_request_that_is_cancelled_during_the_opening_gets_no_answer():
    gone = notice("notifications/cancelled", requestId=1)
    play(
        bridge(),
        *passed(LIST),
        server(error(1, -32602)),
        to_server(PROBE),
        server(error(ours(1), -32601)),
        to_server(after(SHAKE, 2)),
        client(gone),
        server(result(ours(2), **SHAKEN)),
        INITIALIZED,
    )


def test_too_much_before_the_hands_are_shaken_is_refused():
    machine = bridge()
    said(machine, *client(HELLO))
    for number in range(MOST_OPEN):
        assert said(machine, *client(request(number, "ping"))) == []
    play(
        machine,
        client(request("n", "ping")),
        too_many("n"),
        client(notice("notifications/initialized")),
    )


def test_tasks_are_offered_to_neither_side():
    extension: dict[str, Any] = {"io.modelcontextprotocol/tasks": {}, "x/y": {}}
    offered = {"tasks": {}, "extensions": extension, "roots": {"listChanged": True, "z": 1}}
    kept: dict[str, Any] = {"extensions": {"x/y": {}}}
    asked = kept | {"roots": {"z": 1}}
    first = request(1, "server/discover", _meta=META | {CAPABILITIES: offered})
    told = {"capabilities": {"tasks": {}, **kept}, "serverInfo": BOX}
    found = {name: value for name, value in FOUND.items() if name != "instructions"}
    play(
        bridge(),
        *passed(first),
        server(error(1, -32601)),
        to_server(SHAKE | {"params": SHAKE["params"] | {"capabilities": asked}}),
        server(result(ours(1), **told)),
        INITIALIZED,
        to_client(result(1, **found | {"capabilities": kept})),
    )


def test_requests_that_follow_the_first_at_once_are_all_answered():
    call = request(2, "tools/call", name="a", _meta=META)
    early = request("3", "tools/list", _meta=META)

    play(
        bridge(),
        *passed(DISCOVER),
        *passed(call),
        *passed(early),
        server(error(1, -32601)),
        to_server(SHAKE),
        server(error(2, -32600, "not initialised")),
        server(result(ours(1), **SHAKEN)),
        INITIALIZED,
        to_client(result(1, **FOUND)),
        to_server(request(2, "tools/call", name="a")),
        server(error("3", -32600, "not initialised")),
        to_server(request("3", "tools/list") | {"params": {}}),
        server(result(2, content=[])),
        to_client(result(2, content=[], **DONE)),
        *returned(error("3", -32050)),
    )


def test_a_client_that_shows_no_era_is_passed_on():
    machine = bridge()
    play(
        machine,
        *passed(request(1, "ping")),
        *returned(result(1)),
        *passed(notice("notifications/initialized")),
    )
    assert not machine.transparent


def test_messages_that_nobody_changes_stay_the_same_objects():
    machine = EraBridge()
    hello, welcome = message(HELLO), message(WELCOME)
    for hear, said_, where in (
        (machine.from_client, hello, ToServer),
        (machine.from_server, welcome, ToClient),
        (machine.from_client, hello, ToServer),
    ):
        (step,) = hear(said_)
        assert isinstance(step, where)
        assert step.message is said_


def test_a_server_that_says_nothing_to_a_stateless_client_may_be_offered_a_handshake():
    machine = bridge()
    assert machine.presume_handshake() == []
    play(machine, *passed(DISCOVER))
    assert shown(machine.presume_handshake()) == [to_server(SHAKE)]
    assert machine.presume_handshake() == []
    play(
        machine,
        server(result(ours(1), **SHAKEN)),
        INITIALIZED,
        to_client(result(1, **FOUND)),
        server(error(1, -32601)),
    )


def test_a_stateless_server_that_was_only_slow_is_known_by_its_late_answer():
    machine = bridge()
    play(machine, *passed(DISCOVER))
    machine.presume_handshake()
    play(
        machine,
        server(result(1, **FOUND)),
        server(error(ours(1), -32022, data={"supported": ["2026-07-28"]})),
        to_client(result(1, **FOUND)),
    )
    assert machine.transparent
