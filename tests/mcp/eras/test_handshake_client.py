"""A client of the handshake era in front of a server of the stateless one."""

from __future__ import annotations

from typing import Any

import pytest

from folkmoot.mcp.eras import EraBridge, ToServer
from folkmoot.mcp.eras.rounds import MOST_ROUNDS
from folkmoot.mcp.eras.subscriptions import MOST_REOPENED
from folkmoot.mcp.wire import MOST_OPEN
from tests.mcp.eras.script import (
    ADA,
    BOX,
    CAPABILITIES,
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
from tests.mcp.eras.script import META as PLAIN

pytestmark = pytest.mark.requirement("mcp.eras-bridged")

META: dict[str, Any] = PLAIN | {LEVEL: "info"}
CALL = request(1, "tools/call", name="a", _meta={"progressToken": 5})
SENT = request(1, "tools/call", name="a", _meta={"progressToken": 5} | META)
LISTS = {"toolsListChanged": True, "resourcesListChanged": True}
FAILED = "The client answered the server with an error, which cannot be passed on."
UNANNOUNCED = "The server does not announce changes of this resource."
CALLED = (client(CALL), to_server(SENT))
REPEATED = {"name": "a", "_meta": {"progressToken": 5} | META}
ROOTS = {"method": "roots/list", "params": {}}
READY = notice("notifications/initialized")


def cancelled(message_id: int | str, reason: str = "The call is over.") -> Line:
    """A question of ours is taken back."""
    return to_client(notice("notifications/cancelled", requestId=message_id, reason=reason))


def asked(message: dict[str, Any]) -> tuple[Line, Line]:
    """The client asks something, and the server is sent it with the meta of its era."""
    params = message.get("params", {}) | {"_meta": META}
    return client(message), to_server(message | {"params": params})


def granted(message: dict[str, Any]) -> tuple[Line, Line]:
    """The client asks something, and has its answer from the bridge at once."""
    return client(message), to_client(result(message["id"]))


HELLO = request(0, "initialize", protocolVersion="2025-11-25", capabilities=OFFERED, clientInfo=ADA)
FOUND = result(ours(1), supportedVersions=["2026-07-28"], capabilities=TOLD, _meta={SERVER: BOX})


def met(
    capabilities: dict[str, Any] | None = None,
    *,
    offered: dict[str, Any] = OFFERED,
    listening: bool = True,
) -> EraBridge:
    """A bridge over which hands were shaken; the next id it makes is the second."""
    machine = bridge(listening=listening)
    found = FOUND["result"] | {"capabilities": capabilities or TOLD}
    said(machine, *client(HELLO | {"params": HELLO["params"] | {"capabilities": offered}}))
    said(machine, *server(error(0, -32601)))
    said(machine, *server(result(ours(1), **found)))
    return machine


def after_call(machine: EraBridge) -> EraBridge:
    """The same bridge, with a call of the client's open."""
    said(machine, *client(CALL))
    return machine


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
    told = {"notifications": wanted, "_meta": {SUBSCRIPTION: ours(number)}}
    return notice("notifications/subscriptions/acknowledged", **told)


def over(number: int) -> Line:
    """A listen of ours is wanted no more."""
    reason = "The subscription has ended."
    return to_server(notice("notifications/cancelled", requestId=ours(number), reason=reason))


def test_a_request_gets_the_meta_of_the_era_and_keeps_its_own():
    play(
        met(),
        *CALLED,
        *asked(request("1", "custom/thing")),
        *passed({"id": 3, "method": "odd", "params": [1]}),
        server(result(1, resultType="complete", content=[], future=1)),
        to_client(result(1, content=[], future=1)),
        *returned(error("1", -32601)),
    )


def test_answers_and_notices_that_nobody_changes_stay_the_same_objects():
    machine = met()
    said(machine, "client says", CALL)
    for value in (
        notice("notifications/progress", progressToken=5, progress=1),
        notice("notifications/message", level="info", data="x"),
        result(1, content=[], _meta={"x": 1}),
    ):
        told = message(value)
        (step,) = machine.from_server(told)
        assert step.message is told


def test_what_the_stateless_era_lacks_is_answered_or_dropped_here():
    levels = "debug, info, notice, warning, error, critical, alert, emergency"
    play(
        met(),
        *granted(request(1, "ping")),
        client(notice("notifications/roots/list_changed")),
        client(notice("notifications/progress", progressToken=1, progress=1)),
        *granted(request(2, "logging/setLevel", level="error")),
        client(request(3, "x")),
        to_server(request(3, "x", _meta=META | {LEVEL: "error"})),
        client(request(4, "logging/setLevel", level=["loud"])),
        to_client(error(4, -32602, f'"level" must be one of {levels}.')),
        client(request(5, "tasks/get", taskId="t")),
        refused(5, "Tasks cannot be carried from one era to the other."),
        client(request(6, "tools/call", name="t", task={})),
        refused(6, "Tasks cannot be carried from one era to the other."),
    )


def test_a_server_without_logging_is_asked_for_no_log_messages():
    meta = {name: value for name, value in META.items() if name != LEVEL}
    play(
        met({"tools": {}}),
        client(READY),
        client(request(1, "x")),
        to_server(request(1, "x", _meta=meta)),
    )


def test_questions_of_the_server_become_requests_and_their_answers_a_repeated_one():
    form = {"message": "?", "requestedSchema": {}}
    page = {"mode": "url", "message": "?", "url": "https://x.test"}
    questions: dict[str, Any] = {
        "who": {"method": "elicitation/create", "params": form},
        "go": {"method": "elicitation/create", "params": page},
        "where": {"method": "roots/list"},
    }
    given: dict[str, Any] = {
        "who": {"action": "decline"},
        "go": {"action": "accept"},
        "where": {"roots": []},
    }
    first = request(ours(5), "tools/call", **REPEATED, inputResponses=given, requestState="st")
    again = {"again": {"roots": []}}
    play(
        met(),
        *CALLED,
        server(wish(1, **questions)),
        to_client(request(ours(2), "elicitation/create", **form)),
        to_client(request(ours(3), "elicitation/create", elicitationId=ours(3), **page)),
        to_client({"id": ours(4), **ROOTS}),
        client(result(ours(3), **given["go"])),
        client(result(ours(2), **given["who"])),
        client(result(ours(4), **given["where"])),
        to_server(first),
        server(wish(ours(5), state=None, again={"method": "roots/list"})),
        to_client({"id": ours(6), **ROOTS}),
        client(result(ours(6), roots=[])),
        to_server(request(ours(7), "tools/call", **REPEATED, inputResponses=again)),
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
def test_a_client_is_not_asked_for_what_it_does_not_offer(offered, method, params):
    asked = {"method": method, "params": params}
    fine = {"method": "roots/list"} if "roots" in offered else asked
    unable = f"The server needs an input that this client does not offer: {method}."
    play(
        after_call(met(offered=offered)),
        server(wish(1, fine=fine, a=asked)),
        refused(1, unable, needs=method.partition("/")[0]),
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
def test_a_client_is_asked_for_what_it_offers(offered, method, params):
    asked = {"method": method, "params": params}
    machine = after_call(met(offered=offered))
    play(machine, server(wish(1, a=asked)), to_client({"id": ours(2), **asked}))


@pytest.mark.requirement("mcp.eras-questions")
def test_a_client_that_takes_too_long_to_answer_fails_its_call():
    machine = met()
    play(
        machine,
        *CALLED,
        server(wish(1, a=ROOTS, b=ROOTS)),
        to_client({"id": ours(2), **ROOTS}),
        to_client({"id": ours(3), **ROOTS}),
        client(result(ours(2), roots=[])),
    )
    assert machine.expire(1000.0) == machine.expire(1299.9) == []
    assert shown(machine.expire(1300.0)) == [
        cancelled(ours(3), "It took too long."),
        refused(1, "The client did not answer what it was asked."),
    ]
    play(machine, client(result(ours(3), roots=[])))
    assert machine.expire(9999.0) == []


def test_each_round_of_questions_has_its_own_time():
    machine = after_call(met())
    said(machine, *server(wish(1, a=ROOTS)))
    assert machine.expire(0.0) == []
    said(machine, *client(result(ours(2), roots=[])))
    said(machine, *server(wish(ours(3), a=ROOTS)))
    assert machine.expire(299.0) == machine.expire(598.0) == []
    assert machine.expire(599.0)


def test_what_is_said_during_a_call_names_the_call_of_the_client():
    machine = after_call(after_call(met()))

    def about(value: dict[str, Any], during: Any = None) -> list[Any]:
        steps = machine.from_server(message(value), during)
        return [getattr(step, "about", "to server") for step in steps]

    log = notice("notifications/message", level="info", data="x")
    assert about(log, ours(2)) == [1]
    assert about(log, "over") == about(log) == [None]
    assert about(wish(ours(2), a={"method": "roots/list"}, b={"method": "roots/list"})) == [1, 1]


def test_a_client_that_refuses_to_answer_fails_its_call():
    play(
        met(),
        *CALLED,
        server(wish(1, a=ROOTS, b=ROOTS)),
        to_client({"id": ours(2), **ROOTS}),
        to_client({"id": ours(3), **ROOTS}),
        client(error(ours(2), -32601, "no roots")),
        cancelled(ours(3)),
        refused(1, FAILED, error={"code": -32601, "message": "no roots"}),
        client(result(ours(3), roots=[])),
    )


def test_a_cancelled_call_takes_its_questions_back():
    enough = notice("notifications/cancelled", requestId=1, reason="enough")
    play(
        met(),
        *CALLED,
        server(wish(1, a=ROOTS)),
        to_client({"id": ours(2), **ROOTS}),
        client(enough),
        cancelled(ours(2)),
        client(result(ours(2), roots=[])),
        *CALLED,
        *passed(enough),
        *passed(notice("notifications/cancelled", requestId="1")),
    )


def test_a_repeated_call_is_cancelled_under_the_id_that_the_server_knows():
    play(
        met(),
        *CALLED,
        server(wish(1)),
        to_server(request(ours(2), "tools/call", **REPEATED, requestState="st")),
        client(notice("notifications/cancelled", requestId=1, reason="enough")),
        to_server(notice("notifications/cancelled", requestId=ours(2), reason="enough")),
    )


UNKNOWN_INPUT = "The server wants an input that the client's era does not know."


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (wish(1, a={"method": "thoughts/read"}), UNKNOWN_INPUT),
        (wish(1, a="?"), UNKNOWN_INPUT),
        (
            result(1, resultType="task", task={}),
            "The server answered with a type of result that the client's era does not know.",
        ),
    ],
    ids=["unknown input", "no input", "unknown result"],
)
def test_what_a_handshake_client_cannot_understand_is_refused_in_a_sentence(answer, sentence):
    play(met(), *CALLED, server(answer), refused(1, sentence))


def test_a_server_that_only_wants_more_time_gets_it_but_not_for_ever():
    machine = met()
    (step,) = machine.from_client(message(CALL))
    pauses = []
    for _ in range(MOST_ROUNDS):
        (step,) = machine.from_server(message(wish(step.message.id)))  # type: ignore[union-attr, arg-type]
        assert isinstance(step, ToServer)
        pauses.append(step.after)
    assert pauses[:4] == [0.05, 0.1, 0.2, 0.25]
    play(
        machine,
        server(wish(step.message.id)),  # type: ignore[union-attr, arg-type]
        refused(1, "The server wanted input too often for one request.", rounds=MOST_ROUNDS),
    )


def test_structured_content_that_is_no_object_is_left_out_with_its_schema():
    plain = {"name": "a", "inputSchema": {"type": "object"}}
    fine = plain | {"outputSchema": {"type": "object"}}
    play(
        met(),
        *CALLED,
        server(result(1, content=[], structuredContent=[1])),
        to_client(result(1, content=[])),
        *asked(request(2, "tools/list")),
        server(result(2, tools=[plain | {"outputSchema": {"type": "array"}}, fine], ttlMs=9)),
        to_client(result(2, tools=[plain, fine])),
    )


@pytest.mark.requirement("mcp.eras-results")
def test_what_only_the_stateless_era_says_of_a_result_is_left_out():
    page = {"resultType": "complete", "ttlMs": 9, "cacheScope": "public"}
    play(
        met(),
        *asked(request(1, "resources/read", uri="note://a")),
        server(result(1, contents=[], **page, _meta={SERVER: BOX})),
        to_client(result(1, contents=[])),
        *asked(request(2, "x/own")),
        server(result(2, **page, _meta={SERVER: BOX, "x": 1})),
        to_client(result(2, ttlMs=9, cacheScope="public", _meta={"x": 1})),
        *asked(request(3, "x/own")),
        *returned({"id": 3, "result": "plain"}),
    )


def test_one_listen_is_kept_for_all_that_the_client_wants_to_hear():
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
        refused(2, UNANNOUNCED),
        server(updated),
        *granted(request(3, "resources/unsubscribe", uri=first)),
        to_server(listen(5, **LISTS)),
        server(notice("notifications/resources/updated", uri=first, _meta={SUBSCRIPTION: ours(4)})),
        *granted(request(4, "resources/unsubscribe", uri="note://c")),
        client(request(5, "resources/subscribe", uri=5)),
        to_client(error(5, -32602, '"uri" must be a string.')),
    )


