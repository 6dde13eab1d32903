"""A client of the handshake era in front of a server of the stateless one."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from folkmoot.core.message import message_from
from folkmoot.mcp.eras import EraBridge, ToServer
from folkmoot.mcp.eras.rounds import MOST_ROUNDS
from folkmoot.mcp.eras.subscriptions import MOST_REOPENED
from folkmoot.mcp.wire import MOST_OPEN
from tests.mcp.eras.script import (
    ADA,
    BOX,
    CAPABILITIES,
    CLIENT,
    LEVEL,
    OFFERED,
    SERVER,
    SUBSCRIPTION,
    TOLD,
    VERSION,
    Line,
    bridge,
    client,
    error,
    notice,
    ours,
    play,
    request,
    result,
    said,
    server,
    shown,
    to_client,
    to_server,
)

pytestmark = pytest.mark.requirement("mcp.eras-bridged")

META: dict[str, Any] = {
    VERSION: "2026-07-28",
    CLIENT: ADA,
    CAPABILITIES: OFFERED,
    LEVEL: "info",
}
CALL = request(1, "tools/call", name="a", _meta={"progressToken": 5})
SENT = request(1, "tools/call", name="a", _meta={"progressToken": 5} | META)
LISTS = {"toolsListChanged": True, "resourcesListChanged": True}
READY = notice("notifications/initialized")


def met(
    capabilities: dict[str, Any] | None = None,
    *,
    offered: dict[str, Any] = OFFERED,
    machine: EraBridge | None = None,
) -> EraBridge:
    """A bridge over which hands were shaken; the next id it makes is the second."""
    machine = machine or bridge()
    hello = request(
        0, "initialize", protocolVersion="2025-11-25", capabilities=offered, clientInfo=ADA
    )
    found = {"supportedVersions": ["2026-07-28"], "capabilities": capabilities or TOLD}
    said(machine, "client says", hello)
    said(machine, "server says", error(0, -32601))
    said(machine, "server says", result(ours(1), **found, _meta={SERVER: BOX}))
    return machine


def refused(message_id: int | str, sentence: str, **data: Any) -> Line:
    """The client is told that this cannot be bridged."""
    return to_client(error(message_id, -32000, sentence, data={"code": "era_not_bridged"} | data))


def wish(message_id: int | str, state: str | None = "st", **questions: Any) -> dict[str, Any]:
    """A server's wish for input."""
    wanted = {"inputRequests": questions} if questions else {}
    given = {"requestState": state} if state else {}
    return result(message_id, resultType="input_required", **wanted, **given)


def listen(number: int, **wanted: Any) -> dict[str, Any]:
    """A listen of ours."""
    return request(ours(number), "subscriptions/listen", notifications=wanted, _meta=META)


def agreed(number: int, **wanted: Any) -> dict[str, Any]:
    """The server's word for it."""
    return notice(
        "notifications/subscriptions/acknowledged",
        notifications=wanted,
        _meta={SUBSCRIPTION: ours(number)},
    )


def over(number: int) -> Line:
    """A listen of ours is wanted no more."""
    reason = "The subscription has ended."
    return to_server(notice("notifications/cancelled", requestId=ours(number), reason=reason))


def test_a_request_gets_the_meta_of_the_era_and_keeps_its_own() -> None:
    play(
        met(),
        client(CALL),
        to_server(SENT),
        client(request("1", "custom/thing")),
        to_server(request("1", "custom/thing", _meta=META)),
        client({"id": 3, "method": "odd", "params": [1]}),
        to_server({"id": 3, "method": "odd", "params": [1]}),
        server(result(1, resultType="complete", content=[], future=1)),
        to_client(result(1, content=[], future=1)),
        server(error("1", -32601)),
        to_client(error("1", -32601)),
    )


def test_answers_and_notices_that_nobody_changes_stay_the_same_objects() -> None:
    machine = met()
    said(machine, "client says", CALL)
    for value in (
        notice("notifications/progress", progressToken=5, progress=1),
        notice("notifications/message", level="info", data="x"),
        result(1, content=[], _meta={"x": 1}),
    ):
        message = message_from({"jsonrpc": "2.0", **value})
        (step,) = machine.from_server(message)
        assert step.message is message


