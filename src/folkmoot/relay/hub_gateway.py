"""The gateway of a hub: its backends, their catalogue, and the rights to use them."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import msgspec

from folkmoot.accounts.queries import by_handle
from folkmoot.asks.rules import AskRules
from folkmoot.audit import log_kept
from folkmoot.core import errors as e
from folkmoot.gateway.audit import CallAudit
from folkmoot.gateway.gateway import Gateway
from folkmoot.gateway.grants import Granting, GrantViews
from folkmoot.gateway.operations import HubPolicy
from folkmoot.gateway.pins import Pins
from folkmoot.gateway.requests import Inputs
from folkmoot.gateway.rights import HubRights
from folkmoot.gateway.service import GatewayService
from folkmoot.gateway.tasks import Tasks
from folkmoot.names.grammar import RESERVED_NAMES
from folkmoot.operations.table import NEEDS
from folkmoot.relay.asked_calls import AskedCalls
from folkmoot.relay.upstream.consents import Consents
from folkmoot.relay.upstream.fleet import Fleet
from folkmoot.relay.upstream.settings_follower import SettingsFollower
from folkmoot.settings import GatewaySpec
from folkmoot.settings.backends import SecretReference
from folkmoot.taskgroups import background_tasks

if TYPE_CHECKING:
    from folkmoot.accounts import Accounts
    from folkmoot.asks.service import Asks
    from folkmoot.core.ports import Clock, Store, Tx
    from folkmoot.gateway.listing import HubDefinitions
    from folkmoot.gateway.model import What
    from folkmoot.settings import Loaded, Settings
    from folkmoot.vault import Vault

AUDIT: Final = "audit"
INPUTS: Final = "inputs"
"""The purposes of two keys of the vault."""


logger = logging.getLogger("folkmoot.gateway")

NOBODY_TO_ASK: Final = (
    "the rule asks.%s asks @%s, who has no account: its calls are refused until they register with "
    "an invite (folkmoot invite --for %s)"
)
OF_THE_HUB: Final = "@%s is an account, and the name is the hub's: have them choose another handle"


class HubGateway:
    """The gateway of one hub; `open` creates it, `running` runs it."""

    gateway: Gateway
    rights: HubRights
    policy: HubPolicy
    service: GatewayService
    fleet: Fleet
    consents: Consents
    granting: Granting
    grant_views: GrantViews
    ask_rules: AskRules

    def __init__(
        self, settings: Settings, clock: Clock, spec: GatewaySpec, loaded: Loaded | None
    ) -> None:
        self._settings = settings.gateway
        self._of_hub = settings
        self._clock = clock
        self._spec = spec
        self.following = None if loaded is None else SettingsFollower(loaded, self.apply)
        """What reads the settings again; None where the hub was not started from settings."""

    async def open(
        self,
        store: Store,
        accounts: Accounts,
        vault: Vault,
        *,
        own: Mapping[What, HubDefinitions],
        server_info: dict[str, Any],
        url: str,
        public: bool,
    ) -> None:
        """Read what is stored of rights and pins; raises the `SettingsError` of wrong settings."""
        clock = self._clock
        await log_kept(store)
        self.rights = await HubRights.open(store, clock, accounts, needs=NEEDS)
        self.policy = HubPolicy(self.rights)
        pins = Pins(store, clock)
        await pins.load()
        self.gateway = Gateway(
            pins,
            CallAudit(vault.derive(AUDIT), self._settings.audit_arguments),
            Tasks(vault, clock),
            own=own,
            server_info=server_info,
            page_size=self._settings.page_size,
            new_tools=self._settings.new_tools,
        )
        self.consents = Consents(
            store, clock, vault, lambda name: self._spec.backends.get(name), os.environ, url, public
        )
        inputs = Inputs(vault.derive(INPUTS))
        self.service = GatewayService(self.gateway, clock, inputs, self.consents)
        self.fleet = Fleet(self.gateway, clock, hidden=self._hidden, consents=self.consents)
        self.granting = Granting(
            self.rights,
            store,
            clock,
            accounts,
            canonical=lambda name: self.gateway.catalogue.names.canonical(name),
        )
        self.grant_views = GrantViews(self.rights, self.granting, store, clock)
        await self._settle(self._spec)

    def ask_people(self, asks: Asks, accounts: Accounts, url: str) -> None:
        """Have people asked before the calls that the rules name."""
        self.asked = self.service.people = AskedCalls(
            self.gateway,
            self.rights,
            self.service,
            accounts,
            asks,
            self._clock,
            lambda: self.ask_rules,
            url,
        )

    def numbers(self) -> list[dict[str, Any]]:
        """The members of what is known of each server, for measurements."""
        held = self.held()
        return [
            {**msgspec.structs.asdict(view), "held_tools": held.get(view.namespace, 0)}
            for view in self.fleet.views()
        ]

    def health(self) -> dict[str, str]:
        """The state of each server, for whoever asks after the hub's health."""
        return {view.namespace: view.state for view in self.fleet.views()}

    def held(self) -> dict[str, int]:
        """How many tools are held back until an operator accepts them, where there are any."""
        parts = self.gateway.catalogue.parts.values()
        return {part.namespace: len(part.held) for part in parts if part.held}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Have the links live, and follow the settings, while entered."""
        async with self.fleet.running(), self.asked.running(), background_tasks() as background:
            await self.fleet.apply(self._spec.backends)
            background.run(self.gateway.follow_pins())
            if self.following is not None:
                background.run(self.following.watch())
            yield

    async def apply(self, spec: GatewaySpec) -> None:
        """Go by other settings from now on; wrong ones change nothing and raise."""
        await self._settle(spec)
        self._spec = spec
        await self.fleet.apply(spec.backends)

    def _hidden(self) -> tuple[str, ...]:
        """What of the hub's no sandbox shows."""
        files = () if self.following is None else self.following.files
        return (*secret_files(self._of_hub, self._spec), *files)

    async def _settle(self, spec: GatewaySpec) -> None:
        """Check names against those of people, and let rights be what the settings say."""
        namespaces = [backend.namespace for backend in spec.backends.values()]
        if taken := await self.rights.taken_namespaces(namespaces):
            problems = list(taken.values())
            raise e.SettingsError("\n".join(problems), problems=problems)
        await self.rights.configure(spec)
        self.ask_rules = AskRules(self._clock, spec.asks)
        await self._warn(spec)

    async def _warn(self, spec: GatewaySpec) -> None:
        """Log which of those whom rules ask have no account, and who has a name of the hub's."""
        rules = {rule.to: rule.name for rule in spec.asks if rule.to}
        now = int(self._clock.now())

        async def query(tx: Tx) -> tuple[list[str], list[str]]:
            asked = [who for who in sorted(rules) if await by_handle(tx, who, now) is None]
            named = [name for name in sorted(RESERVED_NAMES) if await by_handle(tx, name, now)]
            return asked, named

        asked, named = await self.rights.store.read(query)
        for who in asked:
            logger.warning(NOBODY_TO_ASK, rules[who], who, who)
        for name in named:
            logger.warning(OF_THE_HUB, name)


def secret_files(settings: Settings, spec: GatewaySpec) -> tuple[str, ...]:
    """The data folder, the tapes, and the files that settings name for what is secret."""
    data = settings.data_folder
    named = (settings.record.folder, settings.tls.key, settings.telemetry.token_file)
    references = (
        value.file
        for backend in spec.backends.values()
        for value in (*backend.env.values(), *backend.headers.values(), backend.client_secret)
        if isinstance(value, SecretReference)
    )
    return ((str(data),) if data.exists() else ()) + tuple(filter(None, (*named, *references)))
