"""Tasks of backends at `/mcp`: each is its maker's, in the maker's era."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from folkmoot.gateway import task_calls
from folkmoot.gateway import tasks as gateway_tasks
from tests.mcp_harness import Meeting, both_eras, until
from tests.nodes import nodes_of
from tests.transports.mcp.gateway_support import (
    Demo,
    fronted,
    session_stream,
    settle,
    stateless,
    text,
    wired,
)
from tests.transports.mcp.task_support import (
    DECLARING,
    EXTENSION,
    RELATED,
    Jobs,
    Tasker,
    tasker,
)

UNKNOWN = (-32602, "Task not found.")
LAST_STEP = {"handshake": "tasks/result", "stateless": "tasks/update"}


@pytest.fixture
def jobs(era: str) -> Jobs:
    return Jobs(era)


@pytest.fixture
def backend(jobs: Jobs) -> Demo:
    return jobs


@pytest.fixture
async def ann(hub: Meeting) -> AsyncIterator[Tasker]:
    yield await tasker(hub, await hub.person("ann"))  # noqa: PT022 - async fixtures are generators


@pytest.fixture
async def bob(hub: Meeting) -> AsyncIterator[Tasker]:
    yield await tasker(hub, await hub.person("bob"))  # noqa: PT022 - async fixtures are generators


@pytest.fixture
async def others(hub: Meeting, era: str) -> AsyncIterator[Jobs]:
    """Another backend."""
    made = Jobs(era, "other")
    for node in nodes_of(hub.hub):
        node.behind.gateway.attach(made)
        await node.behind.gateway.arrived("other", made.inventory())
    await settle(hub, everyone=True)
    yield made  # noqa: PT022 - async fixtures are generators


@both_eras
@pytest.mark.requirement("gateway.tasks")
async def test_a_task_is_made_asked_about_and_ended(jobs, ann, era):
    made = await ann.make("demo_must", text="x")
    assert made != "1"
    assert jobs.asked[-1].params["name"] == "must"
    assert jobs.asked[-1].tasks is (era == "handshake")
    assert await ann.status(made) == "working"
    jobs.end()
    told = (await ann.ask("tasks/get", taskId=made))["result"]
    ttl = told["ttlMs" if era == "stateless" else "ttl"]
    assert (told["status"], ttl) == ("completed", 60_000)
    if era == "stateless":
        assert told["resultType"] == "complete"
    else:
        told["result"] = (await ann.ask("tasks/result", taskId=made))["result"]
        assert told["result"]["_meta"][RELATED] == {"taskId": made}
        assert "resultType" not in told["result"]
    assert told["result"]["content"] == [{"type": "text", "text": "done"}]
    other = await ann.make()
    ended = await ann.ask("tasks/cancel", taskId=other)
    assert jobs.tasks["2"]["status"] == "cancelled"
    if era == "stateless":
        assert ended["result"]["resultType"] == "complete"
        assert "taskId" not in ended["result"]
    else:
        assert ended["result"] == {**jobs.told("2"), "taskId": other}
    asked = [each.params["taskId"] for each in jobs.asked if each.method != "tools/call"]
    assert set(asked) == {"1", "2"}


@both_eras
@pytest.mark.requirement("gateway.task-owner")
async def test_an_id_is_of_use_to_its_maker_alone(era, hub, jobs, others, ann, bob):
    nobody = await tasker(hub, "")
    made, bobs = await ann.make(), await bob.make("other_may")
    asked = len(jobs.asked) + len(others.asked)
    turned = made[:40] + ("A" if made[40] != "A" else "B") + made[41:]
    forged = [turned, made[:-3], made + "A", "1", "x" * 5_000, "", bobs, "\u00e9", "a b"]
    for method in ("tasks/get", "tasks/cancel", LAST_STEP[era]):
        more = {"inputResponses": {}} if method == "tasks/update" else {}
        for task_id in forged:
            if era == "stateless" and not (task_id.isascii() and task_id.strip()):
                continue
            assert await ann.error(method, taskId=task_id, **more) == UNKNOWN, method
        assert await bob.error(method, taskId=made, **more) == UNKNOWN
        assert "error" in await nobody.ask(method, taskId=made, **more)
    assert len(jobs.asked) + len(others.asked) == asked
    if era == "handshake":
        assert (await ann.error("tasks/get", taskId=7))[0] == -32602
    assert await ann.status(made) == "working"
    jobs.tasks.clear()
    # A task that has ended and is forgotten is unknown in the same words.
    assert await ann.error("tasks/get", taskId=made) == UNKNOWN


@both_eras
@pytest.mark.requirement("gateway.task-owner")
@pytest.mark.settings(everyone=False)
async def test_the_rights_of_the_call_are_asked_for_again(hub, jobs, ann, era):
    def on(value: str) -> Any:
        where = {"params": {"arguments": {"text": value}}}
        return {"kind": "mcp.request.tools/call:demo:may", "payload": where}

    await settle(hub, ann=(on("a"), on("b")))
    first, second = await ann.make(text="a"), await ann.make(text="b")
    assert await ann.status(first) == await ann.status(second) == "working"
    await settle(hub, ann=(on("b"),))
    for method in ("tasks/get", "tasks/cancel"):
        code, _ = await ann.error(method, taskId=first)
        assert code == -32003, method
    assert await ann.status(second) == "working"
    if era == "handshake":
        listed = (await ann.ask("tasks/list"))["result"]["tasks"]
        assert [each["taskId"] for each in listed] == [second]
    await settle(hub)
    assert (await ann.error("tasks/get", taskId=second))[0] == -32003
    assert jobs.tasks["1"]["status"] == "working"


@pytest.mark.requirement("gateway.task-owner", "gateway.task-limits")
async def test_a_list_has_the_callers_own_tasks_of_all_backends_page_by_page(
    jobs, others, ann, bob, monkeypatch
):
    monkeypatch.setattr(gateway_tasks, "MAX_TASKS_PAGE", 2)
    made = [await ann.make(f"{name}_may") for name in ("demo", "other", "demo", "other")]
    await bob.make()
    jobs.end("1")
    del others.tasks["1"]
    page = (await ann.ask("tasks/list"))["result"]
    assert [(each["taskId"], each["status"]) for each in page["tasks"]] == [(made[0], "completed")]
    assert "result" not in page["tasks"][0]
    rest = (await ann.ask("tasks/list", cursor=page["nextCursor"]))["result"]
    found = [(each["taskId"], each["status"]) for each in rest["tasks"]]
    assert found == [(made[2], "working"), (made[3], "working")]
    assert "nextCursor" not in rest
    for cursor in ("x", "-1", 7, "9" * 40):
        assert (await ann.error("tasks/list", cursor=cursor))[0] == -32602
    assert (await ann.error("tasks/get", taskId=made[1])) == UNKNOWN


@pytest.mark.requirement("gateway.tasks")
@stateless
async def test_questions_of_a_task_reach_its_owner_in_the_stateless_era(jobs, ann):
    made = await ann.make()
    jobs.tasks["1"]["status"] = "input_required"
    told = (await ann.ask("tasks/get", taskId=made))["result"]
    assert told["inputRequests"]["sure"]["params"]["message"] == "Sure?"
    jobs.question = {"method": "roots/list"}
    _, said = await ann.error("tasks/get", taskId=made)
    assert "folders of your machine (roots/list)" in said
    code, _ = await ann.error("tasks/update", taskId=made)
    assert code == -32602
    given = {"sure": {"action": "accept", "_meta": {RELATED: {"taskId": made}}}}
    done = await ann.ask("tasks/update", taskId=made, inputResponses=given)
    assert done["result"].keys() == {"resultType", "_meta"}
    assert jobs.asked[-1].params["inputResponses"]["sure"]["_meta"] == {RELATED: {"taskId": "1"}}
    told = (await ann.ask("tasks/get", taskId=made))["result"]
    assert "accept" in told["result"]["content"][0]["text"]


@pytest.mark.requirement("gateway.tasks")
async def test_questions_of_a_task_are_put_while_its_result_is_waited_for(jobs, ann):
    made = await ann.make()
    jobs.tasks["1"]["status"] = "input_required"
    wire = ann.wire
    message = wire.message("tasks/result", {"taskId": made}, 9, None)
    async with wire.streamed(message) as stream:
        question = await anext(stream)
        assert question["method"] == "elicitation/create"
        assert question["params"]["_meta"] == {RELATED: {"taskId": made}}
        assert await wire.reply(question, {"action": "accept", "content": {}}) == 202
        result = (await anext(stream))["result"]
    assert "accept" in result["content"][0]["text"]
    assert result["_meta"] == {RELATED: {"taskId": made}}
    assert jobs.asked[-1].params["requestState"] == "s"


@pytest.mark.requirement("gateway.tasks")
async def test_a_call_that_is_to_be_a_task_may_ask_first(jobs, ann):
    jobs.asks_first, wire = True, ann.wire
    call = wire.message("tools/call", {"name": "demo_must", "task": {"ttl": 9}}, 9, None)
    async with wire.streamed(call) as stream:
        await wire.reply(await anext(stream), {"action": "accept", "content": {}})
        result = (await anext(stream))["result"]
    assert result["task"]["status"] == "working"
    assert [each.params["task"] for each in jobs.asked] == [{"ttl": 9}, {"ttl": 9}]


@pytest.mark.requirement("gateway.task-owner")
async def test_whoever_is_denied_a_tool_while_a_result_is_waited_for_does_not_get_it(
    hub, jobs, ann
):
    made = await ann.make()
    jobs.end("1", "secret")
    jobs.before_result = lambda: settle(hub)
    code, said = await ann.error("tasks/result", taskId=made)
    assert code == -32003
    assert "secret" not in said


@pytest.mark.requirement("gateway.tasks")
async def test_what_cannot_be_a_task_is_refused_with_a_sentence(tmp_path):
    jobs, modern = Jobs("handshake"), Jobs("stateless", "modern")
    async with fronted(tmp_path, "handshake", jobs, modern) as there:
        person = await there.person("ann")
        ann = await tasker(there, person)
        wish: dict[str, Any] = {"task": {"ttl": 5}}
        unknown = -32601
        needed = "demo:must can only be run as a task, "
        called = f"{needed}so the call must have `task` (MCP 2025-11-25)."
        for params, sentence in (
            ({"name": "demo_echo", **wish}, "demo:echo cannot be run as a task."),
            ({"name": "msg_whoami", **wish}, "msg/whoami cannot be run as a task."),
            ({"name": "demo_must"}, called),
        ):
            assert await ann.error("tools/call", **params) == (unknown, sentence)
        for bad in ({"task": 7}, {"task": {"ttl": "1"}}, {"task": {"ttl": -1}}, {"task": None}):
            assert (await ann.error("tools/call", name="demo_may", **bad))[0] == -32602
        assert jobs.asked == []
        code, _ = await ann.error("tasks/update", taskId="x", inputResponses={})
        assert code == unknown
        older = await wired(there, person, version="2025-06-18")
        assert (await older.ask("tasks/list"))["error"]["code"] == unknown
        plain = await older.ask("tools/call", {"name": "demo_may", **wish})
        assert plain["result"]["content"][0]["text"] == "done at once"
        assert "task" not in jobs.asked[-1].params
        plain = await older.ask("tools/call", {"name": "demo_must", **wish})
        assert plain["error"]["message"] == called

        now = await tasker(there, person, "stateless")
        said = await now.error("tools/call", name="demo_must")
        told = f"{needed}which needs a client of the handshake era (MCP 2025-11-25)."
        assert said == (unknown, told)
        for method in ("tasks/list", "tasks/result"):
            assert (await now.error(method, taskId="x"))[0] == unknown
        # A wish of the other era is of no matter.
        own = await now.ask("tools/call", name="msg_whoami", **wish)
        assert own["result"]["isError"] is False
        made = await now.make("modern_may")
        said = await ann.error("tasks/get", taskId=made)
        told = "This task was created in the stateless era and can only be used there."
        assert said == (unknown, told)
        for method in ("tasks/get", "tasks/cancel", "tasks/update"):
            asked = {"taskId": made, "inputResponses": {}}
            bare = (await now.wire.ask(method, asked))["error"]
            assert bare["code"] == -32021
            needed = bare["data"]["requiredCapabilities"]
            assert needed == {"extensions": {EXTENSION: {}}}
        sync = await now.wire.ask("tools/call", {"name": "modern_may"})
        assert sync["result"]["content"][0]["text"] == "done at once"


@both_eras
@pytest.mark.requirement("gateway.task-limits")
async def test_tasks_outlive_a_restart_of_the_hub(era, tmp_path, jobs):
    async with fronted(tmp_path, era, jobs) as there:
        made_by, other = await there.people("ann", "bob")
        made = await (await tasker(there, made_by)).make(text="x")
    async with fronted(tmp_path, era, jobs) as there:
        ann, bob = await tasker(there, made_by.token), await tasker(there, other.token)
        assert await bob.error("tasks/get", taskId=made) == UNKNOWN
        if era == "handshake":
            assert (await ann.ask("tasks/list"))["result"]["tasks"] == []
        ended = await ann.ask("tasks/cancel", taskId=made)
        # What it does not know yet is looked at first.
        assert [each.method for each in jobs.asked[-2:]] == ["tasks/get", "tasks/cancel"]
        assert "error" not in ended
        if era == "handshake":
            listed = (await ann.ask("tasks/list"))["result"]["tasks"]
            assert [each["taskId"] for each in listed] == [made]


@both_eras
@pytest.mark.requirement("gateway.task-limits", "gateway.task-owner")
async def test_a_restarted_backend_gives_an_id_to_another_task(hub, jobs, ann, bob):
    mine = await ann.make()
    # It counts from one again, and so does its next task, which is somebody else's.
    jobs.tasks, jobs.next, jobs.time = {}, 1, "2026-11-16T07:00:00Z"
    bobs = await bob.make()
    for method in ("tasks/get", "tasks/cancel"):
        assert await ann.error(method, taskId=mine) == UNKNOWN
    assert await bob.status(bobs) == "working"
    jobs.tasks, jobs.next, jobs.time = {}, 1, "2026-11-16T08:00:00Z"
    gateway = hub.hub.behind.gateway
    gateway.lost("demo", "It is away.")
    jobs.tasks["1"] = {"status": "working"}
    await gateway.arrived("demo", jobs.inventory())
    # One that nobody here has made.
    assert await bob.error("tasks/cancel", taskId=bobs) == UNKNOWN
    assert jobs.tasks["1"]["status"] == "working"


@both_eras
@pytest.mark.requirement("gateway.task-limits")
async def test_unfinished_tasks_of_one_account_are_limited(jobs, ann, bob, era, monkeypatch):
    monkeypatch.setattr(gateway_tasks, "MAX_OPEN_TASKS", 2)
    first = await ann.make()
    await ann.make()
    wish = {"task": {}} if era == "handshake" else {}
    more = await ann.ask("tools/call", name="demo_may", **wish)
    looked = [each.params["taskId"] for each in jobs.asked if each.method == "tasks/get"]
    assert sorted(looked) == ["1", "2"]
    await ann.ask("tools/call", name="demo_may", **wish)
    # Not each time, or one call would cost as much as many.
    assert len([each for each in jobs.asked if each.method == "tasks/get"]) == 2
    if era == "handshake":
        assert json.loads(more["result"]["content"][0]["text"])["code"] == "too_many_tasks"
    else:
        # The backend is told of a client without tasks, so it does the call at once.
        assert more["result"]["content"][0]["text"] == "done at once"
    await bob.make()
    jobs.end("1")
    monkeypatch.setattr(task_calls, "TASK_STATUS_EVERY_SECONDS", 0.0)
    # Nobody has asked, and yet it has ended.
    assert await ann.make() != first


@both_eras
@pytest.mark.requirement("gateway.tasks")
async def test_each_request_about_a_task_has_a_line_in_the_audit_log(jobs, ann, caplog):
    caplog.set_level(logging.INFO, "folkmoot.audit")
    made = await ann.make()
    await ann.status(made)
    await ann.ask("tasks/cancel", taskId=made)
    jobs.tasks.clear()
    await ann.ask("tasks/get", taskId=made)
    calls = [each for each in caplog.records if each.message == "backend.call"]
    assert [(each.about, each.outcome) for each in calls] == [  # type: ignore[attr-defined]
        ("mcp.request.tools/call:demo:may", "task"),
        ("mcp.request.tasks/get:demo:may", "ok"),
        ("mcp.request.tasks/cancel:demo:may", "ok"),
        ("mcp.request.tasks/get:demo:may", "task_unknown"),
    ]


RULES = """
[[rule]]
name = "no cancelling"
when = { method = "tasks/cancel", type = "request" }
action = "block"