def test_what_the_stateless_era_lacks_is_answered_or_dropped_here() -> None:
    play(
        met(),
        client(request(1, "ping")),
        to_client(result(1)),
        client(notice("notifications/roots/list_changed")),
        client(notice("notifications/progress", progressToken=1, progress=1)),
        client(request(2, "logging/setLevel", level="error")),
        to_client(result(2)),
        client(request(3, "x")),
        to_server(request(3, "x", _meta=META | {LEVEL: "error"})),
        client(request(4, "logging/setLevel", level=["loud"])),
        to_client(
            error(
                4,
                -32602,
                '"level" must be one of debug, info, notice, warning, error, critical, alert, '
                "emergency.",
            )
        ),
        client(request(5, "tasks/get", taskId="t")),
        refused(5, "Tasks cannot be carried from one era to the other."),
        client(request(6, "tools/call", name="t", task={})),
        refused(6, "Tasks cannot be carried from one era to the other."),
    )


def test_a_server_without_logging_is_asked_for_no_log_messages() -> None:
    meta = {name: value for name, value in META.items() if name != LEVEL}
    play(
        met({"tools": {}}),
        client(READY),
        client(request(1, "x")),
        to_server(request(1, "x", _meta=meta)),
    )


def test_questions_of_the_server_become_requests_and_their_answers_a_repeated_one() -> None:
    form = {"message": "?", "requestedSchema": {}}
    page = {"mode": "url", "message": "?", "url": "https://x.test"}
    play(
        met(),
        client(CALL),
        to_server(SENT),
        server(
            wish(
                1,
                who={"method": "elicitation/create", "params": form},
                go={"method": "elicitation/create", "params": page},
                where={"method": "roots/list"},
            )
        ),
        to_client(request(ours(2), "elicitation/create", **form)),
        to_client(request(ours(3), "elicitation/create", elicitationId=ours(3), **page)),
        to_client({"id": ours(4), "method": "roots/list", "params": {}}),
        client(result(ours(3), action="accept")),
        client(result(ours(2), action="decline")),
        client(result(ours(4), roots=[])),
        to_server(
            request(
                ours(5),
                "tools/call",
                name="a",
                _meta={"progressToken": 5} | META,
                inputResponses={
                    "go": {"action": "accept"},
                    "who": {"action": "decline"},
                    "where": {"roots": []},
                },
                requestState="st",
            )
        ),
        server(wish(ours(5), state=None, again={"method": "roots/list"})),
        to_client({"id": ours(6), "method": "roots/list", "params": {}}),
        client(result(ours(6), roots=[])),
        to_server(
            request(
                ours(7),
                "tools/call",
                name="a",
                _meta={"progressToken": 5} | META,
                inputResponses={"again": {"roots": []}},
            )
        ),
        server(result(ours(7), resultType="complete", content=[])),
        to_client(result(1, content=[])),
    )


@pytest.mark.parametrize(
    ("offered", "method", "params"),
    [
        ({}, "elicitation/create", {"message": "?"}),
        ({"elicitation": {}}, "elicitation/create", {"mode": "url", "url": "https://x.test"}),
        ({"elicitation": {"url": {}}}, "elicitation/create", {"message": "?"}),
        ({"elicitation": {}, "roots": True}, "roots/list", {}),
        ({"elicitation": {}}, "sampling/createMessage", {}),
        ({"sampling": {}}, "sampling/createMessage", {"tools": []}),
    ],
    ids=["nothing", "no page", "no form", "no object", "no sampling", "no tools"],
)
def test_a_client_is_not_asked_for_what_it_does_not_offer(
    offered: dict[str, Any], method: str, params: dict[str, Any]
) -> None:
    machine = met(offered=offered)
    said(machine, *client(CALL))
    asked = {"method": method, "params": params}
    unable = "The server needs an input that this client does not offer."
    play(
        machine,
        server(wish(1, fine={"method": "roots/list"} if "roots" in offered else asked, a=asked)),
        refused(1, f"{unable[:-1]}: {method}.", needs=method.partition("/")[0]),
    )


