"""A server made with the official SDK behind the hub."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.harness import run
from tests.mcp_harness import both_eras
from tests.peers.clients import Ears
from tests.peers.gateway import backend, fronted, guest, token_of
from tests.peers.notes_script import NAMESPACE, PROVED, check_place
from tests.peers.sdk_server import Notebook, notebook_http
from tests.peers.servers import Place

pytestmark = [
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
    pytest.mark.timeout(600),
]

CHANGED = "notifications/tools/list_changed"


@pytest.mark.requirement(*PROVED)
async def test_clients_of_both_eras_get_of_a_server_of_the_sdk_what_they_get_without_the_hub(
    tmp_path: Path,
) -> None:
    async with notebook_http(Notebook()) as url:
        await check_place(Place("http", url=url), tmp_path)


@pytest.mark.long
@pytest.mark.requirement(*PROVED)
def test_the_same_is_so_where_a_server_of_the_sdk_is_a_process_of_the_hub(tmp_path: Path) -> None:
    command = (sys.executable, "-m", "tests.peers.sdk_server")
    run(check_place(Place("stdio", command), tmp_path))


@both_eras
@pytest.mark.requirement("gateway.routes-by-namespace")
async def test_a_call_that_is_given_up_is_cancelled_at_the_server_it_went_to(
    era: str, tmp_path: Path
) -> None:
    books = [Notebook(), Notebook()]
    async with notebook_http(books[0]) as one, notebook_http(books[1]) as two:
        backends = [
            backend(name, Place("http", url=url)) for name, url in (("one", one), ("two", two))
        ]
        async with (
            fronted(tmp_path, *backends, era=era) as there,
            guest(there, await token_of(there, "ada")) as client,
        ):
            waiting = [
                asyncio.ensure_future(client.call_tool(name, {}))
                for name in ("one_hang", "two_hang")
            ]
            for book in books:
                await book.hanging.wait()
            ended = books[0].over
            waiting[0].cancel()
            await asyncio.wait(waiting[:1])
            await ended.wait()
            assert (books[0].happened, books[1].happened) == (["cancelled"], [])
            assert not waiting[1].done()
            waiting[1].cancel()
            await asyncio.wait(waiting)


@both_eras
@pytest.mark.requirement("gateway.tools-aggregated", "gateway.shared-link")
async def test_clients_hear_that_a_server_has_other_tools_and_that_a_resource_has_changed(
    era: str, tmp_path: Path
) -> None:
    async with notebook_http(Notebook()) as url:
        place = Place("http", url=url)
        async with fronted(tmp_path, backend(NAMESPACE, place, new_tools="list"), era=era) as there:
            token, ears = await token_of(there, "ada"), Ears()
            async with guest(there, token, ears) as client:
                hear = check_session if era == "handshake" else check_stream
                await hear(client, ears)
                assert not (await client.call_tool("notes_whistle", {})).is_error


async def has_learned(client: Any) -> bool:
    return "notes_whistle" in {tool.name for tool in (await client.list_tools()).tools}


async def check_session(client: Any, ears: Ears) -> None:
    uri = "notes://note/-/today"
    await client.session.subscribe_resource(uri)
    await client.call_tool("notes_touch", {"name": "today"})
    assert (await ears.until("notifications/resources/updated"))["params"]["uri"] == uri
    await client.call_tool("notes_learn", {"name": "whistle"})
    while not await has_learned(client):
        await ears.until(CHANGED)
        # One of before the call may have come late.
        ears.notices.clear()


async def check_stream(client: Any, _: Ears) -> None:
    uri = "notes://note/-/today"
    async with client.listen(tools_list_changed=True, resource_subscriptions=[uri]) as news:
        events = aiter(news)
        await client.call_tool("notes_touch", {"name": "today"})
        while uri not in str(await anext(events)):
            pass
        await client.call_tool("notes_learn", {"name": "whistle"})
        while not await has_learned(client):
            await anext(events)
