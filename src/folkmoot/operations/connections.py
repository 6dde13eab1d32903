"""Signing in to servers behind the hub that want it of each person: begin, end, list and forget.

A person is sent to the server's own sign-in by the browser in which they are signed in here, and
comes back in it. Whoever calls from elsewhere gets a link to the hub's page that begins it, which
opens for their account alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal, Protocol
from urllib.parse import parse_qsl

from msgspec import Struct

from folkmoot.core import errors as e
from folkmoot.core.limits import MAX_OAUTH_PARAMETER, MAX_OAUTH_PARAMETERS
from folkmoot.core.scopes import OPERATE, scope
from folkmoot.operations.apps import MAX_QUERY, session_of
from folkmoot.operations.declare import FOR_PAGES, Topic, delete, get, post
from folkmoot.operations.operator.servers import Namespace
from folkmoot.operations.rate_limits import FETCHES
from folkmoot.operations.row import Absent, AuditSpec, NoContent, describe
from folkmoot.operations.servers import mine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from folkmoot.accounts.model import Consent
    from folkmoot.operations.call import Call
    from folkmoot.settings.backends import BackendSpec

PATH: Final = "/v1/me/connections"
connecting = Topic(
    scope="account",
    needs=("gateway", "rights", "connections"),
    tool=Absent("Only a person can sign in to a server, in a browser."),
    commands=Absent("'folkmoot backends sign-in' signs in to a server."),
)


class Connections(Protocol):
    """Who has signed in to which server."""

    def spec(self, namespace: str) -> BackendSpec:
        """The settings of a server that wants its own sign-in."""

    def link(self, namespace: str, account_id: str) -> str:
        """Where an account, and no other, signs in to a server."""

    def opened(self, ticket: str, account_id: str) -> tuple[str, str]:
        """The server that a link is for, and what a call needs beyond what was asked for."""

    async def of(self, namespace: str, account_id: str) -> Consent | None:
        """The consent that the calls of an account are made with."""

    async def begin(
        self, namespace: str, account_id: str, session: str, base: str, scope: str = ""
    ) -> str:
        """Where to send a person who is to consent."""

    async def finish(self, pairs: Sequence[tuple[str, str]], account_id: str, session: str) -> str:
        """Take the tokens of a person who came back; the namespace."""

    async def forget(self, namespace: str, account_id: str) -> bool:
        """Forget a consent; whether there was one."""


class Connection(Struct, frozen=True, kw_only=True):
    """A server that wants its own sign-in, as it is for the caller."""

    namespace: Annotated[str, "The server."]
    state: Annotated[
        Literal["none", "live", "lapsed"],
        "Whether you are signed in; `lapsed` is a sign-in that the server takes no more.",
    ]
    issuer: Annotated[str, "Where you signed in; empty for not yet."]
    scope: Annotated[str, "What was asked for there."]
    since: Annotated[int | None, "When you did, in seconds since 1970."]
    shared: Annotated[bool, "Whether one sign-in is for everyone."]
    may_sign_in: Annotated[bool, "Whether you can sign in; a shared one is for operators."]


class ConnectionList(Struct, frozen=True):
    """The servers that want their own sign-in."""

    connections: Annotated[list[Connection], "By namespace."]


@connecting.reads(
    "folkmoot/connections",
    get(
        PATH,
        "listConnections",
        "List the servers that you sign in to",
        answer="The servers, by namespace.",
    ),
    scope="account.read",
)
async def connections(call: Call) -> ConnectionList:
    """The servers behind the hub that want their own sign-in, and whether you are signed in to
    each.
    """
    backends = call.services.gateway.backends
    wanting = [name for name in sorted(backends) if backends[name].spec.auth == "oauth"]
    return ConnectionList([await view(call, name) for name in wanting if mine(call, name)])


async def view(call: Call, namespace: str) -> Connection:
    """One of them."""
    found = await call.services.connections.of(namespace, call.account.id)
    shared = call.services.connections.spec(namespace).shared
    return Connection(
        namespace=namespace,
        state="none" if found is None else found.state,
        issuer="" if found is None else found.issuer,
        scope="" if found is None else found.scope,
        since=None if found is None else found.created_at,
        shared=shared,
        may_sign_in=not shared or operates(call),
    )


class ConnectionBegun(Struct, frozen=True):
    """Where to sign in."""

    url: Annotated[str, "Where to go, in a browser."]


@connecting.changes(
    "folkmoot/begin_connection",
    post(
        PATH,
        "beginConnection",
        "Begin to sign in to a server",
        answer="Where to sign in.",
        example={"namespace": "github"},
    ),
    limits=(FETCHES,),
    reaches_others=True,
    errors=(e.BackendUnknown, e.AccessDenied, e.SignInRefused, e.NotFound),
)
async def begin(
    call: Call,
    *,
    namespace: Annotated[str, describe("The server.", max_length=64)] = "",
    ticket: Annotated[
        str,
        describe("What stands in the link, in place of it.", max_length=2 * MAX_OAUTH_PARAMETER),
    ] = "",
) -> ConnectionBegun:
    """Begins to sign you in to a server behind the hub. The answer says where to go in a browser:
    on to the server's own sign-in, or, for a program, to the hub's page.
    """
    consents, who, more = call.services.connections, call.account.id, ""
    if ticket:
        namespace, more = consents.opened(ticket, who)
    checked(call, namespace)
    found = await call.services.accounts.authentication.by_id(call.caller.credential_id)
    if found is None or found.credential.kind != "browser":
        return ConnectionBegun(consents.link(namespace, who))
    base = call.caller.base_url
    return ConnectionBegun(await consents.begin(namespace, who, found.credential.id, base, more))


class ConnectionMade(Struct, frozen=True):
    """The result."""

    namespace: Annotated[str, "The server that you are signed in to."]


@connecting.adds(
    "folkmoot/finish_connection",
    post(
        f"{PATH}/finish",
        "finishConnection",
        "Sign in to a server",
        answer="The server.",
        example={"query": "code=…&state=…"},
    ),
    secret=("query",),
    reaches_others=True,
    errors=(e.SignInRefused, e.AccessDenied, e.NotFound),
    audit=AuditSpec("connection.made"),
    commands=FOR_PAGES,
)
async def finish(
    call: Call,
    query: Annotated[
        str,
        describe("The query of the address that they came to.", min_length=1, max_length=MAX_QUERY),
    ],
) -> ConnectionMade:
    """Ends signing in to a server. It is for the hub's own page, at `/oauth/callback`."""
    here = await session_of(call)
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=MAX_OAUTH_PARAMETERS)
    except ValueError:
        raise e.SignInRefused("The answer of the authorization server is not in order.") from None
    made = await call.services.connections.finish(pairs, call.account.id, here.id)
    return ConnectionMade(made)