@pytest.mark.requirement("mcp.eras-listening")
def test_a_refused_subscription_has_the_reason_that_the_server_gave():
    uris = [f"note://{name}" for name in "abcd"]
    reasons = {
        "note://a": {"code": -32001, "message": "Not yours.", "data": {"code": "denied"}},
        "note://b": {"code": "?", "message": "No number."},
        "note://d": {"code": -32002, "message": "Gone."},
    }
    acknowledged = agreed(3, **LISTS)
    acknowledged["params"]["_meta"]["folkmoot/refused"] = reasons
    machine = met()
    said(machine, *client(READY))
    for number, uri in enumerate(uris, 1):
        said(machine, *client(request(number, "resources/subscribe", uri=uri)))
    play(
        machine,
        server(agreed(2, **LISTS)),
        to_server(listen(3, **LISTS, resourceSubscriptions=uris)),
        server(acknowledged),
        over(2),
        to_client(error(1, -32001, "Not yours.", data={"code": "denied"})),
        refused(2, UNANNOUNCED),
        refused(3, UNANNOUNCED),
        to_client(error(4, -32002, "Gone.")),
    )


def test_changes_are_listened_for_once_the_client_listens():
    machine = met(listening=False)
    play(machine, client(READY))
    assert shown(machine.listen()) == [to_server(listen(2, **LISTS))]
    assert machine.listen() == []
    play(machine, server(agreed(2, **LISTS)))
    assert machine.listen() == []


