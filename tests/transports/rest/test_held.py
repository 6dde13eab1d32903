"""Held messages over REST: the hub's, and those of the proxies of its own user."""

from __future__ import annotations

import asyncio
from typing import Any

from folkmoot.core.verdict import Hold
from folkmoot.datafolder import proxies as local
from folkmoot.datafolder.proxies import proxy_sockets
from tests.proxy.rules.support import call, envelope
from tests.proxy.test_held import folder, proxies
from tests.transports.rest.support import done, house, refused
from tests.transports.rest.test_tapes import operator

__all__ = ["folder"]

HELD = "/v1/held"
ALL = f"{HELD}?proxies=true"
ELSEWHERE = {"x-forwarded-for": "203.0.113.7"}


async def test_an_operator_sees_edits_releases_and_drops_what_the_hub_and_its_proxies_hold(
    tmp_path, folder
):
    async with (
        house(tmp_path / "hub") as here,
        proxies(folder, 4711, 4712) as (one, two),
        asyncio.TaskGroup() as tasks,
    ):
        root, ann = await operator(here), await here.person("ann")
        held = here.hub._passing.held.hold(envelope(call("wipe")), "ask first", Hold())
        own = tasks.create_task(held)
        first = await one.hold(call("delete", {"path": "/x"}), reason="Really?")
        second = await two.hold()
        assert [it["proxy"] for it in (await root.get(HELD))["held"]] == [None]
        listed = await root.get(ALL)
        found = {(it["proxy"], it["id"], it["tool"]) for it in listed["held"]}
        assert found == {(None, 1, "wipe"), (4711, 1, "delete"), (4712, 1, "delete")}
        assert listed["proxies"] == 2
        shown = await root.get(f"{HELD}/1?proxy=4711")
        assert (shown["held"]["rule"], shown["held"]["proxy"]) == ("ask first", 4711)
        message = shown["message"]
        edited: list[Any] = []
        one.on_released = edited.append
        other = {**message, "method": "tools/list"}
        wrong = {"proxy": 4711, "message": other}
        told = refused(await root.ask("POST", f"{HELD}/1/release", wrong), 400, "command_invalid")
        assert "cannot be edited" in told["message"]
        message["params"]["arguments"] = {"path": "/y"}
        done(await root.ask("POST", f"{HELD}/1/release", {**wrong, "message": message}), 200)
        assert await first == "released"
        assert edited[0].params["arguments"] == {"path": "/y"}
        dropped = {"proxy": 4712, "reason": "Not today."}
        done(await root.ask("POST", f"{HELD}/1/drop", dropped), 200)
        assert (await second).endswith("Not today.")
        gone = await root.ask("GET", f"{HELD}/1?proxy=99")
        assert "runs as process 99" in refused(gone, 400, "command_invalid")["message"]
        done(await root.ask("POST", f"{HELD}/1/release", {}), 200)
        assert await own is None
        lines = (await root.get("/v1/audit"))["lines"]
        abouts = {(it["action"], it["about"]) for it in lines}
        assert {("held.released", "4711/1"), ("held.dropped", "4712/1")} <= abouts
        for where in (ALL, f"{HELD}/1?proxy=4711"):
            assert (await ann.ask("GET", where)).status == 403
        for what in ("release", "drop"):
            answer = await ann.ask("POST", f"{HELD}/1/{what}", {"proxy": 4711})
            assert answer.status == 403


async def test_operators_elsewhere_see_no_proxies_unless_the_setting_says_so(tmp_path, folder):
    async with proxies(folder, 4711) as (waits,):
        waiting = await waits.hold()
        for who, here_sees, there_sees in (
            ("this_machine", True, False),
            ("operators", True, True),
            ("nobody", False, False),
        ):
            async with house(tmp_path / who, interceptors={"local_proxies": who}) as here:
                root = await operator(here)
                for headers, sees in (({}, here_sees), (ELSEWHERE, there_sees)):
                    listed = await root.get(ALL, **headers)
                    counted = len(listed["held"]), listed["proxies"]
                    assert counted == ((1, 1) if sees else (0, None))
                    shown = await root.ask("GET", f"{HELD}/1?proxy=4711", headers=headers)
                    assert shown.status == (200 if sees else 400), (who, headers)
                if not there_sees:
                    let = {"proxy": 4711}
                    answer = await root.ask("POST", f"{HELD}/1/release", let, headers=ELSEWHERE)
                    assert "local_proxies" in refused(answer, 400, "command_invalid")["message"]
        assert not waiting.done()
        waits.held.release(1)
        await waiting


async def test_a_proxy_that_hangs_or_talks_nonsense_keeps_nobody_else_from_being_seen(
    tmp_path, folder, monkeypatch
):
    monkeypatch.setattr(local, "PROXY_SECONDS", 1.0)
    ended = asyncio.Event()

    async def hang(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await ended.wait()
        writer.close()

    async def nonsense(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        body = b'{"held":[{"id":"<b>"}]}'
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()
        writer.close()

    async with house(tmp_path / "hub") as here, proxies(folder, 4711) as (waits,):
        hanging = await asyncio.start_unix_server(hang, folder / "proxy-1.sock")
        wrong = await asyncio.start_unix_server(nonsense, folder / "proxy-2.sock")
        root = await operator(here)
        waiting = await waits.hold()
        assert [it["proxy"] for it in (await root.get(ALL))["held"]] == [4711]
        for pid, why in ((1, "does not answer"), (2, "another version")):
            answer = await root.ask("GET", f"{HELD}/1?proxy={pid}")
            assert why in refused(answer, 400, "command_invalid")["message"]
        # A folder that others can write to is nobody's: anyone might listen there.
        folder.chmod(0o777)
        assert (await root.get(ALL))["held"] == []
        assert proxy_sockets(folder) == {}
        folder.chmod(0o700)
        waits.held.release(1)
        await waiting
        ended.set()
        for server in (hanging, wrong):
            server.close()
            await server.wait_closed()
