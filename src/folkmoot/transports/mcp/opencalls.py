"""The calls that backends have not answered: whose they are, and how they are ended early."""

from __future__ import annotations

import asyncio
from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Self

from msgspec import Struct

from folkmoot.accounts.events import read_change
from folkmoot.core.errors import TokenInvalid, TooManyInFlight
from folkmoot.core.events import about
from folkmoot.mcp.server.service import Stopped

if TYPE_CHECKING:
    from folkmoot.core.errors import FolkmootError
    from folkmoot.core.ports import Event
    from folkmoot.mcp.server.service import Asked
    from folkmoot.transports.mcp.exchange import Exchange

MOST_OF_SESSION: Final = 64
MOST_OF_ACCOUNT: Final = 256
"""Calls that may be open at once, in one session and for one account."""


class OpenCall(Struct, eq=False):
    """One call, open while it is entered; `stop` ends it wherever it waits, and raises `Stopped`.

    Entered and left by the task that waits for the answer.
    """

    _calls: OpenCalls
    _asked: Asked
    owner: str
    session: str
    _stopped: bool = False
    _why: FolkmootError | None = None
    _task: asyncio.Task[Any] | None = None
    _cancelling: int = 0

    def __enter__(self) -> Self:
        self._task = task = asyncio.current_task()
        if task is not None:
            self._cancelling = task.cancelling()
        self._calls.enter(self)
        self._asked.stop = self.stop
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        task, self._task = self._task, None
        self._asked.stop = None
        self._calls.leave(self)
        # As a timeout does: whoever else cancels the task still means the task.
        if (
            self._stopped
            and task is not None
            and task.uncancel() <= self._cancelling
            and kind is asyncio.CancelledError
        ):
            raise self._why or Stopped

    def uses(self, credential_id: str) -> bool:
        """Whether it was made with a credential, or with one that ends with it."""
        exchange: Exchange = self._asked.caller
        return exchange.uses(credential_id)

    def stop(self, why: FolkmootError | None = None) -> None:
        """Have it end now, and be answered with why if there is anyone to hear that."""
        if self._task is not None and not self._stopped:
            self._stopped, self._why = True, why
            self._task.cancel()


class OpenCalls:
    """All of them. A call costs the same however many others there are."""

    def __init__(
        self, *, of_session: int = MOST_OF_SESSION, of_account: int = MOST_OF_ACCOUNT
    ) -> None:
        self._most_of_session = of_session
        self._most_of_account = of_account
        self._of_account: dict[str, set[OpenCall]] = {}
        self._of_session: Counter[str] = Counter()

    def __len__(self) -> int:
        return sum(map(len, self._of_account.values()))

    def open(self, asked: Asked) -> OpenCall:
        """A call to be entered; raises the refusal of one too many."""
        exchange: Exchange = asked.caller
        account = exchange.caller.account
        owner = account.id if account is not None else ""
        session = exchange.session.id if exchange.session is not None else ""
        if len(self._of_account.get(owner, ())) >= self._most_of_account:
            raise TooManyInFlight(
                f"You have {self._most_of_account} calls to backends open at once; "
                "wait until one is answered."
            )
        if session and self._of_session[session] >= self._most_of_session:
            raise TooManyInFlight(
                f"This session has {self._most_of_session} calls to backends open at once; "
                "wait until one is answered."
            )
        return OpenCall(self, asked, owner, session)

    def enter(self, call: OpenCall) -> None:
        """Count a call that was begun."""
        self._of_account.setdefault(call.owner, set()).add(call)
        if call.session:
            self._of_session[call.session] += 1

    def leave(self, call: OpenCall) -> None:
        """A call has ended."""
        left = self._of_account[call.owner]
        left.discard(call)
        if not left:
            del self._of_account[call.owner]
        if call.session:
            self._of_session[call.session] -= 1
            if not self._of_session[call.session]:
                del self._of_session[call.session]

    def account_changed(self, event: Event) -> None:
        """End the calls of an account whose tokens are good no more, or that is no more."""
        changed = read_change(event)
        if changed.ends_tokens:
            for call in tuple(self._of_account.get(changed.id, ())):
                call.stop(TokenInvalid())

    def credential_ended(self, event: Event) -> None:
        """End the calls that were made with a credential that is good no more."""
        for call in tuple(self._of_account.get(event.data["account"], ())):
            if call.uses(about(event)):
                call.stop(TokenInvalid())

    def give_up(self, why: FolkmootError) -> None:
        """End every call there is, and say why."""
        for call in tuple(chain.from_iterable(self._of_account.values())):
            call.stop(why)