def test_a_client_that_listens_before_it_is_ready_is_heard_when_it_is():
    for steps in range(4):
        early = bridge(listening=False)
        opening = (client(HELLO), server(error(0, -32601)), server(FOUND))
        for line in opening[:steps]:
            said(early, *line)
        assert early.listen() == []
        for line in opening[steps:]:
            said(early, *line)
        play(early, client(READY), to_server(listen(2, **LISTS)))


def test_a_subscription_is_reason_enough_to_listen():
    uri = "note://a"
    machine = met(listening=False)
    play(
        machine,
        client(READY),
        client(request(1, "resources/subscribe", uri=uri)),
        to_server(listen(2, **LISTS, resourceSubscriptions=[uri])),
        server(agreed(2, **LISTS, resourceSubscriptions=[uri])),
        to_client(result(1)),
    )
    assert machine.listen() == []


def test_a_client_that_listens_again_has_a_listen_that_was_given_up_opened_again():
    machine = met()
    play(machine, client(READY), to_server(listen(2, **LISTS)), server(error(ours(2), -32601)))
    assert shown(machine.listen()) == [to_server(listen(3, **LISTS))]


def test_a_renewed_listen_takes_the_place_of_the_one_there_was():
    machine = met(listening=False)
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


def test_a_listen_for_nothing_is_not_kept():
    uri = "note://a"
    play(
        met({"resources": {"subscribe": True}, "logging": {}}),
        client(READY),
        client(request(1, "resources/subscribe", uri=uri)),
        to_server(listen(2, resourceSubscriptions=[uri])),
        server(agreed(2, resourceSubscriptions=[uri])),
        to_client(result(1)),
        *granted(request(2, "resources/unsubscribe", uri=uri)),
        over(2),
    )


