"""`Hub`: a method for each route, that asks what the route takes and reads what it answers."""

from __future__ import annotations

import asyncio
import inspect
import re
import subprocess
import sys
from io import BytesIO
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec
import pytest
from jsonschema import Draft202012Validator

from docs.pages.client import served, snake
from folkmoot.client import (
    AnswerInvalid,
    AuthenticationRequired,
    Hub,
    HubUnreachable,
    RoomNotFound,
)
from folkmoot.core import errors as e
from folkmoot.operations.routes import COMPONENTS, Endpoint
from tests.transports.rest.support import House, house

METHODS = {snake(each.id): each for each in served()}
every_method = pytest.mark.parametrize("name", METHODS)


class Asked(Hub):
    """Answers nothing, and remembers what was asked."""

    def exchange(self, *asked: Any) -> tuple[int, Any]:
        self.asked = asked
        raise AnswerInvalid("Nothing is answered.")


def example(schema: dict[str, Any]) -> Any:
    """A value that fits a schema."""
    if "enum" in schema:
        return schema["enum"][0]
    if schema.get("pattern", "").startswith("^[a-z0-9]"):
        return "tea"
    values = {"string": "ab/c", "integer": 1, "boolean": True, "array": [], "object": {}}
    return values[schema["type"]] if "type" in schema else {}


@every_method
def test_a_method_asks_what_its_route_takes(name):
    each: Endpoint = METHODS[name]
    hub, properties = Asked("http://hub.example/moot", "sk_1"), each.row.schema["properties"]
    elsewhere = (*each.path_parameters, *each.query)
    given = {it.name: example(properties[it.name]) for it in elsewhere}
    if each.body:
        given |= {each.route.body: each.route.example} if each.route.body else each.route.example
    taken = inspect.signature(getattr(Hub, name)).parameters
    assert {*taken} - {"self", "file"} == {*properties} - {*each.route.fixed}
    if each.route.media:
        given["file"] = BytesIO()
    with pytest.raises(AnswerInvalid):
        getattr(hub, name)(**given)
    method, path, body, headers, _, into = hub.asked
    where = urlsplit(path)
    assert method == each.method
    assert into is given.get("file")
    assert headers["authorization"] == "Bearer sk_1"
    pattern = re.sub(r"\\\{\w+\\\}", "([^/]+)", re.escape(each.path))
    found = re.fullmatch(f"/moot{pattern}", f"/moot{where.path}")
    assert found is not None
    named = [it.name for it in each.path_parameters]
    assert [unquote(it) for it in found.groups()] == [str(given[it]) for it in named]
    assert {*parse_qs(where.query)} <= {it.name for it in each.query}
    assert (body is not None) is bool(each.body)
    if body is not None:
        schema = {**COMPONENTS[each.body], "components": {"schemas": COMPONENTS}}
        Draft202012Validator(schema).validate(msgspec.json.decode(body))


async def hub_of(here: House, handle: str) -> Hub:
    return Hub(here.hub.base_url, (await here.hub.accounts.register(handle)).token)


async def test_a_hub_is_used_by_its_methods(tmp_path):
    async with house(tmp_path) as here:
        ann, bob = await hub_of(here, "ann"), await hub_of(here, "bob")

        def used() -> None:
            sent = ann.send_message("bob", body="Tea at five?")
            (message,) = bob.list_messages().messages
            assert (message.id, message.body) == (sent.message_id, "Tea at five?")
            bob.reply_to_message(message.id, body="Gladly.")
            room = ann.create_room("tea", access="invite", capabilities=["chat.*"])
            assert (room.role, room.capabilities) == ("owner", ["chat.*"])
            # What is left out stays, and null goes back to the default.
            assert ann.change_room("tea", access="open").capabilities == ["chat.*"]
            assert ann.change_room("tea", capabilities=None).capabilities != ["chat.*"]
            said = bob.post_message(
                "tea",
                {"protocol": "mcpx/v1", "kind": "chat.message", "payload": {"text": "Hello"}},
            )
            assert [it["id"] for it in ann.read_messages("tea").messages] == [said["id"]]
            kept = BytesIO()
            ann.export_me(kept)
            everything = msgspec.json.decode(kept.getvalue())
            assert everything["account"]["handle"] == "ann"
            assert "Gladly." in kept.getvalue().decode()
            ann.delete_room("tea")
            assert ann.list_rooms().rooms == []

        await asyncio.to_thread(used)


async def test_a_refusal_is_raised_as_the_error_with_its_code(tmp_path):
    async with house(tmp_path) as here:
        ann, url = await hub_of(here, "ann"), here.hub.base_url

        def refused() -> None:
            with pytest.raises(RoomNotFound):
                ann.get_room("tea")
            with pytest.raises(e.ContentMissing) as caught:
                ann.send_message("bob")
            assert caught.value.message
            with pytest.raises(AuthenticationRequired):
                Hub(url).get_account()
            with pytest.raises(e.TokenInvalid):
                Hub(url, "sk_" + "0" * 64).get_account()

        await asyncio.to_thread(refused)


async def test_a_hub_that_is_not_there_or_is_none_is_told_apart(tmp_path):
    with pytest.raises(HubUnreachable):
        Hub("http://127.0.0.1:1").get_account()
    async with house(tmp_path) as here:
        with pytest.raises(AnswerInvalid, match="is not a hub"):
            await asyncio.to_thread(Hub(here.hub.base_url).ask, "GET", "/metrics", dict[str, Any])


def test_a_hub_is_asked_without_loading_a_server_or_a_loop():
    script = (
        "import sys\n"
        "from folkmoot.client import Hub\n"
        "heavy = {'asyncio', 'picows', 'starlette', 'http.client', 'folkmoot.operations'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