@connecting.destroys(
    "folkmoot/forget_connection",
    delete(
        PATH + "/{namespace}",
        "forgetConnection",
        "Sign out of a server",
        status=204,
        answer="You are signed out.",
    ),
    about="namespace",
    reaches_others=True,
    errors=(e.BackendUnknown, e.AccessDenied, e.NotFound),
    audit=AuditSpec("connection.forgotten", "namespace"),
)
async def forget(call: Call, namespace: Namespace) -> NoContent:
    """Signs you out of a server behind the hub: its tokens are forgotten, and revoked there if it
    can.
    """
    checked(call, namespace)
    if not await call.services.connections.forget(namespace, call.account.id):
        raise e.NotFound(f"You are not signed in to {namespace}.")
    return NoContent()


def checked(call: Call, namespace: str) -> None:
    """Refuse a server that the caller may not use, or not sign in to."""
    if mine(call, namespace) is None:
        raise e.BackendUnknown("There is no such server, or you may not use it.")
    if call.services.connections.spec(namespace).shared and not operates(call):
        raise e.AccessDenied("Only an operator of this hub signs in to this server, for everyone.")


def operates(call: Call) -> bool:
    """Whether the caller may run the hub."""
    return call.caller.operator or scope(call.caller.principal.scope).has(OPERATE)
