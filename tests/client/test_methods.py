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

from folkmoot.client import (
    AnswerInvalid,
    AuthenticationRequired,
    Hub,
    HubUnreachable,
    RoomNotFound,
)
from folkmoot.client.asking import Method
from folkmoot.client.transports import HubAnswer, HubRequest
from folkmoot.core import errors as e
from folkmoot.operations.declare import FOR_PAGES
from folkmoot.operations.routes import COMPONENTS, ENDPOINTS, Endpoint
from tests.transports.rest.support import House, house

METHODS = {name: it for name, it in vars(Hub).items() if isinstance(it, Method)}
every_method = pytest.mark.parametrize("name", METHODS)


class Asked:
    """A transport that answers nothing, and remembers what was asked."""

    name, most = "http://hub.example", 1

    def send(self, request: HubRequest, _answer: HubAnswer, _seconds: float | None) -> None:
        self.request = request
        raise AnswerInvalid("Nothing is answered.")


def example(schema: dict[str, Any]) -> Any:
    """A value that fits a schema."""
    if "enum" in schema:
        return schema["enum"][0]
    if schema.get("pattern", "").startswith("^[a-z0-9]"):
        return "tea"
    values = {"string": "ab/c", "integer": 1, "boolean": True, "array": [], "object": {}}
    return values[schema["type"]] if "type" in schema else {}


def routes() -> dict[str, list[Endpoint]]:
    """The routes that a method asks for, by its name."""
    found: dict[str, list[Endpoint]] = {}
    for name, method in METHODS.items():
        ids = {route.id for route in method.find().as_routed().routes}
        found[name] = [each for each in ENDPOINTS if each.id in ids]
    return found


@every_method
def test_a_method_asks_what_its_route_takes(name):
    asked = Asked()
    hub = Hub(asked, "sk_1")
    taken = inspect.signature(METHODS[name].find().function).parameters
    for each in routes()[name]:
        properties = each.row.schema["properties"]
        elsewhere = (*each.path_parameters, *each.query)
        given = {it.name: example(properties[it.name]) for it in elsewhere} | each.route.fixed
        if each.body:
            fits = each.route.example
            given |= {each.route.body: fits} if each.route.body else fits
        with pytest.raises(AnswerInvalid):
            getattr(hub, name)(**{it: given[it] for it in given if it in taken})
        where = urlsplit(asked.request.target)
        assert asked.request.method == each.method
        assert asked.request.headers["authorization"] == "Bearer sk_1"
        pattern = re.sub(r"\\\{\w+\\\}", "([^/]+)", re.escape(each.path))
        found = re.fullmatch(pattern, where.path)
        assert found is not None
        named = [it.name for it in each.path_parameters]
        assert [unquote(it) for it in found.groups()] == [str(given[it]) for it in named]
        assert {*parse_qs(where.query)} <= {it.name for it in each.query}
        assert bool(asked.request.body) is bool(each.body)
        if each.body:
            schema = {**COMPONENTS[each.body], "components": {"schemas": COMPONENTS}}
            Draft202012Validator(schema).validate(msgspec.json.decode(asked.request.body))


def test_every_route_of_a_program_has_a_method():
    """But for streams of events, and what is for the hub's own pages."""
    found = [it.find() for it in METHODS.values()]
    rows = [it.as_routed() for it in found]
    rows += [it.as_routed(others=True) for it in found if len(getattr(it, "rows", ())) > 1]
    asked = {route.id for row in rows for route in row.routes}
    left = {
        each.id
        for each in ENDPOINTS
        if each.row.events is None and each.row.commands != FOR_PAGES and each.id not in asked
    }
    assert left == set()


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
            ann.into(kept).export_me()
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
            await asyncio.to_thread(
                Hub(here.hub.base_url).exchange, "GET", "/metrics", b"", {}, 5.0
            )


def test_a_hub_is_asked_without_loading_a_server_or_a_loop():
    script = (
        "import sys\n"
        "from folkmoot.client import Hub\n"
        "heavy = {'asyncio', 'picows', 'starlette', 'http.client', 'folkmoot.operations.row'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
