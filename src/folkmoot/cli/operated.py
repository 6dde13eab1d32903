"""A hub as its operator uses it: through the control socket, or in its data folder."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from folkmoot.cli.masterkey import ask_hub
from folkmoot.cli.opened import opened
from folkmoot.cli.options import settings_from
from folkmoot.cli.output import say
from folkmoot.cli.running import check_entry
from folkmoot.core.errors import CommandFailed, PatternSyntax
from folkmoot.datafolder import Paths, running_hub

if TYPE_CHECKING:
    from folkmoot.settings import Loaded

QUOTING = "Put patterns in single quotes: a shell reads * and ! itself."


class Operated:
    """A hub's data folder, and whoever can do something there: the running hub, or this process."""

    def __init__(self, config: str | None, data: str | None) -> None:
        self._loaded: Loaded = settings_from(config, data=data)
        self._paths = Paths(self._loaded.settings.data_folder)
        check_entry(self._paths)
        self._runs = running_hub(self._paths.folder) is not None

    def do(self, command: str, arguments: dict[str, Any]) -> Any:
        """Have a command carried out."""
        try:
            if self._runs:
                return ask_hub(self._paths, command, arguments)
            return msgspec.to_builtins(asyncio.run(self._do_here(command, arguments)))
        except PatternSyntax as error:
            raise PatternSyntax(f"{error.message} {QUOTING}") from None

    def tell_when(self) -> None:
        """Say from when on a change holds, where that is not at once."""
        if not self._runs:
            say("No hub is running. This takes effect at its next start.", err=True)

    async def _do_here(self, command: str, arguments: dict[str, Any]) -> Any:
        from folkmoot.accounts import Accounts
        from folkmoot.bus import MemoryBus
        from folkmoot.clock import SystemClock
        from folkmoot.control.grants import grant_commands
        from folkmoot.control.operate import People, operator_commands
        from folkmoot.gateway.grant_views import GrantViews
        from folkmoot.gateway.granting import Granting
        from folkmoot.gateway.rights import HubRights
        from folkmoot.mail import Mail
        from folkmoot.transports.listen import base_url

        settings = self._loaded.settings
        if not self._paths.database_exists():
            raise CommandFailed(
                f"{self._paths.database}: no database yet, so nobody has an account. Start the "
                "hub first."
            )
        async with opened(settings) as (_, store, vault):
            clock = SystemClock()
            accounts = Accounts(store, clock, vault, policy="closed")
            rights = await HubRights.open(store, clock, accounts, self._loaded.gateway)
            granting = Granting(rights, store, clock, accounts, offline=True)
            views = GrantViews(rights, granting, store, clock)
            tls = bool(settings.tls.certificate)
            url = settings.public_url or base_url(settings.host, settings.port, tls=tls)
            mail = Mail(store, MemoryBus(), clock, accounts, vault)
            people = People(store, clock, accounts, mail, offline=True)
            commands = {
                **grant_commands(granting, views, url),
                **operator_commands(people, store, url),
            }
            return await commands[command](arguments, lambda _progress: None)
