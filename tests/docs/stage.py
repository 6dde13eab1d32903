"""Plays the examples of a page on a real hub, over real WebSockets.

A line in front of an example says what is done with it:

    *bob joins*                  he comes in, and this is the welcome, or part of its payload
    *bob joins offering tools as desk*    the same, and this connection may serve
    *bob sends*                  he sends this
    *everyone gets*              this comes next, to all who are here
    *bob gets*                   this comes next, to him
    *bob leaves*                 he closes his connection
    *kim is closed with 4403*    the hub closes hers

An id that the hub made is bound where a page first shows it, and means the same afterwards; `…`
stands for anything, and times and epochs for any other. What a page does not show is passed over if
it is presence, another welcome, or a message of the page's own coming back.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from typing import Any, TypeAlias

from websockets.asyncio.client import ClientConnection, connect

from tests.docs.pages import Page
from tests.transports.rooms.support import Town, ending

PLAYED = re.compile(r"^\*([^*\n]+)\*\n(?:\n```json\n(.*?)```\n)?", re.DOTALL | re.MULTILINE)
SILENT = ("system.presence.", "system.welcome", "system.serving")
MADE_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
# Members that differ each time, and the form they have.
VARYING = {
    "ts": re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"),
    "expires_at": re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"),
    "epoch": re.compile(r"[0-9a-f]{8}\.[0-9a-f]{16}"),
}

Envelope: TypeAlias = dict[str, Any]
Act: TypeAlias = Callable[..., Coroutine[Any, Any, None]]


class Stage:
    """A room of a hub, and those who play in it."""

    def __init__(
        self, town: Town, room: str, tokens: dict[str, str], stack: AsyncExitStack
    ) -> None:
        self._town = town
        self._room = room
        self._tokens = tokens
        self._stack = stack
        self._here: dict[str, ClientConnection] = {}
        self._heard: dict[str, deque[Envelope]] = {}
        self._invitation = ""
        self._epoch = ""
        self._sent: set[str] = set()
        self._likeness = Likeness()
        self._acts: dict[str, Act] = {
            r"(\w+) joins": self.join,
            r"(\w+) joins after (\d+)": self._resume,
            r"(\w+) joins with the invitation": self._come_as_guest,
            r"(\w+) joins offering tools as (\w+)": self._serve,
            r"(\w+) sends": self._send,
            r"everyone gets": self._everyone_gets,
            r"(\w+) gets": self._get,
            r"(\w+) leaves": self._leave,
            r"(\w+) is closed with (\d+)": self._closed,
        }

    async def play(self, page: Page) -> int:
        """Play a page from its beginning to its end; how many steps that took."""
        steps = PLAYED.findall(page.text)
        for what, text in steps:
            act, found = next(
                (act, found)
                for pattern, act in self._acts.items()
                if (found := re.fullmatch(pattern, what))
            )
            try:
                await act(*found.groups(), *([json.loads(text)] if text else ()))
            except AssertionError as error:
                raise AssertionError(f"{page.name}, {what}: {error}") from None
        refusals = [
            it for heard in self._heard.values() for it in heard if it["kind"] == "system.error"
        ]
        assert not refusals, f"{page.name} does not show {refusals}"
        return len(steps)

    async def join(self, name: str, example: Any = None, **query: Any) -> None:
        url = self._town.url(self._tokens[name], room=self._room, **query)
        # A full queue would keep the library from seeing that the hub closes.
        coming = connect(url, compression=None, max_queue=None)
        self._here[name] = await self._stack.enter_async_context(coming)
        self._heard[name] = deque()
        welcome = await self._hear(name)
        self._epoch = welcome["payload"]["epoch"]
        if example is not None and "kind" in example:
            self._likeness.check(welcome, example)
        elif example is not None:
            shown = {member: welcome["payload"].get(member) for member in example}
            self._likeness.check(shown, example)

    async def _resume(self, name: str, after: str, example: Any) -> None:
        await self.join(name, example, after=after, epoch=self._epoch)

    async def _serve(self, name: str, conn: str, example: Any) -> None:
        await self.join(name, example, conn=conn, serve=1)

    async def _come_as_guest(self, name: str, example: Any) -> None:
        self._tokens[name] = self._invitation
        await self.join(name, example)

    async def _send(self, name: str, example: Any) -> None:
        if "id" in example:
            self._sent.add(example["id"])
        await self._here[name].send(self._likeness.real(json.dumps(example)))
        # Whatever the page does next comes after it, also when someone else does it.
        kept = [await self._hear(name)]
        while not _answers(kept[-1], example):
            kept.append(await self._hear(name))
        self._heard[name].extendleft(reversed(kept))

    async def _everyone_gets(self, example: Any) -> None:
        for name in self._here:
            await self._get(name, example)

    async def _get(self, name: str, example: Any) -> None:
        told = await self._hear(name)
        while self._may_pass_over(told, example):
            told = await self._hear(name)
        self._likeness.check(told, example)
        self._invitation = told["payload"].get("token", self._invitation)

    async def _leave(self, name: str) -> None:
        await self._here.pop(name).close()

    async def _closed(self, name: str, code: str) -> None:
        close = await ending(self._here.pop(name))
        assert close.code == int(code), close

    async def _hear(self, name: str) -> Envelope:
        if self._heard[name]:
            return self._heard[name].popleft()
        return json.loads(await self._here[name].recv())

    def _may_pass_over(self, told: Envelope, example: Envelope) -> bool:
        if told["id"] in self._sent:
            return bool(told["id"] != example["id"])
        another = (told["kind"], told.get("seq")) != (example["kind"], example.get("seq"))
        return another and told["kind"].startswith(SILENT)


def _answers(told: Envelope, sent: Envelope) -> bool:
    """Whether this is what was sent, coming back, or its refusal."""
    if "id" not in sent:
        return bool(told["kind"] == sent["kind"])
    refused = told["kind"] == "system.error" and told["correlation_id"] == [sent["id"]]
    return refused or bool(told["id"] == sent["id"])


class Likeness:
    """Whether a hub says what a page shows, up to what is different each time."""

    def __init__(self) -> None:
        self._bound: dict[str, str] = {}

    def real(self, shown: str) -> str:
        """What a page shows, with the ids that the hub made this time."""
        return MADE_ID.sub(lambda found: self._bound[found[0]], shown)

    def check(self, told: Any, shown: Any, where: str = "the example") -> None:
        """Compare them, member by member."""
        assert type(told) is type(shown), f"{where}: {told} is not {shown}"
        if isinstance(shown, dict):
            assert told.keys() == shown.keys(), f"{where}: {sorted(told)} are not {sorted(shown)}"
            for member, value in shown.items():
                self.check(told[member], value, member)
        elif isinstance(shown, list):
            assert len(told) == len(shown), f"{where}: {told} is not {shown}"
            for one, other in zip(told, shown, strict=True):
                self.check(one, other, where)
        elif where in VARYING:
            for text in (told, shown):
                assert VARYING[where].fullmatch(text), f"{where}: {text} has another form"
        elif isinstance(shown, str):
            self._check_text(told, shown, where)
        else:
            assert told == shown, f"{where}: {told} is not {shown}"

    def _check_text(self, told: str, shown: str, where: str) -> None:
        for made in MADE_ID.findall(shown):
            if made not in self._bound:
                found = MADE_ID.search(told)
                assert found, f"{where}: {told} holds no id that the hub made"
                self._bound[made] = found[0]
        parts = map(re.escape, self.real(shown).split("…"))
        assert re.fullmatch(".+".join(parts), told), f"{where}: {told} is not {shown}"
