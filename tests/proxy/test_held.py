"""Held messages: who waits, who decides, and what people see of it."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import stat
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from folkmoot.bus import MemoryBus
from folkmoot.cli import proxy_held
from folkmoot.clock import SystemClock
from folkmoot.core import errors as e
from folkmoot.core.events import HELD
from folkmoot.core.mcpx import decode_mcpx
from folkmoot.core.message import Notification, members
from folkmoot.core.verdict import Block, Hold
from folkmoot.datafolder.proxies import proxy_socket, running_proxies, runtime_folder
from folkmoot.operations import Services
from folkmoot.proxy.chain import Chain
from folkmoot.proxy.held import PREVIEW, HeldMessages, HeldView, edit
from folkmoot.relay.proxy import ProxyOperator, tell
from folkmoot.transports.operator_socket import OperatorSocket, operator_app
from tests.clocks import NOON
from tests.operator import ask_socket
from tests.proxy.rules.support import TO_CLIENT, Clock, answer, call, envelope, loaded

NASTY = {"path": "/x\x1b[2J\u202e\nend", "long": "y" * 500}


def follow(held: HeldMessages, told: Callable[[Any, HeldView], object]) -> None:
    """Have someone told of each change."""
    held.bus.listen(HELD, lambda event: tell(told, event))


class Waits:
    """Messages that are held, each by a task."""

    def __init__(self, tasks: asyncio.TaskGroup, **limits: int) -> None:
        self.clock = Clock()
        self.held = HeldMessages(self.clock, MemoryBus(), **limits)
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


async def test_what_people_see_is_short_on_one_line_and_hides_nothing(waits):
    for message, *way in (
        (call("delete", NASTY),),
        (answer({"ok": 1}), TO_CLIENT),
        (Notification(method="notifications/\x07"),),
    ):
        await waits.hold(message, *way, reason="Why\nnot?")
    request, response, notice = seen = waits.held.list()
    said = (request.method, request.tool, request.direction)
    assert said == ("tools/call", "delete", "client_to_server")
    assert (request.rule, request.session, request.since) == ("ask first", "s1", NOON)
    assert len(request.preview) <= PREVIEW + 50
    assert "\\u001b" in request.preview
    assert (response.type, response.preview) == ("response", '{"ok":1}')
    assert (notice.method, notice.reason) == ("notifications/\\x07", "Why\\nnot?")
    for view in seen:
        assert "".join(map(str, (view.preview, view.reason, view.method))).isprintable()
        waits.held.release(view.id)


ASK = '[[rule]]\nname = "ask"\nwhen = { tool = "delete" }\naction = "hold"\n'


def never(path: str) -> str:
    return (
        f'[[rule]]\nname = "never {path}"\nwhen = {{ path = "$.params.arguments.path", '
        f'is = "{path}" }}\naction = "block"\n'
    )


async def test_a_rule_holds_and_the_rest_of_the_rules_comes_after_the_decision():
    rules = loaded(ASK + never("/all"))
    held = HeldMessages(Clock(), MemoryBus())
    follow(held, lambda change, view: change == "held" and held.release(view.id))
    chain = Chain(rules.interceptors, held)
    for path, stopped in (("/some", False), ("/all", True)):
        ruling = await chain.run(envelope(call("delete", {"path": path})))
        assert isinstance(ruling.verdict, Block) is stopped


async def test_a_held_answer_is_shown_with_the_tool_that_was_called(capsys):
    held = HeldMessages(Clock(), MemoryBus())
    chain, views = Chain(loaded(ASK).interceptors, held), []

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
    told = f"Held {os.getpid()}/2, response to tools/call delete → client, by ask."
    assert told in capsys.readouterr().err
    entry = proxy_held.entry(proxy_held.HoldingProcess(None, Path("socket")), views[1])
    assert entry.row[3] == "response to tools/call delete"


@asynccontextmanager
async def served(*sockets: Path) -> AsyncIterator[list[Waits]]:
    """Programs that can be asked at sockets about the messages they hold."""
    async with asyncio.TaskGroup() as tasks:
        found, serving = [Waits(tasks) for _ in sockets], []
        for path, waits in zip(sockets, found, strict=True):
            server = OperatorSocket(path)
            server.listen()
            app = operator_app(Services(held=waits.held))
            serving.append(tasks.create_task(server.serve(app)))
        try:
            yield found
        finally:
            for task in serving:
                task.cancel()


@asynccontextmanager
async def proxies(folder: Path, *pids: int) -> AsyncIterator[list[Waits]]:
    async with served(*(proxy_socket(folder, pid) for pid in pids)) as found:
        yield found


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
        for told, is_told in {"4711/1": True, "tools/call delete": True, "\x1b": False}.items():
            assert (told in shown.output) is is_told
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
    (tmp_path / "data").mkdir()
    async with served(tmp_path / "data" / "control.sock") as (waits,):
        waiting = await waits.hold()
        released = await held("release", "1", "--data", str(tmp_path / "data"))
        assert released.output == "Released 1.\n"
        assert await waiting == "released"


@pytest.mark.requirement("operator.socket")
async def test_a_proxy_tells_how_it_is_and_what_it_holds_and_has_nothing_of_a_hub(folder, waits):
    operator = ProxyOperator(waits.held, SystemClock())
    serving = asyncio.ensure_future(operator.serve())
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
    await asyncio.wait([serving])
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
    edited = {"name": "delete", "arguments": {"path": "/tmp/x"}}
    waits.held.release(1, with_changes(message, params=edited))
    assert await waiting == "released"


async def test_an_edited_message_is_shown_to_the_rules_around_the_one_that_held_it():
    earlier = loaded(never("/first"))
    rules = loaded(never("/before") + ASK + never("/behind"))
    held = HeldMessages(Clock(), MemoryBus())
    chain = Chain([*earlier.interceptors, *rules.interceptors], held)

    def release(change: str, view: HeldView) -> None:
        if change == "held":
            message = held.envelope(view.id).message
            wanted = {"name": "delete", "arguments": {"path": path}}
            held.release(view.id, with_changes(message, params=wanted))

    follow(held, release)
    for path in ("/x", "/first", "/before", "/behind"):
        ruling = await chain.run(envelope(call("delete", {"path": "/tmp"})))
        assert isinstance(ruling.verdict, Block) is (path != "/x")
        if path in ("/first", "/before"):
            assert ruling.by == f"never {path}"
        if path != "/behind":
            assert (ruling.waited.by, ruling.changed) == ("ask", True)
            assert ruling.envelope.message.params["arguments"] == {"path": path}


def test_a_message_of_a_room_is_released_as_it_is_or_not_at_all():
    with pytest.raises(e.CommandInvalid, match="never edited"):
        edit(decode_mcpx(b'{"protocol": "mcpx/v1", "kind": "chat.message", "payload": {}}'), {})


async def test_the_command_line_shows_edits_and_releases_a_message(folder, tmp_path, monkeypatch):
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", "sed -i s:/etc:/tmp:")
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
        unchanged = "Nothing was changed, so 4711/3 is still held."
        for editor, why in (("true", unchanged), ("no-such-editor", "no-such-editor")):
            monkeypatch.setenv("EDITOR", editor)
            assert why in str((await held("release", "3", "--edit")).exception)
        assert [view.id for view in waits.held.list()] == [3]
        waits.held.release(3)


async def test_what_is_held_and_what_becomes_of_it_is_told_in_lines(waits, capsys):
    follow(waits.held, proxy_held.show_held)
    dropped = await waits.hold(call("delete", NASTY), reason="Really\x1b[2J?")
    waits.held.drop(1)
    await dropped
    name = f"{os.getpid()}/1"
    assert capsys.readouterr().err.splitlines() == [
        f"Held {name}, tools/call delete → server, by ask first: Really\\x1b[2J?",
        f"  Decide with: folkmoot proxy held release|drop {name}",
        f"{name} tools/call delete: dropped.",
    ]
