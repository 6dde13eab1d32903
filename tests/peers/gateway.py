"""A hub with servers behind it, and clients that know a server by its own names."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from mcp import Client

from folkmoot.app import Hub
from folkmoot.gateway.mapping import canonical_uri, own_uri
from folkmoot.settings.backends import BackendSpec, GatewaySpec
from tests.mcp_harness import ERAS, Meeting, settings, until
from tests.peers.clients import SECONDS, Ears, client_of
from tests.peers.servers import Place

# What a result has in the stateless era alone.
OF_AN_ERA: Final = frozenset(("resultType", "ttlMs", "cacheScope"))
SERVER_KEY: Final = "io.modelcontextprotocol/serverInfo"
NAME_KEY: Final = "folkmoot/name"


def backend(namespace: str, place: Place, **more: Any) -> BackendSpec:
    """The settings of a server that everyone may use."""
    where: dict[str, Any] = {"command": place.command} if place.command else {"url": place.url}
    more = {"everyone": True, "connect_seconds": SECONDS, **more}
    return BackendSpec(name=namespace, namespace=namespace, **where, **more)


@asynccontextmanager
async def fronted(
    folder: Path,
    *backends: BackendSpec,
    era: str = "handshake",
    grants: dict[str, tuple[str, ...]] | None = None,
    reached: bool = True,
    **values: object,
) -> AsyncIterator[Meeting]:
    """A hub with these servers behind it, once all of them were reached."""
    spec = GatewaySpec(backends={each.namespace: each for each in backends}, grants=grants or {})
    async with Hub(settings(folder, **values), gateway=spec).running() as hub:
        there = Meeting(hub, era)
        try:
            if reached:
                await reaches(hub, *spec.backends)
            yield there
        finally:
            await there.everyone_leaves()


async def reaches(hub: Hub, *namespaces: str) -> None:
    """Wait until servers are up and what they offer is listed."""

    async def all_there() -> bool:
        states, absent = hub.behind.health(), hub.behind.gateway.catalogue.absent
        return all(states.get(name) == "up" and name not in absent for name in namespaces)

    await until(all_there)


async def token_of(there: Meeting, handle: str) -> str:
    """The token of a new account."""
    return (await there.hub.accounts.register(handle)).token


@asynccontextmanager
async def guest(
    there: Meeting, token: str, ears: Ears | None = None, *, era: str = "", query: str = ""
) -> AsyncIterator[Client]:
    """The SDK's client of a hub for whoever has a token."""
    place = Place("http", url=f"{there.url}?token={token}{query}")
    async with client_of(place, ears, mode=ERAS[era or there.era]) as client:
        yield client


class Through:
    """The SDK's client of a hub, for a script that knows nothing but one server behind it.

    Whatever is asked goes under the namespace of that server; `as_own` takes answers back.
    """

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._namespace = namespace
        self.session: Any = _Session(client, self.uri)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def name(self, own: str) -> str:
        """A tool or a prompt as it is called here."""
        return f"{self._namespace}_{in_snake_case(own)}"

    def uri(self, own: str) -> str:
        """A URI of another scheme as it is here."""
        return f"{self._namespace}://{own.replace('://', '/-/', 1)}"

    async def call_tool(self, name: str, arguments: Any = None, **more: Any) -> Any:
        return await self._client.call_tool(self.name(name), arguments, **more)

    async def get_prompt(self, name: str, arguments: Any = None) -> Any:
        return await self._client.get_prompt(self.name(name), arguments)

    async def read_resource(self, uri: str) -> Any:
        return await self._client.read_resource(self.uri(uri))

    async def complete(self, ref: Any, argument: Any) -> Any:
        by_name = {"name": self.name(ref.name)} if hasattr(ref, "name") else {}
        update = by_name or {"uri": self.uri(ref.uri)}
        return await self._client.complete(ref.model_copy(update=update), argument)

    def listen(self, *, resource_subscriptions: list[str]) -> Any:
        uris = [self.uri(each) for each in resource_subscriptions]
        return self._client.listen(resource_subscriptions=uris)

    async def send_ping(self) -> Any:
        """Something that is answered at once, in either era."""
        return await self._client.list_prompts(cache_mode="bypass")


