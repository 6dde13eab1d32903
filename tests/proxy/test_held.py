"""Held messages: who waits, who decides, and what people see of it."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import stat
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from folkmoot.bus import MemoryBus
from folkmoot.cli import proxy_held
from folkmoot.cli.operator import ask_socket
from folkmoot.clock import SystemClock
from folkmoot.core import errors as e
from folkmoot.core.events import HELD
from folkmoot.core.mcpx import decode_mcpx
from folkmoot.core.message import Notification, members
from folkmoot.core.verdict import CONTINUE, Block, Hold
from folkmoot.datafolder.proxies import proxy_socket, running_proxies, runtime_folder
from folkmoot.operations import Services
from folkmoot.proxy.chain import Chain
from folkmoot.proxy.held import PREVIEW, HeldMessages, HeldView, edit
from folkmoot.relay.proxy import ProxyOperator, tell
from folkmoot.transports.operator_socket import OperatorSocket, operator_app
from tests.proxy.rules.support import TO_CLIENT, Clock, answer, call, envelope, loaded

NASTY = {"path": "/x\x1b[2J\u202e\nend", "long": "y" * 500}


def follow(held: HeldMessages, told: Callable[[Any, HeldView], object]) -> None:
    """Have someone told of each change."""
    held.bus.listen(HELD, lambda event: tell(told, event))


class Waits:
    """Messages that are held, each by a task."""

    def __init__(self, tasks: asyncio.TaskGroup, most: int = 256) -> None:
        self.clock = Clock()
        self.held = HeldMessages(self.clock, MemoryBus(), most=most)
        self.told: list[tuple[str, int]] = []
        follow(self.held, lambda change, view: self.told.append((change, view.id)))
        self.on_released: Callable[[Any], None] = lambda _: None
        self._tasks = tasks

    async def hold(self, message: Any = None, *way: Any, **more: Any) -> asyncio.Task[str]:
        """Have a message held; the task says what became of it."""
        task = self._tasks.create_task(self._one(message or call("delete"), way, Hold(**more)))
        before = len(self.told)
        while len(self.told) == before:  # noqa: ASYNC110 - the test's own time limit bounds it
            await asyncio.sleep(0)
        return task

    async def _one(self, message: Any, way: Any, hold: Hold) -> str:
        try:
            edited = await self.held.hold(envelope(message, *way), "ask first", hold)
            if edited is not None:
                self.on_released(edited)
        except e.MessageDropped as error:
            return error.message
        return "released"


@pytest.fixture
async def waits() -> AsyncIterator[Waits]:
    async with asyncio.TaskGroup() as tasks:
        yield Waits(tasks)


async def test_a_message_waits_until_it_is_released_or_dropped_with_a_reason(waits):
    first, second, third = [await waits.hold() for _ in range(3)]
    assert [view.id for view in waits.held.list()] == [1, 2, 3]
    waits.held.release(2)
    waits.held.drop(1, "Too risky.")
    waits.held.drop(3)
    assert await second == "released"
    assert await first == "The message was held and dropped: Too risky."
    assert "someone dropped it" in await third
    assert len(waits.held) == 0
    with pytest.raises(e.CommandInvalid, match="No message 2 is held"):
        waits.held.release(2)
    assert waits.told[3:] == [("released", 2), ("dropped", 1), ("dropped", 3)]


async def test_a_message_nobody_decides_about_is_dropped_and_one_nobody_waits_for_is_gone(waits):
    late = await waits.hold(seconds=0.01)
    assert waits.held.list()[0].until == waits.clock.now() + 0.01
    assert await late == "Nobody decided about the message in time."
    gone = await waits.hold()
    gone.cancel()
    await asyncio.wait([gone])
    assert waits.held.list() == []
    assert waits.told == [("held", 1), ("dropped", 1), ("held", 2), ("gone", 2)]


async def test_too_many_held_messages_are_dropped():
    async with asyncio.TaskGroup() as tasks:
        waits = Waits(tasks, most=1)
        first = await waits.hold()
        with pytest.raises(e.MessageDropped, match="1 messages are already held"):
            await waits.held.hold(envelope(call("x")), "r", Hold())
        waits.held.release(1)
        await first


async def test_what_people_see_is_short_on_one_line_and_hides_nothing():
    async with asyncio.TaskGroup() as tasks:
        waits = Waits(tasks)
        for message, *way in (
            (call("delete", NASTY),),
            (answer({"ok": 1}), TO_CLIENT),
            (Notification(method="notifications/\x07"),),
        ):
            await waits.hold(message, *way, reason="Why\nnot?")
        seen = waits.held.list()
        for view in seen:
            waits.held.release(view.id)
        request, response, notice = seen
    assert (request.method, request.tool, request.direction) == (
        "tools/call",
        "delete",
        "client_to_server",
    )
    assert (request.rule, request.session, request.since) == ("ask first", "s1", 1_000.0)
    assert len(request.preview) <= PREVIEW + 50
    assert "\\u001b" in request.preview
    assert (response.type, response.preview) == ("response", '{"ok":1}')
    assert (notice.method, notice.reason) == ("notifications/\\x07", "Why\\nnot?")
    for view in (request, response, notice):
        assert "".join(map(str, (view.preview, view.reason, view.method))).isprintable()


async def test_a_rule_holds_and_the_rest_of_the_rules_comes_after_the_decision():
    rules = loaded(
        '[[rule]]\nname = "ask"\nwhen = { tool = "delete" }\naction = "hold"\n'
        '[[rule]]\nname = "never"\nwhen = { path = "$.params.arguments.all", is = true }\n'
        'action = "block"\n'
    )
    held = HeldMessages(Clock(), MemoryBus())
    chain = Chain(rules.interceptors, held)

    async def decided(arguments: Any) -> Any:
        ruling = await chain.judge(envelope(call("delete", arguments)))
        async with asyncio.TaskGroup() as tasks:
            follow(held, lambda change, view: change == "held" and held.release(view.id))
            return await tasks.create_task(chain.settle(ruling))

    assert (await decided({})).verdict is CONTINUE
    assert isinstance((await decided({"all": True})).verdict, Block)


async def test_a_held_answer_is_shown_with_the_tool_that_was_called(capsys):
    rules = loaded('[[rule]]\nname = "ask"\nwhen = { tool = "delete" }\naction = "hold"\n')
    held = HeldMessages(Clock(), MemoryBus())
    chain, views = Chain(rules.interceptors, held), []

    def release(change: str, view: HeldView) -> None:
        if change == "held":
            views.append(view)
            held.release(view.id)

    follow(held, release)
    follow(held, proxy_held.show_held)
    asked = envelope(call("delete"))
    await chain.run(asked)
    await chain.run(asked.answered_by(answer({"ok": 1}), asked.context.timing))
    assert [(view.type, view.method, view.tool) for view in views] == [
        ("request", "tools/call", "delete"),
        ("response", "tools/call", "delete"),
    ]
    name = f"{os.getpid()}/2"
    assert (
        f"Held {name}, response to tools/call delete → client, by ask." in capsys.readouterr().err
    )
    row = proxy_held.row(proxy_held.HoldingProcess(None, Path("socket")), views[1])
    assert row.what == "response to tools/call delete"


@asynccontextmanager
async def proxies(folder: Path, *pids: int) -> AsyncIterator[list[Waits]]:
    """Proxies that can be asked about the messages they hold."""
    async with asyncio.TaskGroup() as tasks:
        found: list[Waits] = []
        serving = []
        for pid in pids:
            waits = Waits(tasks)
            server = OperatorSocket(proxy_socket(folder, pid))
            server.listen()
            app = operator_app(Services(held=waits.held))
            serving.append(tasks.create_task(server.serve(app)))
            found.append(waits)
        try:
            yield found
        finally:
            for task in serving:
                task.cancel()


async def held(*words: str) -> Result:
    return await asyncio.to_thread(CliRunner().invoke, proxy_held.held, list(words))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path / "folkmoot"


async def test_the_command_line_sees_and_decides_what_one_proxy_holds(folder):
    async with proxies(folder, 4711) as (waits,):
        first = await waits.hold(call("delete", NASTY), reason="Really?")
        second = await waits.hold()
        shown = await held("list")
        assert shown.exit_code == 0, shown.output
        assert "4711/1" in shown.output
        assert "tools/call delete" in shown.output
        assert "\x1b" not in shown.output
        listed = json.loads((await held("list", "--json")).output)["held"]
        assert [row["id"] for row in listed] == ["4711/1", "4711/2"]
        assert (await held("release", "1")).output == "Released 4711/1.\n"
        assert (await held("drop", "4711/2", "--reason", "No.")).output == "Dropped 4711/2.\n"
        assert await first == "released"
        assert (await second).endswith("dropped: No.")
        assert isinstance((await held("release", "1")).exception, e.CommandInvalid)
        assert "No message is held" in (await held("list")).output


async def test_several_proxies_are_told_apart_and_what_a_dead_one_left_is_removed(folder):
    async with proxies(folder, 10, 20) as (one, two):
        first, second = await one.hold(), await two.hold()
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(folder / "proxy-30.sock"))
        (folder / "proxy-40.sock").write_text("no socket")
        assert set(running_proxies()) == {10, 20}
        assert not (folder / "proxy-30.sock").exists()
        assert (folder / "proxy-40.sock").exists()
        listed = json.loads((await held("list", "--json")).output)["held"]
        assert {row["id"] for row in listed} == {"10/1", "20/1"}
        assert "2 proxies are running. Say which" in str((await held("release", "1")).exception)
        for name in ("10/1", "20/1"):
            assert (await held("release", name)).exit_code == 0
        assert [await first, await second] == ["released", "released"]
        assert "No proxy is running as process 99." in str((await held("drop", "99/1")).exception)
        assert (await held("drop", "x")).exit_code == 2


async def test_a_hub_is_asked_by_its_data_folder(folder, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    async with asyncio.TaskGroup() as tasks:
        waits = Waits(tasks)
        server = OperatorSocket(data / "control.sock")
        server.listen()
        serving = tasks.create_task(server.serve(operator_app(Services(held=waits.held))))
        waiting = await waits.hold()
        assert (await held("release", "1", "--data", str(data))).output == "Released 1.\n"
        assert await waiting == "released"
        serving.cancel()


@pytest.mark.requirement("operator.socket")
async def test_a_proxy_tells_how_it_is_and_what_it_holds_and_has_nothing_of_a_hub(folder):
    async with asyncio.TaskGroup() as tasks:
        waits = Waits(tasks)
        operator = ProxyOperator(waits.held, SystemClock())
        serving = tasks.create_task(operator.serve())
        waiting = await waits.hold()
        (path,) = running_proxies().values()
        assert path.parent == folder

        async def asked(name: str, **given: Any) -> Any:
            return await asyncio.to_thread(ask_socket, path, name, given)

        status = await asked("folkmoot/status")
        assert (status["pid"], status["url"]) == (os.getpid(), "")
        (view,) = (await asked("held/list"))["held"]
        for absent in ("folkmoot/people", "folkmoot/key", "folkmoot/servers"):
            with pytest.raises(e.CommandFailed, match="does not know this command"):
                await asked(absent)
        await asked("held/release", held_id=view["id"])
        assert await waiting == "released"
        serving.cancel()
    operator.close()
    assert running_proxies() == {}


def test_the_folder_of_sockets_is_private(tmp_path):
    folder = tmp_path / "run" / "folkmoot"
    folder.mkdir(parents=True, mode=0o755)
    assert proxy_socket(folder).name == f"proxy-{os.getpid()}.sock"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    (tmp_path / "file").write_text("")
    with pytest.raises(e.DataFolderUnwritable):
        proxy_socket(tmp_path / "file")
    assert runtime_folder({"XDG_RUNTIME_DIR": "/run/user/7"}) == Path("/run/user/7/folkmoot")
    assert runtime_folder({"XDG_STATE_HOME": "/s"}) == Path("/s/folkmoot/run")
    assert runtime_folder({}).is_relative_to(Path.home())


EDITED = {"name": "delete", "arguments": {"path": "/tmp/x"}}


def with_changes(message: Any, **changes: Any) -> dict[str, Any]:
    return {**members(message), **changes}


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"id": 99}, "The id and the method"),
        ({"id": "1"}, "The id and the method"),
        ({"method": "tools/list"}, "The id and the method"),
        ({"jsonrpc": "1.0"}, "is not valid"),
        ({"params": 7}, "is not valid"),
        ({"result": {}}, "is not valid"),
    ],
)
async def test_what_makes_another_message_of_it_is_refused_and_it_stays_held(waits, wrong, why):
    message = call("delete")
    waiting = await waits.hold(message)
    with pytest.raises(e.CommandInvalid, match=why):
        waits.held.release(1, with_changes(message, **wrong))
    assert len(waits.held) == 1
    waits.held.release(1, with_changes(message, params=EDITED))
    assert await waiting == "released"


def never(path: str) -> str:
    return (
        f'[[rule]]\nname = "never {path}"\nwhen = {{ path = "$.params.arguments.path", '
        f'is = "{path}" }}\naction = "block"\n'
    )


async def test_an_edited_message_is_shown_to_the_rules_around_the_one_that_held_it():
    ask = '[[rule]]\nname = "ask"\nwhen = { tool = "delete" }\naction = "hold"\n'
    earlier = loaded(never("/first"))
    rules = loaded(never("/before") + ask + never("/behind"))
    held = HeldMessages(Clock(), MemoryBus())
    chain = Chain([*earlier.interceptors, *rules.interceptors], held)

    def release(change: str, view: HeldView) -> None:
        if change == "held":
            message = held.envelope(view.id).message
            wanted = {"name": "delete", "arguments": {"path": paths[-1]}}
            held.release(view.id, with_changes(message, params=wanted))

    follow(held, release)
    paths: list[str] = []
    for path, by in (("/x", ""), *((f"/{each}", each) for each in ("first", "before"))):
        paths.append(path)
        ruling = await chain.run(envelope(call("delete", {"path": "/tmp"})))
        assert isinstance(ruling.verdict, Block) is bool(by)
        assert not by or ruling.by == f"never /{by}"
        assert (ruling.waited.by, ruling.changed) == ("ask", True)
        assert ruling.envelope.message.params["arguments"] == {"path": path}
    paths.append("/behind")
    ruling = await chain.run(envelope(call("delete", {"path": "/tmp"})))
    assert isinstance(ruling.verdict, Block)


def test_a_message_of_a_room_is_released_as_it_is_or_not_at_all():
    with pytest.raises(e.CommandInvalid, match="never edited"):
        edit(decode_mcpx(b'{"protocol": "mcpx/v1", "kind": "chat.message", "payload": {}}'), {})


async def test_the_command_line_shows_edits_and_releases_a_message(folder, tmp_path, monkeypatch):
    editor = tmp_path / "editor.py"
    editor.write_text(
        "import pathlib, sys\n"
        "path = pathlib.Path(sys.argv[1])\n"
        'path.write_text(path.read_text().replace("/etc", "/tmp"))\n'
    )
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", f"{sys.executable} -IS {editor}")
    async with proxies(folder, 4711) as (waits,):
        for _ in range(3):
            await waits.hold(call("delete", {"path": "/etc"}))
        message = json.loads((await held("show", "1")).output)
        assert message["params"]["arguments"] == {"path": "/etc"}
        gone: list[Any] = []
        waits.on_released = gone.append
        released = await held("release", "1", "--edit")
        assert released.output == "Released 4711/1 with your changes.\n"
        message["params"]["arguments"]["path"] = "/var"
        (tmp_path / "m.json").write_text(json.dumps(message))
        released = await held("release", "2", "--with", str(tmp_path / "m.json"))
        assert released.output == "Released 4711/2 with your changes.\n"
        assert [each.params["arguments"]["path"] for each in gone] == ["/tmp", "/var"]
        for source, why in (("{", "is not valid JSON"), ("[]", "JSON"), ('{"id": 1}', "valid")):
            (tmp_path / "m.json").write_text(source)
            wrong = await held("release", "3", "--with", str(tmp_path / "m.json"))
            assert wrong.exit_code != 0
            assert why in f"{wrong.output}{wrong.exception}"
        assert (await held("release", "3", "--with", str(tmp_path / "no"))).exit_code == 2
        monkeypatch.setenv("EDITOR", "true")
        same = await held("release", "3", "--edit")
        assert "Nothing was changed, so 4711/3 is still held." in str(same.exception)
        monkeypatch.setenv("EDITOR", "no-such-editor")
        assert "no-such-editor" in str((await held("release", "3", "--edit")).exception)
        assert [view.id for view in waits.held.list()] == [3]
        waits.held.release(3)


async def test_what_is_held_and_what_becomes_of_it_is_told_in_lines(capsys):
    async with asyncio.TaskGroup() as tasks:
        waits = Waits(tasks)
        follow(waits.held, proxy_held.show_held)
        await waits.hold(call("delete", NASTY), reason="Really\x1b[2J?")
        waits.held.drop(1)
        await waits.hold()
        waits.held.release(2)
    name = f"{os.getpid()}/1"
    assert capsys.readouterr().err.splitlines()[:3] == [
        f"Held {name}, tools/call delete → server, by ask first: Really\\x1b[2J?",
        f"  Decide with: folkmoot proxy held release|drop {name}",
        f"{name} tools/call delete: dropped.",
    ]
