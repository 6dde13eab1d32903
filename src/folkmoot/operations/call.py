"""One call of an operation: its caller, the services its handler uses, and its result."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import IO, TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

import msgspec
from msgspec import Raw, Struct

from folkmoot.core import errors as e
from folkmoot.core.policy import NOBODY, Principal
from folkmoot.operations.limits import MAX_PAGE_BYTES

if TYPE_CHECKING:
    import asyncio
    from pathlib import Path

    from folkmoot.accounts import Account, Accounts, Identity
    from folkmoot.accounts.clients import Clients
    from folkmoot.asks.rules import AskRules
    from folkmoot.asks.service import Asks
    from folkmoot.core.ports import Backup, Clock, Database
    from folkmoot.datafolder.proxies import LocalProxies
    from folkmoot.export import Exporter
    from folkmoot.gateway.gateway import Gateway
    from folkmoot.gateway.grants import Granting, GrantViews
    from folkmoot.gateway.rights import HubRights
    from folkmoot.mail import Mail
    from folkmoot.operations.connections import Connections
    from folkmoot.operations.operator.data import KeyInUse
    from folkmoot.operations.operator.hub import HubStatus, ShownSettings
    from folkmoot.operations.operator.servers import Reloading, ServerLinks
    from folkmoot.operations.operator.settings_edits import Interception
    from folkmoot.operations.row import Operation, Payload
    from folkmoot.operations.servers import CallServer
    from folkmoot.proxy.held import HeldMessages
    from folkmoot.proxy.tape.folder import TapeLibrary
    from folkmoot.ratelimits import RateLimits
    from folkmoot.rooms import Rooms, Visitor
    from folkmoot.rotation import KeyRing
    from folkmoot.settings.sections import ProxiesShown


T = TypeVar("T")

encode_payload = msgspec.json.Encoder().encode

Delivered: TypeAlias = Callable[[], Awaitable[None]]
"""To be called once the answer was handed to a client that is still there."""


class StreamEvent(Struct, frozen=True):
    """One event of a streamed answer."""

    data: Struct | dict[str, Any]
    name: str = ""
    id: str = ""
    """With which a client asks for what came after it."""


class EventStream(Struct, frozen=True):
    """A streamed answer: each event is sent as soon as it exists.

    It ends with its source, when the client leaves, and when the hub stops. A source that is to be
    closed then has `aclose`.
    """

    source: AsyncIterator[StreamEvent | bytes]
    """Events, or some that are written already."""
    ends_itself: bool = False
    """Whether the source ends with the caller's credential; else any change of the account does."""


class FileAnswer(Struct, frozen=True):
    """An answer that is a file; the transport that sends it closes it."""

    name: str
    size: int
    file: IO[bytes]


class EventFeed(Protocol):
    """Where callers follow what changes."""

    async def follow(self, caller: Caller, last_event_id: str) -> EventStream:
        """What changes from now on, or since an event, as far as the caller may know it."""


class Backups(Protocol):
    """The part that copies the database."""

    async def backup(
        self, target: str, *, overwrite: bool = False, progress: Callable[[int, int], None] | None
    ) -> Backup:
        """Copy the database into one file; cancelling stops the copy."""


ABSENT: Any = None
"""In place of a service that is not here."""


async def _nobody(_rooms: Sequence[int]) -> dict[int, int]:
    return {}


class Services(Struct, frozen=True, kw_only=True):
    """What the handlers work with.

    A hub has all of them. A stopped hub, and a proxy, have some: see `Operation.needs`.
    """

    accounts: Accounts = ABSENT
    asks: Asks = ABSENT
    """What programs ask people."""
    clients: Clients = ABSENT
    """The apps that ask to use accounts."""
    mail: Mail = ABSENT
    rooms: Rooms = ABSENT
    limits: RateLimits = ABSENT
    document: Callable[[], Raw] = Raw
    events: EventFeed | None = None
    tapes: TapeLibrary | None = None
    store: Database = ABSENT
    clock: Clock = ABSENT
    url: str = ""
    """Where clients reach the hub."""
    offline: bool = False
    """Whether no hub runs: this process has no log, so the next hub logs the audit lines."""
    permits: Callable[[Principal, str], bool] = lambda _principal, _operation: False
    """Whether someone may do an operation, by its name: for what is shown of several at once."""
    present: Callable[[Sequence[int]], Awaitable[dict[int, int]]] = _nobody
    """How many participants are in each of some rooms that is in use."""
    status: Callable[[], HubStatus] = ABSENT
    settings: Callable[[], ShownSettings] | None = None
    granting: Granting = ABSENT
    grant_views: GrantViews = ABSENT
    fleet: ServerLinks = ABSENT
    gateway: Gateway = ABSENT
    reloading: Reloading | None = None
    rights: HubRights = ABSENT
    ask_rules: Callable[[], AskRules] = ABSENT
    """The rules by which people are asked before calls."""
    connections: Connections = ABSENT
    """Who has signed in to which server."""
    call_server: CallServer = ABSENT
    held: HeldMessages = ABSENT
    proxies: LocalProxies | None = None
    """The proxies that the hub's user runs on this machine."""
    shows_proxies: ProxiesShown = "this_machine"
    """Which operators see those."""
    interception: Interception = ABSENT
    data_folder: Path | None = None
    backup_folder: Path | None = None
    """Where backups are made that name no file; none where the database is no file."""
    backups: Backups = ABSENT
    exporter: Exporter = ABSENT
    key: Callable[[], KeyInUse] = ABSENT
    key_ring: KeyRing = ABSENT

    def has(self, row: Operation) -> bool:
        """Whether an operation can be performed here."""
        return all(getattr(self, name) is not None for name in row.needs)