def test_a_listen_that_ends_is_opened_again_but_not_for_ever():
    machine = met()
    said(machine, "client says", READY)
    pauses = []
    for number in range(2, 2 + MOST_REOPENED):
        said(machine, "server says", agreed(number, **LISTS))
        ended = notice("notifications/cancelled", requestId=ours(number))
        (step,) = machine.from_server(message(ended))
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


def test_a_server_that_cannot_be_listened_to_refuses_subscriptions():
    play(
        met(),
        client(READY),
        to_server(listen(2, **LISTS)),
        server(error(ours(2), -32601)),
        client(request(1, "resources/subscribe", uri="note://a")),
        to_server(listen(3, **LISTS, resourceSubscriptions=["note://a"])),
        server(error(ours(3), -32601)),
        refused(1, UNANNOUNCED),
    )


def test_an_id_that_is_still_in_use_gets_another_on_the_way_to_the_server():
    again = request(ours(2), "tools/call", **REPEATED)
    play(
        met(),
        *CALLED,
        client(CALL),
        to_server(again),
        server(result(ours(2), content=[2])),
        to_client(result(1, content=[2])),
        *returned(result(1, content=[1])),
    )


def test_a_client_that_speaks_the_stateless_era_in_between_is_passed_on():
    plain = request(1, "tools/list", _meta={VERSION: "2026-07-28", CAPABILITIES: {}})
    answer = result(1, resultType="complete", tools=[])
    play(met(), *passed(plain), *returned(answer))


def test_the_number_of_open_requests_is_bounded():
    machine = met()
    for number in range(MOST_OPEN):
        assert said(machine, *client(request(number, "x")))
    play(machine, client(request("n", "x")), too_many("n"))
