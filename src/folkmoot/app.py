"""A running hub: the order in which its services start, what it serves, how it stops.

Everything is entered on one exit stack, so what started last stops first and an error at any step
leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
import uvloop
from starlette.middleware.cors import CORSMiddleware

from folkmoot import __version__
from folkmoot.audit import AuditTable
from folkmoot.bounds import body_bounds, link_limits
from folkmoot.composition import HubServices
from folkmoot.core import errors as e
from folkmoot.core.ports import NodeHome
from folkmoot.datafolder import DataFolder
from folkmoot.gateway.history import BOUNDS as BACKEND_BOUNDS
from folkmoot.keys import MasterKey, forbid_dumps, spellings
from folkmoot.mcp.wire import SESSION_HEADER, VERSION_HEADER
from folkmoot.operations import CATALOGUE
from folkmoot.storage import check_lease, compare_settings, open_master_key
from folkmoot.telemetry import logs, tracing
from folkmoot.telemetry.metrics import (
    backend_families,
    bus_families,
    mcp_families,
    store_families,
    websocket_families,
)
from folkmoot.telemetry.redaction import redactor
from folkmoot.transports import http
from folkmoot.transports.address import Addresses
from folkmoot.transports.answers import Answers
from folkmoot.transports.credentials import Operators, operators_token
from folkmoot.transports.health import Health
from folkmoot.transports.listen import base_url, close, listen, load_tls, make_room
from folkmoot.transports.mcp.lists import own_lists, server_info
from folkmoot.transports.oauth import OAuth
from folkmoot.transports.oidc import OidcReturn
from folkmoot.transports.operator_socket import OperatorSocket
from folkmoot.transports.rooms import RoomDoor
from folkmoot.transports.routes import Routes
from folkmoot.transports.server import HttpServer, collecting_seldom, return_large_buffers
from folkmoot.transports.websocket import ConnectionRate, WebSocketEndpoint
from folkmoot.vault import Vault
from folkmoot.web.pages import Pages

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Scope

    from folkmoot.settings import Loaded, Settings

logger = logging.getLogger("folkmoot.app")

TRACES_SECONDS = 5.0
DRAIN_SECONDS = 5.0
"""How long a node that drains waits for load balancers to see that it is not ready."""
Announce: TypeAlias = Callable[[str, str], None]
"""Told the URL of a hub, and the secret to set it up with; empty once it has an account."""

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Hub(HubServices):
    """One hub: `async with Hub(settings).running() as hub:` and it listens.

    It has a store and a bus of its own, or shares those that it is given with other hubs: then
    both have the same master key, and whoever opened the store closes it.
    """

    rest: Routes
    websockets: WebSocketEndpoint
    _operators: Operators
    _health: Health

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Hub]:
        """Start, and on leaving stop in good order: drain, flush, close, let the folder go."""
        async with AsyncExitStack() as stack:
            operator, server = await self._assemble(stack)
            failure: BaseException | None = None
            with single_cause():
                async with asyncio.TaskGroup() as tasks:
                    aside = (
                        operator,
                        self._retention.run(),
                        self._refresh_quotas(),
                        self.accounts.authentication.run(),
                        self._audit.run(),
                        self._limits.run(self.store),
                        self._drain_when_asked(),
                        self._watch_address(),
                    )
                    ends = [tasks.create_task(each).cancel for each in aside]
                    # Rooms stop before requests: everyone in them gets what is being stored.
                    async with self.rooms.running():
                        requests = tasks.create_task(server.serve())
                        requests.add_done_callback(lambda _: [end() for end in ends])
                        await server.listening()
                        where = {"url": self.base_url, "version": __version__}
                        logger.info("listening", extra=where)
                        try:
                            yield self
                        except BaseException as error:  # noqa: BLE001 - raised again, out of the group
                            failure = error
                        logger.info("stopping")
                        # Rooms go on while calls end: nobody stays connected to one that moved.
                        await self.behind.fleet.hand_over()
                    self.stop()
            if failure is not None:
                raise failure
        logger.info("stopped")

    def stop(self, *, force: bool = False) -> None:
        """Stop accepting requests; with `force`, do not wait for those in flight either."""
        if self._server is not None:
            self.rooms.stop()
            self.mcp.stop()
            self.rest.stop()
            self._server.stop(force=force)

    async def _watch_address(self) -> None:
        """Warn while other nodes cannot reach this one at the address in its settings."""
        address = self.settings.cluster.address
        if address and self._node_bus is not None and self._forwarding is not None:
            await self._forwarding.watch_own(NodeHome(self._node_bus.node, address))

    def _address_health(self) -> dict[str, object]:
        """Whether this node is at its address; None while that is not known yet.

        A node that is not stays ready: it serves its clients, and one that merely cannot reach
        itself must not be taken away, nor all of them where the settings of all are wrong.
        """
        found = None if self._forwarding is None else self._forwarding.answers_at_own
        return {"url": self.settings.cluster.address, "ok": found}

    async def _drain_when_asked(self) -> None:
        """Give the rooms to other nodes once an operator wants it; the rest goes on here."""
        if self._node_bus is None or self.store.room_owners is None:
            return
        await self.store.room_owners.until_draining()
        self._is_draining = True
        logger.info("draining: not ready any more")
        await asyncio.sleep(DRAIN_SECONDS)
        await self.rooms.drain()
        await self.behind.fleet.hand_over()
        try:
            await self.store.room_owners.drained()
        except e.FolkmootError as error:
            logger.warning("others do not know that this node is drained: %s", error.message)
        logger.info("drained: other nodes have the rooms and links")

    async def _assemble(
        self, stack: AsyncExitStack
    ) -> tuple[Coroutine[Any, Any, None], HttpServer]:
        settings = self.settings
        # First of all: a bad certificate or a taken port must not leave a fresh data folder behind.
        tls = load_tls(settings.tls)
        self._operators = self._make_operators()
        sockets = listen(settings.host, settings.port)
        stack.callback(close, sockets)
        port = sockets[0].getsockname()[1]
        self.base_url = base_url(settings.host, port, tls=tls is not None)
        await self.bus.check()
        folder = stack.enter_context(DataFolder.open(settings.data_folder))
        if folder.tightened:
            logger.warning("others could read the data folder until now")
        key = open_master_key(settings, folder.paths)
        hide(key, settings)
        await self._open_store(stack, folder)
        self._audit = AuditTable(
            self.store,
            self.clock,
            keep_days=settings.audit.keep_days,
            keep_lines=settings.audit.keep_lines,
            owners=self.store.room_owners,
        )
        self._audit.attach()
        stack.push_async_callback(self._audit.detach)
        vault = await Vault.load(self.store, key)
        if vault.awaited_id:
            logger.warning("a master key rotation is pending", extra={"new_id": vault.awaited_id})
        if self._owns_bus:
            stack.push_async_callback(self.bus.close)
        await self.bus.start(vault.derive("bus"))
        await compare_settings(self.store)
        await self._open_quotas(folder)
        self._open_mail(vault)
        await self.behind.open(
            self.store,
            self.accounts,
            vault,
            own=own_lists(CATALOGUE),
            server_info=server_info(__version__),
            url=settings.public_url.rstrip("/") or self.base_url,
            public=settings.public_url.startswith("https:"),
        )
        self._open_interceptors()
        self._open_rooms()
        self._open_tools(vault, folder)
        self._traces = tracing.start(
            settings.telemetry.otlp_endpoint,
            service_name=settings.telemetry.service_name,
            version=__version__,
        )
        if self._traces is not None:
            stack.push_async_callback(self._traces.close, TRACES_SECONDS)
        self.metrics.watch(lambda: store_families(msgspec.structs.asdict(self.store.stats())))
        self.metrics.watch(lambda: bus_families(self.bus.subscriptions, self.bus.dropped))
        self.metrics.watch(lambda: mcp_families(self.mcp.answered, self.mcp.open_sessions))
        self.metrics.watch(lambda: backend_families(self.behind.numbers(), BACKEND_BOUNDS))
        operator = OperatorSocket(folder.paths.control_socket)
        operator.listen()
        stack.callback(operator.close)
        await stack.enter_async_context(self._passing.running())
        await stack.enter_async_context(self.behind.running())
        await stack.enter_async_context(self.mcp.running())
        application = self._application()
        addresses = Addresses(settings.http.trusted_proxies)
        self._server = HttpServer(
            application,
            sockets,
            metrics=self.metrics,
            max_connections=settings.http.max_connections,
            per_address=settings.http.max_connections_per_address,
            per_account=settings.http.max_connections_per_account,
            address_of=addresses.of_peer,
            locate=addresses.of,
            identify=self._callers.identify,
            shutdown_seconds=settings.http.shutdown_seconds,
            tls=tls,
        )
        return operator.serve(application), self._server

    def _application(self) -> ASGIApp:
        settings = self.settings
        locate = Addresses(settings.http.trusted_proxies).of
        pages = Pages(
            version=__version__,
            public_url=settings.public_url,
            shows_metrics=self._shows_metrics,
            signed_in=self._browsers.has_session,
            invitations=self.accounts.invitation,
            policy=lambda: self.accounts.policy,
        )
        owners = self.store.room_owners
        self._health = Health(
            version=__version__,
            clock=self.clock,
            count_users=self.count_users,
            checks={
                "database": self.store.ready,
                **({"lease": partial(check_lease, owners)} if owners else {}),
                **({"bus": self._check_bus} if self._node_bus else {}),
                **({"accepting": self._check_accepting} if self._node_bus else {}),
            },
            details={
                "backends": self.behind.health,
                "held_tools": self.behind.held,
                **({"address": self._address_health} if self._node_bus else {}),
            },
            metrics=self.metrics,
            serves_metrics=settings.telemetry.metrics,
            operators=self._operators,
        )
        apps = OAuth(
            apps=self.accounts.apps,
            devices=self.accounts.devices,
            limits=self._limits,
            locate=locate,
            clients=self.clients,
            clock=self.clock,
            public_url=settings.public_url.rstrip("/"),
            key_set=self.asks.receipts.key_set,
        )
        company = self.accounts.oidc
        oidc = company and OidcReturn(company, self._browsers, self._limits, locate)
        answers = Answers(pages.error_page)
        self.websockets = self._websocket_app(answers)
        self.rest = self._routes()
        application = http.build(
            [
                *pages.routes(),
                *apps.routes(),
                *(oidc.routes() if oidc else ()),
                *self._health.routes(),
                *self.rest.routes(),
            ],
            endpoints={"/mcp": self._mcp_app(), "/ws": self.websockets},
            answers=answers,
            hosts=self._hosts,
            bodies=body_bounds(settings),
            identify=self._callers.identify,
            locate=locate,
            metrics=self.metrics,
            traces=self._traces,
            clock=self.clock,
            lines=settings.log.requests,
            takes_token_in_url=settings.sign_in.token_in_url,
        )
        return application if self._forwarding is None else self._forwarding.receiver(application)

    def _make_operators(self) -> Operators:
        """Who may read what is for operators; their token appears in no log."""
        settings, telemetry = self.settings, self.settings.telemetry
        token = operators_token(telemetry.token, telemetry.token_file)
        redactor.hide(token)
        return Operators(
            everyone=telemetry.access == "everyone",
            token=token,
            behind_proxy=bool(settings.public_url or settings.http.trusted_proxies),
        )

    def _shows_metrics(self, scope: Scope) -> bool:
        return self.settings.telemetry.metrics and self._operators.admit(scope)

    def _routes(self) -> Routes:
        """`/v1`, for programs: mail, people, accounts, rooms without a WebSocket, and operators."""
        settings = self.settings
        return Routes(
            rooms=self.rooms,
            hub=self._operations,
            policy=self.behind.policy,
            dispatcher=self._dispatcher,
            hosts=self._hosts,
            addresses=Addresses(settings.http.trusted_proxies),
            browsers=self._browsers,
            public_url=settings.public_url,
            allowed_origins=settings.http.allowed_origins,
            bus=self.bus,
        )

    def _mcp_app(self) -> ASGIApp:
        """`/mcp`, which tells browsers of the pages that may use it."""
        origins = self.settings.http.allowed_origins
        self.mcp.tap = self._passing.tap
        if self.behind.following is not None:
            self.behind.following.take_up = self._take_up
        if not origins:
            return self.mcp
        return CORSMiddleware(
            self.mcp,
            allow_origins=origins,
            allow_methods=("GET", "POST", "DELETE"),
            allow_headers=("*",),
            expose_headers=(SESSION_HEADER, VERSION_HEADER),
        )

    def _websocket_app(self, answers: Answers) -> WebSocketEndpoint:
        """`/ws`, where rooms are joined."""
        settings, rate = self.settings, None
        if settings.rate_limits == "on":
            rate = ConnectionRate(settings.limits.frames_per_second, self.clock.monotonic)
        endpoint = WebSocketEndpoint(
            RoomDoor(
                self.rooms,
                self._operations,
                limits=self._limits,
                addresses=Addresses(settings.http.trusted_proxies),
                browsers=self._browsers,
            ),
            hosts=self._hosts,
            answers=answers,
            limits=link_limits(settings)._replace(rate=rate),
        )
        self.metrics.watch(
            lambda: websocket_families(endpoint.open_links, endpoint.opened, endpoint.closed)
        )
        return endpoint


@contextmanager
def single_cause() -> Iterator[None]:
    """Raise what a group of errors is about: an error of ours if there is one, else the first."""
    try:
        yield
    except BaseExceptionGroup as group:
        causes = list(leaves(group))
        ours = (cause for cause in causes if isinstance(cause, e.FolkmootError))
        cause = next(ours, causes[0])
        for other in causes:
            if other is not cause:
                logger.exception("failed as well", exc_info=other)
        raise cause from None


def leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    """The errors in a group, however deep."""
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from leaves(error)
        else:
            yield error


def hide(key: MasterKey, settings: Settings) -> None:
    """Let the secrets of the settings appear in no log, the master key in whichever spelling."""
    redactor.hide(*spellings(key), settings.master_key, settings.sign_in.oidc.client_secret)


def serve(loaded: Loaded, announce: Announce) -> None:
    """Run a hub until SIGINT, SIGTERM or SIGHUP; `announce` is called once it really listens.

    A second signal ends requests in flight; a third one ends the process.
    """
    logs.capture_uncaught()
    forbid_dumps()
    make_room(loaded.settings.http.max_connections)
    return_large_buffers()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(loaded, announce))


async def _serve(loaded: Loaded, announce: Announce) -> None:
    loop = asyncio.get_running_loop()
    asked = asyncio.Event()
    hub = Hub(loaded.settings, loaded=loaded)

    def on_signal() -> None:
        if not asked.is_set():
            asked.set()
            return
        hub.stop(force=True)
        for each in SIGNALS:
            loop.remove_signal_handler(each)

    for each in SIGNALS:
        # `nohup` has SIGHUP ignored, and means it.
        if each != signal.SIGHUP or signal.getsignal(each) is not signal.SIG_IGN:
            loop.add_signal_handler(each, on_signal)
    async with hub.running(), collecting_seldom():
        announce(hub.base_url, await hub.accounts.set_up_secret())
        await asked.wait()
