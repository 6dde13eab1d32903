"""The composition root: what a hub is made of, in which order it starts, and how it stops.

Everything is entered on one exit stack, so what started last stops first and an error at any step
leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
import uvloop
from starlette.middleware.cors import CORSMiddleware

from folkmoot import __version__
from folkmoot.accounts import Accounts, SessionTimes
from folkmoot.audit import AuditTable
from folkmoot.bounds import body_bounds, link_limits, rate_limits, room_options
from folkmoot.bus import MemoryBus
from folkmoot.clock import SystemClock
from folkmoot.core.errors import FolkmootError, StoreError
from folkmoot.coredumps import forbid_dumps
from folkmoot.datafolder import DataFolder
from folkmoot.datafolder.proxies import LocalProxies
from folkmoot.datafolder.recordings import recorded
from folkmoot.export import Exporter
from folkmoot.gateway.history import BOUNDS as BACKEND_BOUNDS
from folkmoot.keys import MasterKey, load_master_key, spellings
from folkmoot.mail import Mail, Retention
from folkmoot.mcp.wire import SESSION_HEADER, VERSION_HEADER
from folkmoot.operations import CATALOGUE, Services
from folkmoot.operations.dispatch import Dispatcher, ToolService
from folkmoot.operations.openapi import encoded_document
from folkmoot.operations.operator.data import KeyInUse
from folkmoot.operations.operator.hub import FreeDisk, HubStatus, ShownSetting, ShownSettings, Use
from folkmoot.pipeline import Pipeline
from folkmoot.proxy.tape.folder import TapeLibrary
from folkmoot.quotas import NEAR, Disk, Quotas
from folkmoot.ratelimits import RateLimits
from folkmoot.relay.hub_gateway import HubGateway
from folkmoot.relay.room_backends import RoomBackends
from folkmoot.relay.tap import HubInterception
from folkmoot.rooms import Rooms
from folkmoot.rotation import KeyRing
from folkmoot.settings import GatewaySpec
from folkmoot.settings.fields import in_effect
from folkmoot.store import open_database
from folkmoot.telemetry import logs, tracing
from folkmoot.telemetry.metrics import Metrics
from folkmoot.telemetry.parts import (
    backend_families,
    bus_families,
    event_families,
    mcp_families,
    quota_families,
    room_families,
    store_families,
    tool_families,
    websocket_families,
)
from folkmoot.telemetry.redaction import redactor
from folkmoot.transports import http
from folkmoot.transports.address import Addresses
from folkmoot.transports.answers import Answers
from folkmoot.transports.browsers import Browsers
from folkmoot.transports.credentials import Callers
from folkmoot.transports.descriptors import make_room
from folkmoot.transports.events import EventStreams, HubEvents
from folkmoot.transports.guard import Hosts
from folkmoot.transports.health import Health
from folkmoot.transports.listen import base_url, close, listen
from folkmoot.transports.mcp import McpEndpoint
from folkmoot.transports.mcp.lists import own_lists, server_info
from folkmoot.transports.memory import collecting_seldom, return_large_buffers
from folkmoot.transports.operations import Operations
from folkmoot.transports.operator_socket import OperatorSocket
from folkmoot.transports.operators import Operators, operators_token
from folkmoot.transports.rooms import Rate, RoomCrowd, RoomDoor
from folkmoot.transports.routes import Routes
from folkmoot.transports.server import HttpServer
from folkmoot.transports.tls import load_tls
from folkmoot.transports.websocket import Tally, WebSocketEndpoint
from folkmoot.vault import Vault
from folkmoot.web.joining import Joining
from folkmoot.web.pages import Pages

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric
    from starlette.types import ASGIApp, Scope

    from folkmoot.core.ports import Clock, Database, Interceptor
    from folkmoot.settings import Loaded, Settings
    from folkmoot.telemetry.traces import Traces

logger = logging.getLogger("folkmoot.app")

TRACES_SECONDS = 5.0
QUOTA_SECONDS = 60.0
Announce: TypeAlias = Callable[[str, int], None]
"""Told the URL of a hub, and how many accounts it has."""

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Hub:
    """One hub: `async with Hub(settings).running() as hub:` and it listens.

    It has a store and a bus of its own, or shares those that it is given with other hubs: then
    both have the same master key, and whoever opened the store closes it.
    """

    store: Database
    quotas: Quotas
    accounts: Accounts
    mail: Mail
    rooms: Rooms
    mcp: McpEndpoint
    rest: Routes
    websockets: WebSocketEndpoint
    _operators: Operators
    _health: Health
    base_url: str
    """Where the hub listens; the port is the real one, also when the settings say 0."""

    def __init__(
        self,
        settings: Settings,
        clock: Clock | None = None,
        interceptors: Sequence[Interceptor] = (),
        *,
        gateway: GatewaySpec | None = None,
        loaded: Loaded | None = None,
        store: Database | None = None,
        bus: MemoryBus | None = None,
    ) -> None:
        self.settings = settings
        self.clock = clock or SystemClock()
        self.started = self.clock.monotonic()
        self._given_store = store
        self._owns_bus = bus is None
        self.bus = bus or MemoryBus()
        if store is not None and store.bus is not self.bus:
            raise ValueError("a hub listens on the bus that its store publishes on")
        self.metrics = Metrics(version=__version__, clock=self.clock)
        self._hosts = Hosts(
            settings.host,
            settings.public_url,
            settings.http.allowed_hosts,
            settings.http.allowed_origins,
        )
        self._limits = RateLimits(self.clock, rate_limits(settings))
        self._passing = HubInterception(settings, self.clock, self.bus, interceptors)
        given = GatewaySpec() if loaded is None else loaded.gateway
        self.behind = HubGateway(settings, self.clock, gateway or given, loaded)
        self._users = 0
        self._traces: Traces | None = None
        self._server: HttpServer | None = None

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
                    )
                    ends = [tasks.create_task(each).cancel for each in aside]
                    # Rooms stop first: everyone in them still gets what is being stored.
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
        folder = stack.enter_context(DataFolder.open(settings.data_folder))
        if folder.tightened:
            logger.warning("others could read the data folder until now")
        key = load_master_key(
            folder.paths.master_key,
            given=settings.master_key or None,
            database_exists=folder.paths.database_exists(),
        )
        hide(key, settings)
        await self._open_store(stack, folder)
        self._audit = AuditTable(
            self.store,
            self.clock,
            keep_days=settings.audit.keep_days,
            keep_lines=settings.audit.keep_lines,
        )
        self._audit.attach()
        stack.push_async_callback(self._audit.detach)
        vault = await Vault.load(self.store, key)
        if vault.awaited_id:
            logger.warning("a master key rotation is pending", extra={"new_id": vault.awaited_id})
        if self._owns_bus:
            stack.push_async_callback(self.bus.close)
        await self._open_quotas(folder)
        self._open_mail(vault)
        await self.accounts.seal_nicknames()
        await self.behind.open(
            self.store,
            self.accounts,
            vault,
            own=own_lists(CATALOGUE),
            server_info=server_info(__version__),
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
        self.metrics.watch(lambda: bus_families(self.bus.subscriptions))
        self.metrics.watch(lambda: mcp_families(self.mcp.answered, self.mcp.open_sessions))
        self.metrics.watch(lambda: backend_families(self.behind.numbers(), BACKEND_BOUNDS))
        operator = OperatorSocket(folder.paths.control_socket)
        operator.listen()
        stack.callback(operator.close)
        await stack.enter_async_context(self._passing.running())
        await stack.enter_async_context(self.behind.running())
        await stack.enter_async_context(self.mcp.running())
        application = self._application()
        self._server = HttpServer(
            application,
            sockets,
            metrics=self.metrics,
            max_connections=settings.http.max_connections,
            per_address=settings.http.max_connections_per_address,
            per_account=settings.http.max_connections_per_account,
            address_of=Addresses(settings.http.trusted_proxies).of_peer,
            identify=self._callers.identify,
            shutdown_seconds=settings.http.shutdown_seconds,
            tls=tls,
        )
        return operator.serve(application), self._server

    async def _open_store(self, stack: AsyncExitStack, folder: DataFolder) -> None:
        settings = self.settings.store
        if self._given_store is not None:
            self.store = self._given_store
            return
        self.store = await open_database(
            folder.paths.database,
            synchronous=settings.synchronous,
            readers=settings.readers,
            queue=settings.queue,
            empty_log_seconds=settings.empty_log_seconds,
            bus=self.bus,
        )
        stack.push_async_callback(self.store.close)

    async def _open_quotas(self, folder: DataFolder) -> None:
        self.quotas = Quotas(self.settings.quotas, disk=Disk(folder.paths.folder, self.clock))
        await self.quotas.refresh(self.store)

        def families() -> list[Metric]:
            quotas, memory = self.quotas, self.rooms.memory
            return quota_families(
                self._quotas_used(),
                {
                    "mail": quotas.near_mail,
                    "rooms": quotas.near_rooms,
                    "memory_rooms": memory.near(NEAR),
                },
                quotas.refused,
                quotas.disk.free() if quotas.disk else None,
            )

        self.metrics.watch(families)

    def _quotas_used(self) -> dict[str, tuple[int, int]]:
        """What the hub stores and holds, by what it is, and the most of it."""
        quotas, limits = self.quotas, self.quotas.limits
        return {
            "mail": (quotas.mail_used, limits.mail_bytes),
            "rooms": (quotas.rooms_used, limits.all_rooms_bytes),
            "memory_rooms": (self.rooms.memory.used, limits.memory_bytes),
        }

    async def _refresh_quotas(self) -> None:
        """Read now and then how much is used, for what is removed is not followed."""
        while True:
            await asyncio.sleep(QUOTA_SECONDS)
            with contextlib.suppress(StoreError):
                await self.quotas.refresh(self.store)

    def _open_mail(self, vault: Vault) -> None:
        settings = self.settings
        longest = settings.mail.max_body_characters
        self.accounts = Accounts(
            self.store,
            self.clock,
            vault,
            policy=settings.registration_policy,
            max_message_characters=longest,
            quotas=self.quotas,
            session_times=SessionTimes(
                idle=settings.web.session_idle_seconds, longest=settings.web.session_seconds
            ),
        )
        self._browsers = Browsers(self.accounts, settings.public_url)
        self.mail = Mail(
            self.store,
            self.bus,
            self.clock,
            self.accounts,
            vault,
            max_body_characters=longest,
            quotas=self.quotas,
        )
        self._retention = Retention(self.mail, self.clock, keep_days=settings.mail.keep_days)

    def _open_interceptors(self) -> None:
        def canonical(name: str) -> str:
            tool = CATALOGUE.find(name)
            if tool is not None:
                return tool.name
            entry = self.behind.gateway.catalogue.tool(name)
            return name if entry is None else entry.canonical

        self._passing.load(canonical, self.behind.rights.groups_of)

    def _open_rooms(self) -> None:
        tally = Tally()
        shown, audit = self._passing.interceptors, self.behind.gateway.audit
        self._operations = Operations(shown, self.behind.policy, audit, self.clock)
        self.rooms = Rooms(
            self.store,
            self.clock,
            self.accounts,
            epoch=self.store.identity.epoch,
            crowd=lambda: RoomCrowd(tally),
            options=room_options(self.settings),
            pipeline=self._operations.enter if shown.interceptors else None,
            backends=RoomBackends(
                self.behind.gateway,
                self.behind.rights,
                self.behind.service,
                self.accounts,
                self.clock,
            ),
            policy=self.behind.policy,
            quotas=self.quotas,
        )
        self.metrics.watch(
            lambda: room_families(self.rooms.live_rooms, tally.frames, tally.deliveries)
        )

    def _open_events(self) -> HubEvents:
        """`/v1/events`, where programs follow what changes."""
        options = self.settings.events
        streams = EventStreams(
            self.bus,
            most=options.max_streams,
            most_each=options.max_streams_per_account,
            resume_seconds=options.resume_seconds,
            most_bytes=options.max_bytes,
        )
        self.metrics.watch(
            lambda: event_families(streams.open, len(streams), streams.resumed, streams.told)
        )
        return HubEvents(streams, self.accounts, self.rooms, self.behind.policy, self.clock)

    def _open_tools(self, vault: Vault, folder: DataFolder) -> None:
        settings = self.settings
        tapes = settings.record.folder
        file, given = folder.paths.master_key, settings.master_key or None
        ring = KeyRing(self.store, vault, file, given)
        services = Services(
            accounts=self.accounts,
            mail=self.mail,
            rooms=self.rooms,
            limits=self._limits,
            document=partial(encoded_document, __version__, settings.public_url),
            events=self._open_events(),
            tapes=TapeLibrary(Path(tapes).expanduser() if tapes else None, recorded),
            store=self.store,
            clock=self.clock,
            url=settings.public_url or self.base_url,
            permits=self.behind.policy.permits,
            present=self.rooms.present,
            status=self._status,
            settings=None if self.behind.following is None else self._shown_settings,
            granting=self.behind.granting,
            grant_views=self.behind.grant_views,
            fleet=self.behind.fleet,
            gateway=self.behind.gateway,
            rights=self.behind.rights,
            call_server=partial(self._operations.call_server, self.behind.service),
            reloading=self.behind.following,
            held=self._passing.held,
            proxies=LocalProxies(),
            shows_proxies=settings.interceptors.local_proxies,
            backups=self.store,
            exporter=Exporter(self.store, self.clock, self.accounts, self.mail),
            key=lambda: KeyInUse(ring.key_id, ring.source),
            key_ring=ring,
        )
        self._dispatcher = dispatcher = Dispatcher(services)
        own = ToolService(dispatcher)
        # What comes over MCP has passed the interceptors at `/mcp`; a form of a page has not.
        self._forms = Pipeline.to(own, self._passing.interceptors)
        self.metrics.watch(lambda: tool_families(dispatcher.calls))
        self.mcp = McpEndpoint(
            version=__version__,
            catalogue=dispatcher.catalogue,
            tools=Pipeline.to(own),
            backends=Pipeline.to(self.behind.service),
            rights=self.behind.rights,
            gateway=self.behind.gateway,
            task_calls=self.behind.service.tasks,
            accounts=self.accounts,
            mail=self.mail,
            bus=self.bus,
            clock=self.clock,
            store=self.store,
            sealer=vault,
            epoch=self.store.identity.epoch,
            hosts=self._hosts,
            addresses=Addresses(settings.http.trusted_proxies),
            public_url=settings.public_url,
            drain_seconds=settings.http.shutdown_seconds,
            options=settings.mcp,
            sessions_per_account=settings.quotas.sessions_per_account,
        )
        self._callers = Callers(self.rooms, self.mcp.in_session, self._browsers)

    def _application(self) -> ASGIApp:
        settings = self.settings
        pages = Pages(
            version=__version__,
            public_url=settings.public_url,
            shows_metrics=self._shows_metrics,
            signed_in=self._browsers.has_session,
            invitations=self.accounts.invitation,
            join=Joining(
                self._forms,
                self.behind.rights,
                self.clock,
                Addresses(settings.http.trusted_proxies).of,
                self._browsers,
            ),
            policy=settings.registration_policy,
        )
        self._health = Health(
            version=__version__,
            clock=self.clock,
            count_users=self.count_users,
            checks={"database": self.store.ready},
            details={"backends": self.behind.health, "held_tools": self.behind.held},
            metrics=self.metrics,
            serves_metrics=settings.telemetry.metrics,
            operators=self._operators,
        )
        answers = Answers(pages.error_page)
        self.websockets = self._websocket_app(answers)
        self.rest = self._routes()
        return http.build(
            [*pages.routes(), *self._health.routes(), *self.rest.routes()],
            endpoints={"/mcp": self._mcp_app(), "/ws": self.websockets},
            answers=answers,
            hosts=self._hosts,
            bodies=body_bounds(settings),
            identify=self._callers.identify,
            locate=Addresses(settings.http.trusted_proxies).of,
            metrics=self.metrics,
            traces=self._traces,
            clock=self.clock,
            lines=settings.log.requests,
        )

    async def count_users(self) -> int:
        """How many accounts there are, or were when the database last answered."""
        # That the database fails is for `/health/ready` to tell; `/health` tells that we run.
        with contextlib.suppress(StoreError):
            self._users = await self.accounts.count()
        return self._users

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
            rate = Rate(settings.limits.frames_per_second, self.clock.monotonic)
        endpoint = WebSocketEndpoint(
            RoomDoor(
                self.rooms,
                self._operations,
                rate=rate,
                limits=self._limits,
                addresses=Addresses(settings.http.trusted_proxies),
                browsers=self._browsers,
            ),
            hosts=self._hosts,
            answers=answers,
            limits=link_limits(settings),
        )
        self.metrics.watch(
            lambda: websocket_families(endpoint.open_links, endpoint.opened, endpoint.closed)
        )
        return endpoint

    def _status(self) -> HubStatus:
        used = {what: Use(*use) for what, use in self._quotas_used().items()}
        limits, disk = self.quotas.limits, None
        if self.quotas.disk is not None:
            disk = FreeDisk(self.quotas.disk.free(), limits.min_free_disk_bytes)
        return HubStatus(os.getpid(), __version__, self.uptime(), self.base_url, used, disk)

    def _shown_settings(self) -> ShownSettings:
        assert self.behind.following is not None  # noqa: S101 - else it is not offered
        loaded = self.behind.following.loaded
        told = {path: ShownSetting(value, origin) for path, value, origin in in_effect(loaded)}
        return ShownSettings(loaded.file, told)

    def uptime(self) -> float:
        """Seconds since the hub started."""
        return self.clock.monotonic() - self.started


@contextmanager
def single_cause() -> Iterator[None]:
    """Raise what a group of errors is about: an error of ours if there is one, else the first."""
    try:
        yield
    except BaseExceptionGroup as group:
        causes = list(leaves(group))
        ours = (cause for cause in causes if isinstance(cause, FolkmootError))
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
    """Let the master key appear in no log, in whichever spelling."""
    redactor.hide(*spellings(key), settings.master_key)


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
        announce(hub.base_url, await hub.count_users())
        await asked.wait()