@pytest.mark.parametrize(
    ("offered", "method", "params"),
    [
        ({"elicitation": {}}, "elicitation/create", {"message": "?"}),
        ({"elicitation": {"form": {}, "url": {}}}, "elicitation/create", {"message": "?"}),
        ({"sampling": {"tools": {}}}, "sampling/createMessage", {"tools": []}),
    ],
    ids=["no mode means forms", "both modes", "tools"],
)
def test_a_client_is_asked_for_what_it_offers(
    offered: dict[str, Any], method: str, params: dict[str, Any]
) -> None:
    machine = met(offered=offered)
    said(machine, *client(CALL))
    asked = {"method": method, "params": params}
    play(machine, server(wish(1, a=asked)), to_client({"id": ours(2), **asked}))


@pytest.mark.requirement("mcp.eras-questions")
def test_a_client_that_takes_too_long_to_answer_fails_its_call() -> None:
    machine = met()
    asked = {"method": "roots/list", "params": {}}
    play(
        machine,
        client(CALL),
        to_server(SENT),
        server(wish(1, a=asked, b=asked)),
        to_client({"id": ours(2), **asked}),
        to_client({"id": ours(3), **asked}),
        client(result(ours(2), roots=[])),
    )
    assert machine.expire(1000.0) == []
    assert machine.expire(1299.9) == []
    assert shown(machine.expire(1300.0)) == [
        to_client(notice("notifications/cancelled", requestId=ours(3), reason="It took too long.")),
        refused(1, "The client did not answer what it was asked."),
    ]
    play(machine, client(result(ours(3), roots=[])))
    assert machine.expire(9999.0) == []


def test_each_round_of_questions_has_its_own_time() -> None:
    machine = met()
    asked = {"method": "roots/list", "params": {}}
    said(machine, *client(CALL))
    said(machine, *server(wish(1, a=asked)))
    assert machine.expire(0.0) == []
    said(machine, *client(result(ours(2), roots=[])))
    said(machine, *server(wish(ours(3), a=asked)))
    assert machine.expire(299.0) == []
    assert machine.expire(598.0) == []
    assert machine.expire(599.0)


def test_what_is_said_during_a_call_names_the_call_of_the_client() -> None:
    machine = met()
    for value in (CALL, CALL):
        said(machine, *client(value))

    def about(value: dict[str, Any], during: Any = None) -> list[Any]:
        message = message_from({"jsonrpc": "2.0", **value})
        return [
            getattr(step, "about", "to server") for step in machine.from_server(message, during)
        ]

    log = notice("notifications/message", level="info", data="x")
    assert about(log, ours(2)) == [1]
    assert about(log, "over") == [None]
    assert about(log) == [None]
    questions = wish(ours(2), a={"method": "roots/list"}, b={"method": "roots/list"})
    assert about(questions) == [1, 1]


def test_a_client_that_refuses_to_answer_fails_its_call() -> None:
    asked = {"method": "roots/list", "params": {}}
    play(
        met(),
        client(CALL),
        to_server(SENT),
        server(wish(1, a=asked, b=asked)),
        to_client({"id": ours(2), **asked}),
        to_client({"id": ours(3), **asked}),
        client(error(ours(2), -32601, "no roots")),
        to_client(notice("notifications/cancelled", requestId=ours(3), reason="The call is over.")),
        refused(
            1,
            "The client answered the server with an error, which cannot be passed on.",
            error={"code": -32601, "message": "no roots"},
        ),
        client(result(ours(3), roots=[])),
    )


def test_a_cancelled_call_takes_its_questions_back() -> None:
    asked = {"method": "roots/list", "params": {}}
    cancelled = notice("notifications/cancelled", requestId=1, reason="enough")
    play(
        met(),
        client(CALL),
        to_server(SENT),
        server(wish(1, a=asked)),
        to_client({"id": ours(2), **asked}),
        client(cancelled),
        to_client(notice("notifications/cancelled", requestId=ours(2), reason="The call is over.")),
        client(result(ours(2), roots=[])),
        client(CALL),
        to_server(SENT),
        client(cancelled),
        to_server(cancelled),
        client(notice("notifications/cancelled", requestId="1")),
        to_server(notice("notifications/cancelled", requestId="1")),
    )


