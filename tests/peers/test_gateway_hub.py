"""A hub behind another hub: what is behind the inner one can be used at the outer one."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from folkmoot.settings.backends import SecretReference
from tests.mcp_harness import Meeting, both_eras
from tests.peers.clients import Ears
from tests.peers.gateway import backend, fronted, guest, token_of
from tests.peers.notes_script import WANTS_LOGS
from tests.peers.script import LOGGED
from tests.peers.sdk_server import Notebook, notebook_http
from tests.peers.servers import Place

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")

INBOX = "inner://mmp/-/mailboxes/inbox"
TODAY = "inner://notes/-/note/--02d/today"


@asynccontextmanager
async def two_hubs(
    folder: Path, era: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Meeting, Meeting, Notebook]]:
    """The outer hub and the inner one, which it comes to with an account of its own there."""
    book = Notebook()
    async with (
        notebook_http(book) as url,
        fronted(folder / "inner", backend("notes", Place("http", url=url))) as inner,
    ):
        monkeypatch.setenv("INNER_TOKEN", await token_of(inner, "outer"))
        headers = {"Authorization": SecretReference(env="INNER_TOKEN", prefix="Bearer ")}
        spec = backend("inner", Place("http", url=inner.url), headers=headers)
        async with fronted(folder / "outer", spec, era=era) as outer:
            yield outer, inner, book


def told(result: Any) -> Any:
    assert not result.is_error, result
    return json.loads(result.content[0].text)


@both_eras
@pytest.mark.requirement(
    "gateway.routes-by-namespace",
    "gateway.tools-aggregated",
    "gateway.foreign-uris",
    "gateway.result-uris",
    "gateway.no-caller-credentials",
)
async def test_everything_of_a_hub_can_be_used_through_another(era, tmp_path, monkeypatch):
    async with two_hubs(tmp_path, era, monkeypatch) as (outer, _, book):
        token, ears = await token_of(outer, "ada"), Ears()
        async with guest(outer, token, ears) as client:
            names = {tool.name for tool in (await client.list_tools()).tools}
            assert {"msg_send", "inner_msg_send", "inner_notes_add"} <= names
            # There the outer hub is someone; who asked it is nobody's business.
            assert told(await client.call_tool("inner_msg_whoami", {}))["handle"] == "outer"
            assert told(await client.call_tool("msg_whoami", {}))["handle"] == "ada"
            sum_ = await client.call_tool("inner:notes_add", {"a": 2, "b": 3})
            assert sum_.structured_content == {"result": 5}
            await check_questions(client, ears, era)
            await check_telling(client, ears)
            for uri in (INBOX, TODAY, "inner://notes/-/note/--02d/other"):
                [read] = (await client.read_resource(uri)).contents
                assert read.uri == uri
            shown = (await client.call_tool("inner_notes_show_all", {})).content
            assert (shown[3].uri, shown[4].resource.uri) == (
                "inner://notes/-/note/--02d/tomorrow",
                TODAY,
            )
            prompt = await client.get_prompt("inner_notes_summarise", {"topic": "rain"})
            assert prompt.messages[0].content.text == "Summarise rain."
            await client.call_tool("inner_notes_note_headers", {})
            assert token not in str(book.headers)


async def check_questions(client: Any, ears: Ears, era: str) -> None:
    """A question passes two hubs, and so does its answer, twice in one call."""
    greeted = await client.call_tool("inner_notes_greet", {})
    assert greeted.content[0].text == "Hello, Ada: The model says ✓"
    assert ears.asked[0]["message"] == "Who are you?"
    visited = await client.call_tool("inner_notes_visit", {"url": "https://example.org/x"})
    # In the handshake era the tool waits for the answer, and has no state to tell of.
    stated = " https://example.org/x" if era == "stateless" else ""
    assert visited.content[0].text == f"accept{stated}"


async def check_telling(client: Any, ears: Ears) -> None:
    """So do progress and log messages."""
    progress: list[Any] = []

    async def note(*done: Any) -> None:
        progress.append(done)

    work = {"steps": 2}
    await client.call_tool("inner_notes_work", work, progress_callback=note, meta=WANTS_LOGS)
    await ears.until(LOGGED, count=2)
    assert progress == [(1.0, 2.0, "step 1"), (2.0, 2.0, "step 2")]
    logs = [each["params"]["data"] for each in ears.notices if each["method"] == LOGGED]
    assert logs == ["did 1", "did 2"]


@pytest.mark.long
@both_eras
@pytest.mark.requirement("gateway.shared-link")
async def test_a_change_behind_two_hubs_is_heard_at_the_outer_one(era, tmp_path, monkeypatch):
    async with two_hubs(tmp_path, era, monkeypatch) as (outer, inner, _):
        token, ears = await token_of(outer, "ada"), Ears()
        ben = await inner.person("ben")
        async with guest(outer, token, ears) as client:
            if era == "handshake":
                for uri in (INBOX, TODAY):
                    await client.session.subscribe_resource(uri)
                await ben.call("msg_send", to="outer", body="Hello")
                await client.call_tool("inner_notes_touch", {"name": "today"})
                heard = set()
                while heard != {INBOX, TODAY}:
                    notice = await ears.until("notifications/resources/updated")
                    ears.notices.remove(notice)
                    heard.add(notice["params"]["uri"])
                return
            async with client.listen(resource_subscriptions=[INBOX, TODAY]) as news:
                await ben.call("msg_send", to="outer", body="Hello")
                await client.call_tool("inner_notes_touch", {"name": "today"})
                events = aiter(news)
                assert {(await anext(events)).uri, (await anext(events)).uri} == {INBOX, TODAY}
