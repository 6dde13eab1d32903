"""What `tools/list` shows, in which spelling and to whom."""

from __future__ import annotations

import re

import pytest
from mcp.client import advertise

from tests.mcp_harness import (
    INITIALIZE,
    MODERN,
    Person,
    both_eras,
    modern,
    one_era,
    sse_json,
)

APPS = "io.modelcontextprotocol/ui"
APP_TYPE = "text/html;profile=mcp-app"
SEED_TYPE = "application/vnd.mcp.app+html"
# In sessions tasks are a capability of their own.
TASKS: dict[str, object] = {"io.modelcontextprotocol/tasks": {}}
OFFERED = {APPS: {"mimeTypes": [APP_TYPE, SEED_TYPE]}}
APP_ONLY = {"msg/mark_read", "msg/archive", "msg/star", "msg/mute"}


@pytest.mark.requirement(
    "wire-name.safe-default",
    "wire-name.meta",
    "wire-name.model-api-safe",
    "wire-name.no-root-combinators",
    "mcp.app-only-listing",
    "mcp.both-eras",
)
@both_eras
async def test_names_are_safe_for_model_apis_by_default(hub):
    stranger = await hub.stranger()
    tools = (await stranger.client.list_tools()).tools
    assert len(tools) == 44
    for tool in tools:
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", tool.name)
        assert tool.title == tool.meta["folkmoot/name"]
        assert tool.name == tool.title.replace("/", "_")
        assert tool.title not in APP_ONLY
        assert not {"oneOf", "anyOf", "allOf"} & tool.input_schema.keys()


@pytest.mark.requirement("mcp.both-eras")
async def test_a_client_that_chooses_by_itself_ends_in_the_stateless_era(hub):
    hub.era, alice = "auto", await hub.hub.accounts.register("alice")
    person = await hub.returning(alice.token)
    assert person.client.protocol_version == MODERN
    assert (await person.call("msg_whoami"))["handle"] == "alice"


@pytest.mark.requirement("wire-name.chosen", "wire-name.canonical-combinators")
@one_era
@pytest.mark.settings(mcp={"names": "canonical"})
async def test_the_style_is_chosen_by_url_else_by_setting(hub):
    for query, name in (("", "msg/send"), ("?names=canonical", "msg/send")):
        stranger = await hub.stranger(query)
        tools = {tool.name: tool for tool in (await stranger.client.list_tools()).tools}
        assert tools[name].input_schema["oneOf"] == [
            {"required": ["body"]},
            {"required": ["encrypted_payload"]},
        ]
        assert tools[name].title == "msg/send"
    stranger = await hub.stranger("?names=safe")
    listed = [tool.name for tool in (await stranger.client.list_tools()).tools]
    assert "msg_send" in listed


@pytest.mark.requirement("wire-name.both-accepted", "wire-name.canonical-inside")
@both_eras
async def test_a_call_may_use_either_spelling_whatever_was_listed(hub):
    alice = await hub.person("alice")
    for query in ("", "&names=safe", "&names=canonical"):
        again = await hub.returning(alice.token, query)
        for name in ("msg/whoami", "msg_whoami"):
            assert (await again.call(name))["handle"] == "alice"


@pytest.mark.requirement("mcp.app-only-listing", "mcp.app-only-marked")
@both_eras
async def test_tools_of_the_app_are_listed_to_clients_with_apps_or_when_asked_for(hub):
    with_apps = [
        {"extensions": [advertise(APPS, {"mimeTypes": types})]}
        for types in ([APP_TYPE], [SEED_TYPE], ["text/plain", SEED_TYPE])
    ]
    for person in (
        *[await hub.stranger(**each) for each in with_apps],
        await hub.stranger("?tools=all"),
    ):
        tools = (await person.client.list_tools()).tools
        assert len(tools) == 48
        marked = {
            tool.title
            for tool in tools
            if tool.meta and tool.meta.get("ui", {}).get("visibility") == ["app"]
        }
        assert marked == APP_ONLY
    resources = (await person.client.list_resources()).resources
    assert {str(resource.uri) for resource in resources} == {
        "mmp://mailboxes/inbox",
        "ui://mmp-inbox",
    }
    assert not (await person.client.list_resource_templates()).resource_templates


@pytest.mark.requirement("app.seed-type", "mcp.app-only-listing")
@both_eras
async def test_the_app_has_the_type_that_its_client_declares_in_the_list_and_when_read(hub):
    for types, served in (
        ([SEED_TYPE], SEED_TYPE),
        ([APP_TYPE], APP_TYPE),
        ([SEED_TYPE, APP_TYPE], APP_TYPE),
    ):
        person = await hub.stranger(extensions=[advertise(APPS, {"mimeTypes": types})])
        assert await app_types(person) == (served, served)
    for settings in ({}, {"mimeTypes": SEED_TYPE}, {"mimeTypes": ["text/html"]}):
        person = await hub.stranger(extensions=[advertise(APPS, settings)])
        assert len((await person.client.list_tools()).tools) == 44
        assert await app_types(person) == (APP_TYPE, APP_TYPE)


async def app_types(person: Person) -> tuple[str | None, str | None]:
    """The type of the app where resources are listed, and where it is read."""
    (content,) = (await person.client.read_resource("ui://mmp-inbox")).contents
    listed = (await person.client.list_resources()).resources
    (app,) = (each for each in listed if str(each.uri) == "ui://mmp-inbox")
    return app.mime_type, content.mime_type


async def test_a_query_that_means_nothing_is_refused(hub):
    message, headers = modern("tools/list")
    for query, sentence in (
        ("?names=kebab", "The query parameter names takes safe or canonical."),
        ("?tools=some", "The query parameter tools takes all or search."),
        ("?" + "&".join("abcdefghij" * 6), "The URL has too many query parameters."),
    ):
        answer = await hub.post(message, query=query, headers=headers)
        assert (answer.status, answer.json()["error"]["message"]) == (400, sentence)
    answer = await hub.post(message, query="?utm_source=mail", headers=headers)
    assert answer.status == 200


@pytest.mark.requirement("mcp.apps-offered")
async def test_a_session_is_offered_the_apps_that_discovery_offers(hub):
    message, headers = modern("server/discover")
    found = (await hub.post(message, headers=headers)).json()["result"]
    for version in ("2025-11-25", "2025-06-18", "2025-03-26", "1999-01-01"):
        opening = {**INITIALIZE["params"], "protocolVersion": version}
        opened = sse_json(await hub.post({**INITIALIZE, "params": opening}))["result"]
        # Whoever names a version that is not spoken is offered the newest.
        assert opened["protocolVersion"] == {"1999-01-01": "2025-11-25"}.get(version, version)
        assert opened["capabilities"]["extensions"] == OFFERED
        assert found["capabilities"]["extensions"] == {**OFFERED, **TASKS}


@pytest.mark.requirement("mcp.discover", "mcp.stateless-no-get")
async def test_the_stateless_era_needs_neither_handshake_nor_session(hub):
    message, headers = modern("server/discover")
    answer = await hub.post(message, headers=headers)
    assert answer.status == 200
    assert "mcp-session-id" not in answer.headers
    result = answer.json()["result"]
    assert result["supportedVersions"] == ["2026-07-28"]
    assert result["capabilities"]["resources"]["subscribe"] is True
    assert result["capabilities"]["extensions"] == {**OFFERED, **TASKS}
    assert (await hub.ask("GET", headers=headers)).status == 401
    assert (await hub.ask("DELETE", headers=headers)).status == 405