def test_a_repeated_call_is_cancelled_under_the_id_that_the_server_knows() -> None:
    play(
        met(),
        client(CALL),
        to_server(SENT),
        server(wish(1)),
        to_server(
            request(
                ours(2),
                "tools/call",
                name="a",
                _meta={"progressToken": 5} | META,
                requestState="st",
            )
        ),
        client(notice("notifications/cancelled", requestId=1, reason="enough")),
        to_server(notice("notifications/cancelled", requestId=ours(2), reason="enough")),
    )


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (
            wish(1, a={"method": "thoughts/read"}),
            "The server wants an input that the client's era does not know.",
        ),
        (
            wish(1, a="?"),
            "The server wants an input that the client's era does not know.",
        ),
        (
            result(1, resultType="task", task={}),
            "The server answered with a type of result that the client's era does not know.",
        ),
    ],
    ids=["unknown input", "no input", "unknown result"],
)
def test_what_a_handshake_client_cannot_understand_is_refused_in_a_sentence(
    answer: dict[str, Any], sentence: str
) -> None:
    play(met(), client(CALL), to_server(SENT), server(answer), refused(1, sentence))


def test_a_server_that_only_wants_more_time_gets_it_but_not_for_ever() -> None:
    machine = met()
    pauses = []
    (first,) = machine.from_client(message_from({"jsonrpc": "2.0", **CALL}))
    message: Any = first.message
    for _ in range(MOST_ROUNDS):
        answer = message_from({"jsonrpc": "2.0", **wish(message.id)})
        (step,) = machine.from_server(answer)
        assert isinstance(step, ToServer)
        pauses.append(step.after)
        message = step.message
    assert pauses[:4] == [0.05, 0.1, 0.2, 0.25]
    play(
        machine,
        server(wish(message.id)),
        refused(1, "The server wanted input too often for one request.", rounds=MOST_ROUNDS),
    )


def test_structured_content_that_is_no_object_is_left_out_with_its_schema() -> None:
    plain = {"name": "a", "inputSchema": {"type": "object"}}
    fine = plain | {"outputSchema": {"type": "object"}}
    play(
        met(),
        client(CALL),
        to_server(SENT),
        server(result(1, content=[], structuredContent=[1])),
        to_client(result(1, content=[])),
        client(request(2, "tools/list")),
        to_server(request(2, "tools/list", _meta=META)),
        server(result(2, tools=[plain | {"outputSchema": {"type": "array"}}, fine], ttlMs=9)),
        to_client(result(2, tools=[plain, fine])),
    )


@pytest.mark.requirement("mcp.eras-results")
def test_what_only_the_stateless_era_says_of_a_result_is_left_out() -> None:
    page = {"resultType": "complete", "ttlMs": 9, "cacheScope": "public"}
    play(
        met(),
        client(request(1, "resources/read", uri="note://a")),
        to_server(request(1, "resources/read", uri="note://a", _meta=META)),
        server(result(1, contents=[], **page, _meta={SERVER: BOX})),
        to_client(result(1, contents=[])),
        client(request(2, "x/own")),
        to_server(request(2, "x/own", _meta=META)),
        server(result(2, **page, _meta={SERVER: BOX, "x": 1})),
        to_client(result(2, ttlMs=9, cacheScope="public", _meta={"x": 1})),
        client(request(3, "x/own")),
        to_server(request(3, "x/own", _meta=META)),
        server({"id": 3, "result": "plain"}),
        to_client({"id": 3, "result": "plain"}),
    )


