"""Asks from a program that is asynchronous: ask someone, and go on once they have decided."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from folkmoot.client.hub import Hub
from folkmoot.core import errors as e

if TYPE_CHECKING:
    from folkmoot.operations.asking import Asked, AskedCall

WAIT_SECONDS: Final = 50
"""For which the hub is asked to wait at a time."""


class Asks:
    """Asks people before a program does something.

    asks = Asks("https://moot.example", token)
    said = await asks.ask("shell", {"command": "make deploy"}, why="It is tested.", to="ada")
    if said.state == "approved":
        ...
    """

    def __init__(self, url: str, token: str) -> None:
        self.hub = Hub(url, token)

    async def ask(
        self,
        tool: str,
        arguments: dict[str, Any] | None = None,
        *,
        why: str = "",
        to: str | None = None,
        expires_in: int = 3600,
        edits: bool = False,
    ) -> AskedCall:
        """What became of it, once it was decided or its time is over. Cancelled, it is withdrawn.

        Without `to`, the person is asked whose account it is. A hub that is away for a while is
        asked again. With `edits` it is what was approved, whose `arguments` can be others than were
        asked about; without, its state is `edited` then.
        """
        create = partial(
            self.hub.create_ask,
            tool,
            arguments=arguments,
            why=why,
            to=to,
            expires_in=expires_in,
        )
        # No task: where a loop is closed, all of those are cancelled.
        making = asyncio.get_running_loop().run_in_executor(None, create)
        ends = time.monotonic() + expires_in + WAIT_SECONDS
        try:
            made = await asyncio.shield(making)
            while True:
                with suppress(e.HubUnreachable, e.AnswerLost):
                    found = await asyncio.to_thread(
                        self.hub.get_ask, made.ask_id, wait=WAIT_SECONDS
                    )
                    if edits and found.edited_as is not None:
                        return await asyncio.to_thread(self.hub.get_ask, found.edited_as)
                    if found.state != "open":
                        return found
                    continue
                if time.monotonic() > ends:
                    raise e.HubUnreachable("The hub did not answer in time.")
                await asyncio.sleep(1)
        except asyncio.CancelledError:
            withdrawing = asyncio.ensure_future(self._withdraw(making))
            # Whoever is cancelled again withdraws it all the same.
            while not withdrawing.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.shield(withdrawing)
            raise

    async def _withdraw(self, making: asyncio.Future[Asked]) -> None:
        """Withdraw an ask, also one that was given up before the hub had said that it is made."""
        with suppress(e.FolkmootError):
            await asyncio.to_thread(self.hub.withdraw_ask, (await making).ask_id)
