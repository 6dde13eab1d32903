"""Clients of the stateless era in front of a server of the handshake one."""

from __future__ import annotations

from typing import Any

import pytest

from folkmoot.mcp.eras import EraBridge, ToClient
from folkmoot.mcp.eras.calls import MOST_ASKED, MOST_PARKED
from folkmoot.mcp.eras.subscriptions import MOST_LISTENS
from folkmoot.mcp.wire import MOST_OPEN
from tests.mcp.eras.script import (
    BOX,
    CAPABILITIES,
    LEVEL,
    META,
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

pytestmark = pytest.mark.requirement("mcp.eras-bridged")

DONE: dict[str, Any] = {"resultType": "complete", "_meta": {SERVER: BOX}}
LATE = "The client did not come back with an answer."
UNABLE = "The client does not offer what the server asks for."
UNTIED = "The server's request does not belong to exactly one open call."
ASKED = {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": {}}}
GIVEN = {"action": "accept", "content": {}}


def met(*, capabilities: dict[str, Any] | None = None, **options: bool) -> EraBridge:
    """A bridge whose server was initialised; the next id it makes is the second."""
    machine = bridge(**options)
    told = {
        "protocolVersion": "2025-11-25",
        "capabilities": TOLD if capabilities is None else capabilities,
        "serverInfo": BOX,
    }
    said(machine, "client says", request(0, "server/discover", _meta=META))
    said(machine, "server says", error(0, -32601))
    said(machine, "server says", result(ours(1), **told))
    return machine


def call(message_id: int | str, meta: dict[str, Any] | None = None, **params: Any) -> Line:
    """A client calls a tool."""
    return client(request(message_id, "tools/call", name="a", _meta=META | (meta or {}), **params))


def called(message_id: int | str, **params: Any) -> Line:
    """The server is called."""
    return to_server(request(message_id, "tools/call", name="a", **params))


def begun(message_id: int | str, meta: dict[str, Any] | None = None) -> tuple[Line, Line]:
    """A client calls a tool, and the server is called."""
    return call(message_id, meta), called(message_id)


def asks(message_id: int | str, asked: dict[str, Any] = ASKED) -> Line:
    """The server asks something."""
    return server({"id": message_id, **asked})


def wanted(message_id: int | str, state: str, *asked: dict[str, Any]) -> Line:
    """A call is answered with questions."""
    questions = {str(place): question for place, question in enumerate(asked or (ASKED,), 1)}
    return to_client(
        result(message_id, resultType="input_required", inputRequests=questions, requestState=state)
    )


def untold(message_id: int | str, sentence: str) -> Line:
    """The server is told that its question is not answered."""
    return to_server(error(message_id, -32000, sentence, data={"code": "era_not_bridged"}))


def done(message_id: int | str) -> tuple[Line, Line]:
    """A call is answered for good, under the same id."""
    return server(result(message_id, content=[])), to_client(result(message_id, content=[], **DONE))


def unknown_state(message_id: int | str) -> Line:
    """A client is told that its state is none."""
    sentence = "This requestState names no call that waits for input."
    return to_client(error(message_id, -32602, sentence))


# A call that waits for the answer to a question.
PARKED = (*begun(1), asks("q"), wanted(1, "s1"))


def test_a_request_loses_the_meta_of_the_era_and_keeps_its_own():
    play(
        met(),
        call(1, {"progressToken": "p", "traceparent": "00-1"}),
        called(1, _meta={"progressToken": "p", "traceparent": "00-1"}),
        *passed({"id": 2, "method": "odd", "params": [1]}),
        server(result(1, content=[], _meta={"x": 1}, future=2)),
        to_client(result(1, content=[], **DONE | {"_meta": {SERVER: BOX, "x": 1}}, future=2)),
        *returned({"id": 2, "result": 7}),
        server(result(2)),
    )


def test_errors_and_notices_that_nobody_changes_stay_the_same_objects():
    machine = met()
    said(machine, *call(1, {"progressToken": 5}))
    for value in (
        notice("notifications/progress", progressToken=5, progress=1),
        notice("notifications/progress", progress=1),
        notice("notifications/x/custom", a=1),
        error(1, -32050),
    ):
        told = message(value)
        (step,) = machine.from_server(told)
        assert step.message is told


def test_what_the_handshake_era_has_beyond_the_stateless_is_answered_or_dropped_here():
    def unsupported(message_id: int, version: str) -> Line:
        data = {"supported": ["2026-07-28"], "requested": version}
        return to_client(error(message_id, -32022, "Unsupported protocol version", data=data))

    play(
        met(),
        server(request(1, "ping")),
        to_server(result(1)),
        server(request(2, "tasks/get", taskId="t")),
        untold(2, "A client of the stateless era cannot be asked this."),
        server(notice("notifications/tools/list_changed")),
        server(notice("notifications/elicitation/complete", elicitationId="e")),
        server(notice("notifications/tasks/status", taskId="t")),
        server(notice("notifications/message", level="error", data="x")),
        client(result(9, x=1)),
        client(request(3, "initialize", protocolVersion="2025-11-25")),
        unsupported(3, "2025-11-25"),
        client(request(4, "tasks/get", taskId="t", _meta=META)),
        refused(4, "Tasks cannot be carried from one era to the other."),
        client(request(5, "tools/list", _meta=META | {VERSION: "2031-01-01"})),
        unsupported(5, "2031-01-01"),
    )


def test_a_question_answers_the_call_and_the_repeated_call_answers_the_question():
    play(
        met(),
        call(1, {"progressToken": 1}),
        called(1, _meta={"progressToken": 1}),
        asks("q"),
        wanted(1, "s1"),
        server(notice("notifications/progress", progressToken=1, progress=1)),
        call(2, {"progressToken": 2}, requestState="s1", inputResponses={"1": GIVEN}),
        to_server(result("q", **GIVEN)),
        server(notice("notifications/progress", progressToken=1, progress=2)),
        to_client(notice("notifications/progress", progressToken=2, progress=2)),
        server(result(1, content=[])),
        to_client(result(2, content=[], **DONE)),
        call(3, requestState="s1", inputResponses={"1": GIVEN}),
        unknown_state(3),
    )


def test_questions_that_come_meanwhile_or_stay_open_are_asked_in_the_next_round():
    roots = {"method": "roots/list"}
    play(
        met(),
        *PARKED,
        asks("r", roots),
        call(2, requestState="s1"),
        wanted(2, "s2", ASKED, roots),
        call(3, requestState="s2", inputResponses={"1": GIVEN, "2": "?"}),
        to_server(result("q", **GIVEN)),
        wanted(3, "s3", roots),
        server(notice("notifications/cancelled", requestId="r")),
        call(4, requestState="s3", inputResponses={"1": {"roots": []}}),
        client(notice("notifications/cancelled", requestId=4, reason="enough")),
        to_server(notice("notifications/cancelled", requestId=1, reason="enough")),
    )


def test_a_server_that_did_not_wait_for_the_answer_is_heard_when_the_client_comes_back():
    play(
        met(),
        *PARKED,
        asks("r"),
        server(error(1, -32050)),
        call(2, requestState="s1", inputResponses={"1": GIVEN}),
        to_server(result("q", **GIVEN)),
        untold("r", LATE),
        to_client(error(2, -32050)),
    )


def test_a_state_is_no_use_for_another_method():
    prompt = request(2, "prompts/get", name="a", requestState="s1", _meta=META)
    play(
        met(),
        *PARKED,
        client(prompt),
        unknown_state(2),
        call(3, requestState=["s1"]),
        unknown_state(3),
    )


def test_a_question_among_calls_of_several_clients_is_put_to_none_of_them():
    play(
        met(one_client=False),
        asks("p"),
        untold("p", UNTIED),
        *begun(1),
        *begun(2),
        asks("q"),
        untold("q", UNTIED),
        server(notice("notifications/message", level="error", data="x")),
        *done(1),
        asks("r"),
        wanted(2, "s1"),
    )


def test_a_question_that_names_its_call_is_put_to_the_client_of_that_call():
    machine = met(one_client=False)

    def during(about: int | str, question: str) -> list[Line]:
        return shown(machine.from_server(message({"id": question, **ASKED}), about))

    play(machine, *begun(1), *begun(2), *begun(3, {CAPABILITIES: {}}))
    assert during(1, "q") == [wanted(1, "s1")]
    assert during("over", "r") == [untold("r", UNTIED)]
    assert during(3, "s") == [untold("s", UNABLE)]
    play(
        machine,
        call(4, requestState="s1", inputResponses={"1": GIVEN}),
        to_server(result("q", **GIVEN)),
        server(result(1, content=[])),
        to_client(result(4, content=[], **DONE)),
        *done(2),
    )


def test_a_log_message_that_names_its_call_is_told_in_the_stream_of_that_call():
    machine = met(one_client=False)
    told = notice("notifications/message", level="error", data="x")

    def heard(during: int | str | None = None) -> list[Any]:
        return [getattr(step, "about", "-") for step in machine.from_server(message(told), during)]

    said(machine, *call(1, {LEVEL: "error"}))
    said(machine, *call(2, {LEVEL: "emergency"}))
    assert heard(1) == [1]
    assert heard(2) == heard("over") == heard() == []
    said(machine, *server(result(2, content=[])))
    assert heard() == [1]
    said(machine, *call(1, {LEVEL: "info"}))
    assert heard(ours(3)) == [1]


def test_progress_names_the_call_that_its_client_waits_for():
    machine = met(one_client=False)
    said(machine, *call(1, {"progressToken": "p"}))
    said(machine, *call(2, {"progressToken": "r"}))
    told = notice("notifications/progress", progressToken="r", progress=1)
    (step,) = machine.from_server(message(told))
    assert isinstance(step, ToClient)
    assert step.about == 2


def test_a_question_among_calls_of_one_client_is_put_to_one_that_can_answer():
    other = begun(2, {CAPABILITIES: {}})
    play(met(), *begun(1), *other, asks("q"), wanted(1, "s1"), *done(2))


def test_a_client_is_not_asked_what_it_does_not_offer():
    page = {"method": "elicitation/create", "params": {"mode": "url", "url": "x", "message": "?"}}
    play(
        met(),
        *begun(1, {CAPABILITIES: {"elicitation": {}}}),
        asks("q", page),
        untold("q", UNABLE),
        asks("r", {"method": "roots/list"}),
        untold("r", UNABLE),
        asks("s"),
        wanted(1, "s1"),
    )


def test_a_question_outside_of_any_call_is_answered_by_the_next_one():
    roots = {"method": "roots/list"}
    play(
        met(),
        asks("q", roots),
        client(request(1, "tools/list", _meta=META)),
        to_server(request(1, "tools/list") | {"params": {}}),
        *begun(2, {CAPABILITIES: {}}),
        call(3),
        wanted(3, "s1", roots),
        call(4, requestState="s1", inputResponses={"1": {"roots": []}}),
        to_server(result("q", roots=[])),
        called(4),
        *done(4),
    )


def given_up(message_id: int) -> Line:
    """The server is told that nobody waits for its answer."""
    reason = "The client did not come back."
    return to_server(notice("notifications/cancelled", requestId=message_id, reason=reason))


def test_a_client_that_does_not_come_back_is_given_up():
    machine = met()
    play(machine, *PARKED, asks("r"))
    assert machine.expire(0.0) == machine.expire(299.9) == []
    late = [untold("q", LATE), untold("r", LATE), given_up(1)]
    assert shown(machine.expire(300.0)) == late
    play(
        machine,
        server(result(1, content=[])),
        call(2, requestState="s1", inputResponses={"1": GIVEN}),
        unknown_state(2),
        asks("x", {"method": "roots/list"}),
    )
    assert machine.expire(400.0) == machine.expire(699.9) == []
    assert shown(machine.expire(700.0)) == [untold("x", LATE)]


def test_of_too_many_calls_that_wait_the_oldest_is_given_up():
    machine = met()
    for number in range(MOST_PARKED):
        said(machine, *call(number))
        play(machine, asks(f"q{number}"), wanted(number, f"s{number + 1}"))
    play(
        machine,
        *begun("n"),
        asks("q"),
        wanted("n", f"s{MOST_PARKED + 1}"),
        untold("q0", LATE),
        given_up(0),
    )


def test_an_id_that_the_server_still_knows_gets_another_on_the_way_to_it():
    play(
        met(),
        *PARKED,
        call(1, {"progressToken": 7}),
        called(ours(2), _meta={"progressToken": 7}),
        client(notice("notifications/cancelled", requestId=1)),
        to_server(notice("notifications/cancelled", requestId=ours(2))),
        call(1, requestState="s1", inputResponses={"1": GIVEN}),
        to_server(result("q", **GIVEN)),
        *done(1),
    )


def listen(message_id: int, *uris: str, **lists: bool) -> Line:
    filters: dict[str, Any] = {"resourceSubscriptions": list(uris), **lists}
    return client(request(message_id, "subscriptions/listen", notifications=filters, _meta=META))


def agreed(message_id: int, refused: dict[str, Any] | None = None, **filters: Any) -> Line:
    """A listen is acknowledged."""
    meta = {SUBSCRIPTION: message_id} | ({"folkmoot/refused": refused} if refused else {})
    told = {"notifications": filters, "_meta": meta}
    return to_client(notice("notifications/subscriptions/acknowledged", **told))


def test_listens_for_the_same_resource_share_a_subscription():
    uri = "note://a"
    play(
        met(),
        listen(1, uri),
        to_server(request(ours(2), "resources/subscribe", uri=uri)),
        listen(2, uri),
        server(result(ours(2))),
        agreed(1, resourceSubscriptions=[uri]),
        agreed(2, resourceSubscriptions=[uri]),
        client(notice("notifications/cancelled", requestId=1)),
        client(notice("notifications/cancelled", requestId=2)),
        to_server(request(ours(3), "resources/unsubscribe", uri=uri)),
    )


def test_each_listen_hears_what_it_asked_for_and_the_server_agreed_to():
    a, b = "note://a", "note://b"

    def heard(message_id: int, method: str, **params: Any) -> Line:
        return to_client(notice(method, **params, _meta={SUBSCRIPTION: message_id}))

    changed, updated = "notifications/tools/list_changed", "notifications/resources/updated"
    unknown = {b: {"code": -32002, "message": "no"}}
    play(
        met(),
        listen(1, a, b, toolsListChanged=True, promptsListChanged=True),
        to_server(request(ours(2), "resources/subscribe", uri=a)),
        to_server(request(ours(3), "resources/subscribe", uri=b)),
        server(notice(changed)),
        server(result(ours(2))),
        listen(2, a),
        agreed(2, resourceSubscriptions=[a]),
        server(error(ours(3), -32002)),
        agreed(1, unknown, toolsListChanged=True, resourceSubscriptions=[a]),
        server(notice(changed)),
        heard(1, changed),
        server(notice(updated, uri=a + "/part")),
        heard(1, updated, uri=a + "/part"),
        heard(2, updated, uri=a + "/part"),
        server(notice(updated, uri=b)),
        client(notice("notifications/cancelled", requestId=1)),
        client(notice("notifications/cancelled", requestId=2)),
        to_server(request(ours(4), "resources/unsubscribe", uri=a)),
        server(result(ours(4))),
        server(notice(updated, uri=a)),
        client(notice("notifications/cancelled", requestId=[2])),
    )


def test_a_server_that_tells_nothing_is_not_subscribed_to():
    play(
        met(capabilities={"tools": {}}),
        listen(1, "note://a", toolsListChanged=True),
        agreed(1),
        client(request(2, "subscriptions/listen", _meta=META)),
        to_client(error(2, -32602, '"notifications" must be an object.')),
    )


def test_the_number_of_listens_is_bounded():
    machine = met()
    for number in range(MOST_LISTENS):
        said(machine, *listen(number))
    play(machine, listen(MOST_LISTENS), too_many(MOST_LISTENS, "Too many subscriptions."))


def test_log_messages_pass_while_a_request_that_wants_them_is_open():
    def logged(level: str) -> dict[str, Any]:
        return notice("notifications/message", level=level, data="x")

    play(
        met(),
        call(1, {LEVEL: "error"}),
        to_server(request(ours(2), "logging/setLevel", level="error")),
        called(1),
        server(result(ours(2))),
        server(logged("info")),
        *returned(logged("alert")),
        call(2, {LEVEL: "info"}),
        to_server(request(ours(3), "logging/setLevel", level="info")),
        called(2),
        *returned(logged("info")),
        *begun(3, {LEVEL: "warning"}),
        *done(2),
        server(logged("info")),
    )


def test_the_number_of_open_requests_is_bounded():
    machine = met()
    for number in range(MOST_OPEN):
        assert said(machine, *client(request(number, "x", _meta=META)))
    play(machine, client(request("n", "x", _meta=META)), too_many("n"))


def test_the_number_of_questions_that_wait_is_bounded():
    early, during = met(), met()
    play(during, *PARKED)
    for machine in (early, during):
        for number in range(MOST_ASKED):
            play(machine, asks(number))
        play(machine, asks("n"), untold("n", LATE))


@pytest.mark.requirement("gateway.tasks")
def test_whoever_speaks_of_tasks_as_the_server_does_is_understood():
    able = META | {CAPABILITIES: {"elicitation": {}}}
    machine = met(one_client=False, capabilities=TOLD | {"tasks": {}}, native_tasks=True)
    task = {"taskId": "t", "status": "working"}
    play(
        machine,
        client(request(1, "tools/call", name="x", task={"ttl": 1}, _meta=META)),
        to_server(request(1, "tools/call", name="x", task={"ttl": 1})),
        server(result(1, task=task)),
        to_client(result(1, task=task, **DONE)),
        client(request(2, "tasks/get", taskId="t", _meta=META)),
        to_server(request(2, "tasks/get", taskId="t")),
        server(result(2, **task)),
        to_client(result(2, **task, **DONE)),
        *returned(notice("notifications/tasks/status", **task)),
        client(request(3, "tasks/result", taskId="t", _meta=able)),
        to_server(request(3, "tasks/result", taskId="t")),
    )
    question = message({"id": "q", **ASKED})
    assert shown(machine.from_server(question, about=3)) == [wanted(3, "s1")]
    resumed = {"requestState": "s1", "inputResponses": {"1": GIVEN}}
    play(
        machine,
        client(request(4, "tasks/result", taskId="t", **resumed, _meta=able)),
        to_server(result("q", **GIVEN)),
        server(result(3, content=[])),
        to_client(result(4, content=[], **DONE)),
    )