def test_one_listen_is_kept_for_all_that_the_client_wants_to_hear() -> None:
    first, second = "note://a", "note://b"
    updated = notice("notifications/resources/updated", uri=first, _meta={SUBSCRIPTION: ours(3)})
    play(
        met(),
        client(READY),
        to_server(listen(2, **LISTS)),
        server(agreed(2, **LISTS)),
        client(request(1, "resources/subscribe", uri=first)),
        to_server(listen(3, **LISTS, resourceSubscriptions=[first])),
        client(request(2, "resources/subscribe", uri=second)),
        server(agreed(3, **LISTS, resourceSubscriptions=[first])),
        over(2),
        to_client(result(1)),
        to_server(listen(4, **LISTS, resourceSubscriptions=[first, second])),
        server(updated),
        to_client(notice("notifications/resources/updated", uri=first)),
        server(agreed(4, **LISTS, resourceSubscriptions=[first])),
        over(3),
        refused(2, "The server does not announce changes of this resource."),
        server(updated),
        client(request(3, "resources/unsubscribe", uri=first)),
        to_client(result(3)),
        to_server(listen(5, **LISTS)),
        server(notice("notifications/resources/updated", uri=first, _meta={SUBSCRIPTION: ours(4)})),
        client(request(4, "resources/unsubscribe", uri="note://c")),
        to_client(result(4)),
        client(request(5, "resources/subscribe", uri=5)),
        to_client(error(5, -32602, '"uri" must be a string.')),
    )


@pytest.mark.requirement("mcp.eras-listening")
def test_a_refused_subscription_has_the_reason_that_the_server_gave() -> None:
    reasons = {
        "note://a": {"code": -32001, "message": "Not yours.", "data": {"code": "denied"}},
        "note://b": {"code": "?", "message": "No number."},
        "note://d": {"code": -32002, "message": "Gone."},
    }
    acknowledged = agreed(3, **LISTS)
    acknowledged["params"]["_meta"]["folkmoot/refused"] = reasons
    machine = met()
    said(machine, *client(READY))
    for number, uri in enumerate(("a", "b", "c", "d"), 1):
        said(machine, *client(request(number, "resources/subscribe", uri=f"note://{uri}")))
    play(
        machine,
        server(agreed(2, **LISTS)),
        to_server(
            listen(
                3, **LISTS, resourceSubscriptions=["note://a", "note://b", "note://c", "note://d"]
            )
        ),
        server(acknowledged),
        over(2),
        to_client(error(1, -32001, "Not yours.", data={"code": "denied"})),
        refused(2, "The server does not announce changes of this resource."),
        refused(3, "The server does not announce changes of this resource."),
        to_client(error(4, -32002, "Gone.")),
    )


def late() -> EraBridge:
    """A bridge whose client does not listen yet."""
    states = count()
    return EraBridge(
        one_client=True, listening=False, token=lambda: f"s{n}" if (n := next(states)) else "t"
    )


def test_changes_are_listened_for_once_the_client_listens() -> None:
    machine = met(machine=late())
    play(machine, client(READY))
    assert shown(machine.listen()) == [to_server(listen(2, **LISTS))]
    assert machine.listen() == []
    play(machine, server(agreed(2, **LISTS)))
    assert machine.listen() == []


def test_a_client_that_listens_before_it_is_ready_is_heard_when_it_is() -> None:
    early = late()
    assert early.listen() == []
    play(met(machine=early), client(READY), to_server(listen(2, **LISTS)))
    early = met(machine=late())
    assert early.listen() == []
    play(early, client(READY), to_server(listen(2, **LISTS)))


def test_a_client_that_listens_during_the_opening_is_heard_when_it_is_ready() -> None:
    machine = late()
    said(machine, *client(request(0, "initialize", protocolVersion="2025-11-25")))
    assert machine.listen() == []
    said(machine, *server(error(0, -32601)))
    found = {"supportedVersions": ["2026-07-28"], "capabilities": TOLD}
    said(machine, *server(result(ours(1), **found)))
    assert said(machine, *client(READY))


def test_a_subscription_is_reason_enough_to_listen() -> None:
    uri = "note://a"
    machine = met(machine=late())
    play(
        machine,
        client(READY),
        client(request(1, "resources/subscribe", uri=uri)),
        to_server(listen(2, **LISTS, resourceSubscriptions=[uri])),
        server(agreed(2, **LISTS, resourceSubscriptions=[uri])),
        to_client(result(1)),
    )
    assert machine.listen() == []