[[rule]]
name = "no results"
when = { method = "tasks/get", type = "response" }
action = "block"
"""


@both_eras
@pytest.mark.requirement("gateway.tasks")
async def test_rules_see_requests_about_tasks(era, tmp_path, caplog):
    rules = tmp_path / "rules.toml"
    rules.write_text(RULES)
    jobs = Jobs(era)
    given = {"rules": str(rules)}
    async with fronted(tmp_path / "hub", era, jobs, interceptors=given) as there:
        ann = await tasker(there, await there.person("ann"))
        made = await ann.make()
        with caplog.at_level(logging.INFO, "folkmoot.audit"):
            for method in ("tasks/cancel", "tasks/get"):
                _, said = await ann.error(method, taskId=made)
                assert said == "This is not allowed here."
        assert jobs.tasks["1"]["status"] == "working"
        assert [each.method for each in jobs.asked] == ["tools/call", "tasks/get"]
    lines = [(each.about, each.outcome) for each in caplog.records if hasattr(each, "outcome")]
    assert lines == [
        ("mcp.request.tools/call:demo:may", "task"),
        ("mcp.request.tasks/cancel", "blocked"),
        ("mcp.request.tasks/get:demo:may", "withheld"),
    ]


@both_eras
async def test_a_backend_that_speaks_of_tasks_wrongly_does_no_harm(era, tmp_path):
    odd: list[Any] = [
        {"resultType": "task"},
        {"task": {}},
        {"task": {"taskId": 7, "status": "working", "createdAt": "x"}},
        {"task": {"taskId": "x" * 2_000, "status": "working", "createdAt": "x"}},
        {"task": {"taskId": "a", "status": "odd", "createdAt": "x"}},
        {"resultType": "task", "taskId": "a", "status": ["working"], "createdAt": "x"},
        {"resultType": "task", "taskId": "a", "status": "working", "createdAt": "x", "content": []},
        {"resultType": "task", "taskId": "", "status": "working", "createdAt": "x"},
    ]
    jobs = Jobs(era)

    async def answer(_: Any) -> Any:
        return odd[0]

    async with fronted(tmp_path, era, jobs, Demo("plain", odd=answer)) as there:
        ann = await tasker(there, await there.person("ann"))
        while odd:
            for call in ({"name": "plain_odd"}, {"name": "plain_odd", "arguments": {}}):
                told = await ann.ask("tools/call", **call)
                assert told["result"]["isError"] is True
                said = json.loads(told["result"]["content"][0]["text"])
                assert said["code"] == "backend_failed"
            odd.pop(0)
        made = await ann.make()
        for broken in ({"status": "odd"}, {"status": None}, {"status": ["working"]}):
            jobs.tasks["1"] = broken
            told = await ann.ask("tasks/get", taskId=made)
            assert told["error"]["code"] == -32000
        jobs.tasks["1"], jobs.time = {"status": "working"}, None  # type: ignore[assignment]
        assert await ann.error("tasks/get", taskId=made) == UNKNOWN
        jobs.time = "2026-11-16T06:00:00Z"
        jobs.tasks["1"] = {"status": "completed", "result": [1]}
        if era == "stateless":
            assert (await ann.ask("tasks/get", taskId=made))["error"]["code"] == -32000


@pytest.mark.requirement("gateway.task-owner")
@stateless
async def test_a_stream_is_told_of_the_tasks_it_names_while_they_are_the_callers(
    hub, jobs, ann, bob
):
    mine, bobs = await ann.make(), await bob.make()
    wanted = {"notifications": {"taskIds": [mine, bobs, "forged", mine]}}
    assert (await ann.wire.ask("subscriptions/listen", wanted))["error"]["code"] == -32021
    for odd in (7, [7], "x"):
        said = await ann.error("subscriptions/listen", notifications={"taskIds": odd})
        assert said[0] == -32602
    listen = ann.wire.message("subscriptions/listen", wanted, 4, DECLARING)
    async with ann.wire.streamed(listen) as stream:
        granted = (await anext(stream))["params"]["notifications"]
        assert granted == {"taskIds": [mine]}
        assert jobs.watched.keys() == {"1"}
        jobs.end("1")
        jobs.change("1")
        told = await anext(stream)
        assert told["method"] == "notifications/tasks"
        subscription = {"io.modelcontextprotocol/subscriptionId": 4}
        known = {
            "taskId": mine,
            "status": "completed",
            "result": text("done"),
            "_meta": subscription,
        }
        assert told["params"] == {**told["params"], **known}
        # Who may no longer call the tool hears nothing more of its tasks.
        subscribers = hub.hub.mcp._parts.subscribers
        [subscriber] = subscribers._streams
        assert await subscribers.due(subscriber, f"task:{mine}") == [f"task:{mine}"]
        assert await subscribers.due(subscriber, f"task:{bobs}") == []
        await settle(hub)
        assert await subscribers.due(subscriber, f"task:{mine}") == []
    await until(lambda: not jobs.watched)


@pytest.mark.requirement("gateway.task-owner")
async def test_sessions_of_the_owner_alone_are_told_of_a_task(hub, jobs, ann, bob):
    mine, bobs = await ann.make(), await bob.make()
    gateway = hub.hub.behind.gateway
    async with session_stream(ann.wire) as hers, session_stream(bob.wire) as his:
        jobs.end("1")
        for namespace, own in (("demo", "1"), ("demo", "77"), ("nobody", "1")):
            gateway.task_changed(namespace, own)
        told = await anext(hers)
        assert told["method"] == "notifications/tasks/status"
        assert told["params"] == {**jobs.told("1"), "taskId": mine}
        gateway.task_changed("demo", "2")
        # The first that he hears is of his own.
        assert (await anext(his))["params"]["taskId"] == bobs
