"""What a hub is made of: store, accounts, mail, rooms, operations and `/mcp`, from its settings."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from folkmoot import __version__
from folkmoot.accounts import Accounts, SessionTimes
from folkmoot.accounts.clients import Clients, registrations
from folkmoot.asks.receipts import Receipts
from folkmoot.asks.service import Asks
from folkmoot.bounds import body_bounds, rate_limits, room_options
from folkmoot.bus import make_bus
from folkmoot.cluster.forwarding import Marks
from folkmoot.core import errors as e
from folkmoot.core.events import OF_ONE_NODE
from folkmoot.datafolder import DataFolder
from folkmoot.datafolder.proxies import LocalProxies, recorded
from folkmoot.export import Exporter
from folkmoot.mail import Mail, Retention
from folkmoot.mcp.client.fetch import fetch
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
from folkmoot.relay.upstream.nodes import BackendNodes
from folkmoot.rooms import Rooms
from folkmoot.rotation import KeyRing
from folkmoot.settings import GatewaySpec
from folkmoot.settings.comparison import settings_fingerprints
from folkmoot.settings.fields import in_effect
from folkmoot.storage import hub_clock, open_store
from folkmoot.telemetry.metrics import (
    Metrics,
    event_families,
    forwarding_families,
    quota_families,
    room_families,
    tool_families,
)
from folkmoot.transports.address import Addresses
from folkmoot.transports.browsers import BrowserCookies
from folkmoot.transports.credentials import Callers
from folkmoot.transports.events import EventStreams, HubEvents
from folkmoot.transports.guard import Hosts
from folkmoot.transports.limits import HEALTH_COUNT_SECONDS
from folkmoot.transports.listen import load_ca
from folkmoot.transports.mcp import McpEndpoint
from folkmoot.transports.mcp.forwarding import Forwarding
from folkmoot.transports.operations import Operations
from folkmoot.transports.rooms import RoomCrowd
from folkmoot.transports.server import HttpServer
from folkmoot.transports.websocket import Tally
from folkmoot.vault import Vault

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

    from folkmoot.bus import MemoryBus
    from folkmoot.core.ports import Clock, Database, Interceptor, NodeBus
    from folkmoot.settings import Loaded, Settings
    from folkmoot.telemetry.traces import Traces

QUOTA_SECONDS = 60.0
"""How often it is read how much of each quota is used."""


class HubServices:
    """The services of one hub; `app.py` opens them in order, and serves them."""

    store: Database
    quotas: Quotas
    accounts: Accounts
    mail: Mail
    rooms: Rooms
    mcp: McpEndpoint
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
        self.clock = clock or hub_clock(settings)
        self.started = self.clock.monotonic()
        self._given_store = store
        self._owns_bus = bus is None
        self._trusted = load_ca(settings.cluster)
        self.bus = bus or make_bus(settings.bus.url, local=OF_ONE_NODE, tls=self._trusted)
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
        self._fingerprints: tuple[Loaded | None, str] = (None, "")
        self._is_draining = False
        self._users = 0
        self._traces: Traces | None = None
        self._server: HttpServer | None = None

    @property
    def _node_bus(self) -> NodeBus | None:
        """The bus, where it reaches other nodes."""
        return cast("NodeBus", self.bus) if self.bus.node else None

    async def _open_store(self, stack: AsyncExitStack, folder: DataFolder) -> None:
        if self._given_store is not None:
            self.store = self._given_store
        else:
            self.store = await open_store(
                self.settings,
                folder.paths,
                self.bus,
                clock=self.clock,
                shared=self._node_bus,
                fingerprints=self._settings_fingerprints,
            )
            stack.push_async_callback(self.store.close)
        self._limits.shared = self.store.rates
        await self._limits.restore(self.store)
        stack.push_async_callback(self._limits.save, self.store)

    def _settings_fingerprints(self) -> str:
        """What nodes compare their settings by; empty where there is no file that others have."""
        following = self.behind.following
        if following is None:
            return ""
        loaded, made = self._fingerprints
        if loaded is not following.loaded:
            loaded, made = following.loaded, settings_fingerprints(self.settings, following.loaded)
            self._fingerprints = loaded, made
        return made

    async def _check_bus(self) -> None:
        """Raise if other nodes reach the bus and this one does not.

        If none does, whoever balances load must not take all of them away: most goes on without.
        """
        if self.rooms.is_alone:
            raise e.BusUnreachable("Other nodes reach the bus, and this one does not.")

    async def _check_accepting(self) -> None:
        """Raise if this node is being drained."""
        if self._is_draining:
            raise e.NodeDraining("This node is being drained.")

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
        """The hub's use of each quota, with its limit."""
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
            with contextlib.suppress(e.StoreError):
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
            owners=self.store.room_owners,
            sign_in=settings.sign_in,
        )
        self._browsers = BrowserCookies(self.accounts, settings.public_url)
        self.mail = Mail(
            self.store,
            self.bus,
            self.clock,
            self.accounts,
            vault,
            max_body_characters=longest,
            quotas=self.quotas,
        )
        self._retention = Retention(
            self.mail,
            self.clock,
            keep_days=settings.mail.keep_days,
            owners=self.store.room_owners,
        )

    def _open_interceptors(self) -> None:
        def canonical(name: str) -> str:
            tool = CATALOGUE.find(name)
            if tool is not None:
                return tool.name
            entry = self.behind.gateway.catalogue.tool(name)
            return name if entry is None else entry.canonical

        self._passing.load(canonical, self.behind.rights.groups_of)

    def _take_up(self, settings: Settings) -> None:
        """Go by the settings that are followed while the hub runs."""
        self._passing.apply(settings)
        self.mcp.tap = self._passing.tap
        if self.rooms.pipeline is None and self._passing.interceptors.interceptors:
            self.rooms.show_to(self._operations.enter)
        self._tapes.own.folder = tape_folder(settings)
        self.accounts.policy = settings.registration_policy
        self.mcp.challenges = settings.challenges_everyone
        self._retention.keep_days = settings.mail.keep_days
        self.behind.gateway.new_tools = settings.gateway.new_tools
        self.behind.gateway.audit.arguments = settings.gateway.audit_arguments

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
            owners=self.store.room_owners,
            node_bus=self._node_bus,
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
        # Without a public address the hub may be where no document can be fetched from.
        self.clients = Clients(
            registrations(vault), self.clock, fetch if settings.public_url else None
        )
        receipts = Receipts(
            self.store, vault, self.clock, lambda: settings.public_url or self.base_url
        )
        self.asks = Asks(self.store, self.bus, self.clock, receipts)
        url = settings.public_url or self.base_url
        self.behind.ask_people(self.asks, self.accounts, url)
        self._tapes = TapeLibrary(tape_folder(settings), recorded)
        file, given = folder.paths.master_key, settings.master_key or None
        backends = Pipeline.to(self.behind.service)
        ring = KeyRing(self.store, vault, file, given)
        services = Services(
            accounts=self.accounts,
            asks=self.asks,
            clients=self.clients,
            mail=self.mail,
            rooms=self.rooms,
            limits=self._limits,
            document=partial(encoded_document, __version__, settings.public_url),
            events=self._open_events(),
            tapes=self._tapes,
            store=self.store,
            clock=self.clock,
            url=url,
            permits=self.behind.policy.permits,
            present=self.rooms.present,
            status=self._status,
            settings=None if self.behind.following is None else self._shown_settings,
            granting=self.behind.granting,
            grant_views=self.behind.grant_views,
            fleet=self.behind.fleet,
            gateway=self.behind.gateway,
            rights=self.behind.rights,
            ask_rules=lambda: self.behind.ask_rules,
            connections=self.behind.consents,
            call_server=partial(self._operations.call_server, self._operations.shown(backends)),
            reloading=self.behind.following,
            held=self._passing.held,
            proxies=LocalProxies(),
            shows_proxies=settings.interceptors.local_proxies,
            backups=self.store,
            interception=self._passing,
            data_folder=folder.paths.folder,
            backup_folder=None if settings.store.url else folder.paths.folder / "backups",
            exporter=Exporter(self.store, self.clock, self.accounts, self.mail),
            key=lambda: KeyInUse(ring.key_id, ring.source),
            key_ring=ring,
        )
        self._forwarding = self._open_forwarding(vault)
        if self._forwarding is not None and self.store.backend_homes is not None:
            self.behind.fleet.share(BackendNodes(self.store.backend_homes, self._forwarding))
        self._dispatcher = dispatcher = Dispatcher(services)
        own = ToolService(dispatcher)
        self.metrics.watch(lambda: tool_families(dispatcher.calls))
        self.mcp = McpEndpoint(
            version=__version__,
            catalogue=dispatcher.catalogue,
            tools=Pipeline.to(own),
            backends=backends,
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
            challenges=settings.challenges_everyone,
            drain_seconds=settings.http.shutdown_seconds,
            options=settings.mcp,
            sessions_per_account=settings.quotas.sessions_per_account,
            session_homes=self.store.session_homes,
            forwarding=self._forwarding,
        )
        self._callers = Callers(self.rooms, self.mcp.in_session, self._browsers)

    def _open_forwarding(self, vault: Vault) -> Forwarding | None:
        """What forwards requests to other nodes, where there can be any."""
        bus = self._node_bus
        if bus is None:
            return None
        bounds = body_bounds(self.settings)
        forwarding = Forwarding(
            Marks(vault.derive("forwarding"), bus.node),
            self.clock,
            Addresses(self.settings.http.trusted_proxies),
            tls=self._trusted,
            body_bytes=bounds.body_bytes,
            total_bytes=bounds.total_bytes,
        )
        self.metrics.watch(lambda: forwarding_families(forwarding.forwarded, forwarding.refused))
        return forwarding

    async def count_users(self) -> int:
        """How many accounts there are, or were when the database last answered."""
        # That the database fails is for `/health/ready` to tell; `/health` tells that we run.
        # A database at a server is waited for much longer than those wait who ask for `/health`.
        with contextlib.suppress(e.StoreError, TimeoutError):
            async with asyncio.timeout(HEALTH_COUNT_SECONDS):
                self._users = await self.accounts.count()
        return self._users

    def uptime(self) -> float:
        """Seconds since the hub started."""
        return self.clock.monotonic() - self.started

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


def tape_folder(settings: Settings) -> Path | None:
    """Where the hub's tapes are, also while it does not record."""
    return Path(settings.record.folder).expanduser() if settings.record.folder else None