class Caller(Struct, kw_only=True):
    """The caller of one request, as the transport authenticated it."""

    account: Account | None = None
    principal: Principal = NOBODY
    """Who that is as policy knows them, with the scope of what they came with."""
    visitor: Visitor | None = None
    """As rooms know the caller, where that was asked for already; a guest is nothing else."""
    operator: bool = False
    """Whether it is an operator: by the hub's own socket, or a token that may operate."""
    address: str = ""
    """Where the request came from, for limits by address."""
    is_direct: Callable[[], bool] | None = None
    """Whether the request was made on the hub's own machine; None where a proxy may hide that."""
    base_url: str = ""
    """What the caller reached the hub at."""
    credential_id: str = ""
    """Of the token that authenticated the caller, or that signed the running session in."""
    confirm: Callable[[], Awaitable[bool]] | None = None
    """Whether what authenticated the caller still does; a call that waited asks again."""
    binds: bool = False
    """Whether the running session becomes an account's by registering or recovering in it."""
    session: Identity | None = None
    """Who is signed in in the browser, where an operation works without an account."""
    signed_in: bool = False
    """Whether the running session became the account's by registering or recovering in it."""
    find: Callable[[str, int], Awaitable[dict[str, Any]]] | None = None
    """Finds the tools that fit some words best, of those the caller may call."""
    has_left: bool = False
    """Whether nobody waits for an answer any more."""
    hub_stops: bool = False
    """Whether the caller is to leave because the hub stops, and still wants what it asked for."""
    progress: Callable[[Struct], None] | None = None
    """Told how far a long call is, where someone wants to know."""
    awaited: asyncio.Event | None = None
    """What `leaving` answers, once somebody has asked for it."""

    @property
    def leaving(self) -> asyncio.Event:
        """Set when the client has left or the hub is stopping; made when first asked for."""
        if self.awaited is None:
            import asyncio

            self.awaited = asyncio.Event()
            if self.has_left:
                self.awaited.set()
        return self.awaited


class Bind(Struct, frozen=True):
    """The account that the running session, or the browser, becomes while a token is good."""

    account_id: str
    token_id: str
    """Empty where no token opened it: an operator's one-time code did."""
    otherwise: Payload | None
    """What is answered where the session could not be signed in; None refuses."""
    scope: str = ""
    """Of a browser session that no token opened."""
    guest: str = ""
    """The credential of a guest, which the browser keeps instead of a session of an account."""


class Call(Struct, kw_only=True):
    """One call on its way through its handler."""

    services: Services
    caller: Caller
    account: Account
    """Who calls; operations that work without an account must not look at it."""
    arguments: Any
    """The struct that its operation takes."""
    subject: Any = None
    """Whose account it is about: the caller's, or the one that an operator means."""
    for_others: bool = False
    """Whether an operator does for someone what they could do themselves."""
    delivered: Delivered | None = None
    """Set by a handler that has something to do once its answer has arrived."""
    bind: Bind | None = None
    """Set by a handler that signs the running session in, or the browser."""
    signs_out: bool = False
    """Set by a handler that signs the browser out."""

    @property
    def visitor(self) -> Visitor:
        """The caller as rooms know them."""
        from folkmoot.rooms.access import visitor_of

        return self.caller.visitor or visitor_of(self.account, scope=self.caller.principal.scope)

    def progress(self, so_far: Struct) -> None:
        """Say how far the call is."""
        if self.caller.progress is not None:
            self.caller.progress(so_far)


class OperationResult(Struct, frozen=True, kw_only=True):
    """What a call answers: one JSON object, seed-shaped when it is an error."""

    payload: Payload
    is_error: bool = False
    delivered: Delivered | None = None
    bind: Bind | None = None
    signs_out: bool = False

    def text(self) -> str:
        """The payload as JSON text."""
        return encode_payload(self.payload).decode()


async def wait_unless_left(caller: Caller, work: Coroutine[Any, Any, T]) -> T | None:
    """What a call that waits comes to, or None when its caller leaves first.

    Time has passed: what authenticated the caller must still do so.
    """
    found = await run_until(caller.leaving, work)
    if caller.confirm is not None and not await caller.confirm():
        raise e.TokenInvalid
    return found


async def run_until(event: asyncio.Event, work: Coroutine[Any, Any, T]) -> T | None:
    """What the work comes to, or None when the event comes first; then the work is cancelled."""
    import asyncio  # Commands know the calls too, and have no loop.

    working = asyncio.ensure_future(work)
    waiting = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait((working, waiting), return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        working.cancel()
        waiting.cancel()
        await asyncio.gather(working, waiting, return_exceptions=True)


def make_cursor(place: str) -> str:
    """The cursor of the page after this place."""
    return urlsafe_b64encode(place.encode()).decode().rstrip("=")


def read_cursor(cursor: str) -> str:
    """The place of a cursor."""
    try:
        place = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
    except (Error, ValueError):
        place = ""
    # Only one spelling: what we did not write ourselves is no cursor.
    if not place or not place.isprintable() or make_cursor(place) != cursor:
        raise wrong_cursor()
    return place


def wrong_cursor() -> e.ArgumentInvalid:
    """The refusal of a cursor that is none of ours."""
    return e.ArgumentInvalid(
        "cursor must be the next_cursor of an earlier answer to the same question.",
        field="cursor",
    )


def fit_on_page(entries: Iterable[tuple[Any, int]], most: int) -> tuple[list[Any], bool]:
    """As many entries, each given with its size, as fit on a page; and whether some did not."""
    page: list[Any] = []
    size = 0
    for entry, bytes_ in entries:
        size += bytes_
        if page and (len(page) >= most or size > MAX_PAGE_BYTES):
            return page, True
        page.append(entry)
    return page, False