class _Session:
    def __init__(self, client: Client, uri: Any) -> None:
        self._session = client.session
        self._uri = uri

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    async def subscribe_resource(self, uri: str) -> Any:
        return await self._session.subscribe_resource(self._uri(uri))

    async def unsubscribe_resource(self, uri: str) -> Any:
        return await self._session.unsubscribe_resource(self._uri(uri))


def in_snake_case(own: str) -> str:
    """The names that servers of these tests have, as they are here."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|-", "_", own).lower()


def as_own(value: Any, namespace: str) -> Any:
    """JSON values with the server's own URIs, and without what only one era says."""
    if isinstance(value, dict):
        told = {name: each for name, each in value.items() if name not in OF_AN_ERA}
        meta = told.pop("_meta", None) or {}
        meta = {name: each for name, each in meta.items() if name != SERVER_KEY}
        told = {name: as_own(each, namespace) for name, each in told.items()}
        return {**told, "_meta": meta} if meta else told
    if isinstance(value, list):
        return [as_own(each, namespace) for each in value]
    if isinstance(value, str):
        canonical = canonical_uri(value, {namespace})
        return value if canonical is None else own_uri(namespace, canonical)
    return value


def check_tools(own: list[Any], listed: list[Any], namespace: str) -> None:
    """All tools of a server are there, and what it says of them, under names of its namespace."""
    here = {
        tool["_meta"][NAME_KEY]: tool
        for tool in listed
        if tool["_meta"][NAME_KEY].startswith(f"{namespace}:")
    }
    wanted = {f"{namespace}:{in_snake_case(tool['name'])}": tool for tool in own}
    assert here.keys() == wanted.keys()
    for canonical, tool in wanted.items():
        shown = here[canonical]
        assert shown["name"] == canonical.replace(":", "_")
        hints = tool.get("annotations", {})
        assert shown["title"] == (tool.get("title") or hints.get("title") or canonical)
        for member in ("description", "inputSchema", "outputSchema"):
            assert shown.get(member) == tool.get(member), canonical
        assert shown.get("annotations", {}) == hints, canonical


def check_same(
    own: dict[str, Any], here: dict[str, Any], namespace: str, otherwise: frozenset[str]
) -> None:
    """What a client gets by way of the hub is what it gets from the server, but for some of it."""
    for name in own.keys() - otherwise:
        assert (name, as_own(here[name], namespace)) == (name, as_own(own[name], namespace))
    check_lists(own, here, namespace)
    assert 'b\\" is a required property' in here["bad arguments"]["content"][0]["text"]


def check_prompts(own: list[Any], listed: list[Any], namespace: str) -> None:
    """All prompts of a server are there, and what it says of them."""
    here = {prompt.pop("name"): prompt for prompt in listed}
    for prompt in own:
        name = f"{namespace}_{in_snake_case(prompt['name'])}"
        shown = here.pop(name)
        meta = {**prompt.get("_meta", {}), NAME_KEY: name.replace("_", ":", 1)}
        assert shown == {**{k: v for k, v in prompt.items() if k != "name"}, "_meta": meta}
    assert here == {}


def check_lists(own: dict[str, Any], here: dict[str, Any], namespace: str) -> None:
    """A hub that has one server lists what the server lists."""
    check_prompts(own["prompts"]["prompts"], here["prompts"]["prompts"], namespace)
    for name, member, key in (
        ("resources", "resources", "uri"),
        ("templates", "resourceTemplates", "uriTemplate"),
    ):
        ours = [each for each in here[name][member] if each[key].startswith(f"{namespace}://")]
        found = {each[key]: each for each in as_own(ours, namespace)}
        assert found == {each[key]: each for each in as_own(own[name][member], namespace)}
