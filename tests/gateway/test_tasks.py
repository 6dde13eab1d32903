"""The tasks that a process remembers: whose they are, how many, and for how long."""

from __future__ import annotations

from typing import Any

import pytest

from folkmoot.core import errors as e
from folkmoot.gateway import tasks as module
from folkmoot.gateway.limits import MAX_TASK_ARGUMENTS, MAX_TASK_SECONDS, MAX_TASKS_PAGE
from folkmoot.gateway.requests import CallExtras
from folkmoot.gateway.tasks import Task, Tasks
from folkmoot.vault import Vault
from tests.clocks import StillClock
from tests.gateway.scripted import Scripted, tool

pytestmark = pytest.mark.requirement("gateway.task-limits")


def tasks(time: StillClock | None = None, key: bytes = b"k" * 32) -> Tasks:
    return Tasks(Vault(key, "test"), time or StillClock())


def made(known: Tasks, own: str = "1", owner: str = "ann", **said: Any) -> Task:
    told = {"taskId": own, "status": "working", "createdAt": "then", "ttl": 60_000, **said}
    return known.made(owner, "demo", "demo:run", {"a": 1}, told, stateless=False)


def ids(known: Tasks, owner: str = "ann") -> list[str]:
    found, cursor = known.page(owner, None, stateless=False)
    while cursor is not None:
        page, cursor = known.page(owner, cursor, stateless=False)
        found += page
    return [task.ticket.own for task in found]


@pytest.mark.requirement("gateway.task-owner")
def test_an_id_opens_in_another_process_for_its_owner_alone():
    task = made(tasks())
    again = tasks().find("ann", task.id)
    assert again.ticket == task.ticket
    assert (again.checked, again.arguments) == (False, None)
    assert again.call == {"name": "demo:run"}
    assert task.call == {"name": "demo:run", "arguments": {"a": 1}}
    other = tasks(key=b"x" * 32)
    strangers = [("bob", task.id), ("", task.id), ("bob", "1"), ("bob", "")]
    asked = [(known, *each) for known in (tasks(), other) for each in strangers]
    for known, owner, task_id in (*asked, (other, "ann", task.id)):
        with pytest.raises(e.TaskUnknown, match="Task not found"):
            known.find(owner, task_id)


def test_a_task_is_listed_until_its_time_is_over():
    time = StillClock()
    known = tasks(time)
    made(known, "short", ttl=1_000)
    made(known, "endless", ttl=None)
    made(known, "long", ttl=10**12)
    renewed = made(known, "renewed", ttl=1_000)
    assert ids(known) == ["short", "endless", "long", "renewed"]
    known.confirmed(renewed, {"status": "working", "ttlMs": 5_000})
    time.seconds += 2
    assert ids(known) == ["endless", "long", "renewed"]
    time.seconds += MAX_TASK_SECONDS
    assert (ids(known), len(known)) == ([], 0)
    assert known.of_backend("demo", "long") is None


def test_only_so_many_are_remembered_of_one_and_of_all(monkeypatch):
    monkeypatch.setattr(module, "MAX_TASKS_OF_ACCOUNT", 3)
    monkeypatch.setattr(module, "MAX_TASKS", 5)
    known = tasks()
    for own in "abc":
        made(known, own, status="completed" if own == "b" else "working")
    made(known, "d")
    # The one that has ended goes first.
    assert ids(known) == ["a", "c", "d"]
    made(known, "e")
    assert ids(known) == ["c", "d", "e"]
    for own in "xyz":
        made(known, own, "bob")
    assert (ids(known, "bob"), ids(known)) == (["x", "y", "z"], ["d", "e"])


def test_pages_hold_on_to_their_place():
    known = tasks()
    owns = [str(number) for number in range(MAX_TASKS_PAGE * 2 + 1)]
    first, *_ = [made(known, own) for own in owns]
    assert ids(known) == owns
    page, cursor = known.page("ann", None, stateless=False)
    known.forget(first)
    known.forget(first)
    following, _ = known.page("ann", cursor, stateless=False)
    assert following[0].ticket.own == owns[len(page)]
    assert known.page("ann", None, stateless=True) == ([], None)
    for odd in ("", "x", "-1", "\u0663", "9" * 99):
        with pytest.raises(e.ArgumentInvalid):
            known.page("ann", odd, stateless=False)


def test_an_own_id_that_is_used_again_is_another_task():
    known = tasks()
    old, new = made(known), made(known, owner="bob", createdAt="now")
    assert known.of_backend("demo", "1") is new
    assert ids(known) == []
    assert not known.find("ann", old.id).checked
    known.doubt("other")
    assert new.checked
    known.doubt("demo")
    assert not new.checked


def test_unfinished_ones_are_counted(monkeypatch):
    monkeypatch.setattr(module, "MAX_OPEN_TASKS", 2)
    time = StillClock()
    known = tasks(time)
    first = made(known, "a")
    made(known, "b", ttl=1_000)
    assert not known.has_room("ann")
    assert known.has_room("bob")
    known.confirmed(first, {"status": "failed"})
    assert known.has_room("ann")
    made(known, "c")
    assert not known.has_room("ann")
    time.seconds += 2
    assert known.has_room("ann")


def test_long_arguments_are_not_kept():
    told = {"taskId": "1", "status": "working", "createdAt": "then"}
    text = {"text": "x" * MAX_TASK_ARGUMENTS}
    task = tasks().made("ann", "demo", "demo:run", text, told, stateless=True)
    assert task.call == {"name": "demo:run"}


@pytest.mark.parametrize(
    "odd", [{"taskId": 7}, {"taskId": ""}, {"status": "odd"}, {"status": []}, {"createdAt": None}]
)
def test_what_is_no_task_is_refused(odd):
    known = tasks()
    with pytest.raises(e.BackendFailed, match="The backend demo created a task without"):
        made(known, **odd)
    assert len(known) == 0


@pytest.mark.requirement("gateway.tasks")
async def test_in_a_room_nothing_is_run_as_a_task(gate):
    files = Scripted("files")
    offered = {"tasks": {"requests": {"tools": {"call": {}}}}}
    must = tool("must", execution={"taskSupport": "required"})
    may = tool("may", execution={"taskSupport": "optional"})
    await gate.has(files, tools=(must, may), capabilities=offered)
    extras = CallExtras(room="den")
    with pytest.raises(e.TaskUnsupported, match="as a task, which is not possible in a room"):
        await gate.ask("tools/call", {"name": "files:must", "task": {}}, extras=extras)
    await gate.ask("tools/call", {"name": "files:may", "task": {}}, extras=extras)
    assert [each.params for each in files.asked] == [{"name": "may"}]
    assert not files.asked[0].tasks