def test_a_client_that_listens_again_has_a_listen_that_was_given_up_opened_again() -> None:
    machine = met()
    play(machine, client(READY), to_server(listen(2, **LISTS)), server(error(ours(2), -32601)))
    assert shown(machine.listen()) == [to_server(listen(3, **LISTS))]


def test_a_renewed_listen_takes_the_place_of_the_one_there_was() -> None:
    machine = met(machine=late())
    play(machine, client(READY))
    assert machine.renew() == []
    machine.listen()
    assert machine.renew() == []
    play(machine, server(agreed(2, **LISTS)), to_server(listen(3, **LISTS)))
    play(machine, server(agreed(3, **LISTS)), over(2))
    assert shown(machine.renew()) == [to_server(listen(4, **LISTS))]
    changed = "notifications/tools/list_changed"
    play(
        machine,
        server(notice(changed, _meta={SUBSCRIPTION: ours(3)})),
        to_client({"method": changed, "params": {}}),
        server(agreed(4, **LISTS)),
        over(3),
        server(notice(changed, _meta={SUBSCRIPTION: ours(3)})),
    )


def test_a_listen_for_nothing_is_not_kept() -> None:
    uri = "note://a"
    play(
        met({"resources": {"subscribe": True}, "logging": {}}),
        client(READY),
        client(request(1, "resources/subscribe", uri=uri)),
        to_server(listen(2, resourceSubscriptions=[uri])),
        server(agreed(2, resourceSubscriptions=[uri])),
        to_client(result(1)),
        client(request(2, "resources/unsubscribe", uri=uri)),
        to_client(result(2)),
        over(2),
    )


def test_a_listen_that_ends_is_opened_again_but_not_for_ever() -> None:
    machine = met()
    said(machine, "client says", READY)
    pauses = []
    for number in range(2, 2 + MOST_REOPENED):
        said(machine, "server says", agreed(number, **LISTS))
        ended = notice("notifications/cancelled", requestId=ours(number))
        (step,) = machine.from_server(message_from({"jsonrpc": "2.0", **ended}))
        assert isinstance(step, ToServer)
        pauses.append(step.after)
    assert pauses[:3] == [0.5, 1.0, 2.0]
    assert pauses[-1] == 30.0
    last = 2 + MOST_REOPENED
    play(
        machine,
        server(agreed(last, **LISTS)),
        server(result(ours(last), resultType="complete")),
        client(request(1, "resources/subscribe", uri="note://a")),
        to_server(listen(last + 1, **LISTS, resourceSubscriptions=["note://a"])),
    )


def test_a_server_that_cannot_be_listened_to_refuses_subscriptions() -> None:
    play(
        met(),
        client(READY),
        to_server(listen(2, **LISTS)),
        server(error(ours(2), -32601)),
        client(request(1, "resources/subscribe", uri="note://a")),
        to_server(listen(3, **LISTS, resourceSubscriptions=["note://a"])),
        server(error(ours(3), -32601)),
        refused(1, "The server does not announce changes of this resource."),
    )


def test_an_id_that_is_still_in_use_gets_another_on_the_way_to_the_server() -> None:
    again = request(ours(2), "tools/call", name="a", _meta={"progressToken": 5} | META)
    play(
        met(),
        client(CALL),
        to_server(SENT),
        client(CALL),
        to_server(again),
        server(result(ours(2), content=[2])),
        to_client(result(1, content=[2])),
        server(result(1, content=[1])),
        to_client(result(1, content=[1])),
    )


def test_a_client_that_speaks_the_stateless_era_in_between_is_passed_on() -> None:
    plain = request(1, "tools/list", _meta={VERSION: "2026-07-28", CAPABILITIES: {}})
    answer = result(1, resultType="complete", tools=[])
    play(met(), client(plain), to_server(plain), server(answer), to_client(answer))


def test_the_number_of_open_requests_is_bounded() -> None:
    machine = met()
    for number in range(MOST_OPEN):
        assert said(machine, *client(request(number, "x")))
    play(
        machine,
        client(request("n", "x")),
        to_client(
            error("n", -32000, "Too many requests are open.", data={"code": "too_many_in_flight"})
        ),
    )
