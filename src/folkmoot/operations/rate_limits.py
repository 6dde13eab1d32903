"""What rate limits count by, and which outcomes they count."""

from __future__ import annotations

from types import NoneType
from typing import TYPE_CHECKING, Any, Final

from folkmoot.core import errors as e
from folkmoot.names.grammar import parse_handle
from folkmoot.operations.row import OperationLimit

if TYPE_CHECKING:
    from folkmoot.operations.call import Caller


def by_address(caller: Caller, _: Any) -> str:
    """The address a call came from."""
    return caller.address


def by_distant_address(caller: Caller, _: Any) -> str | None:
    """The address a call came from; none for whoever sits at the hub's own machine."""
    if caller.is_direct is not None and caller.is_direct():
        return None
    return caller.address


def by_handle(_: Caller, given: Any) -> str:
    """The normalised handle of a call; all invalid handles count as one."""
    return parse_handle(given.handle) or ""


def by_handle_and_address(caller: Caller, given: Any) -> str:
    """The handle a call is about, and the address it came from."""
    return f"{by_handle(caller, given)} {caller.address}"


by_user: Final = None
"""The account that calls."""

every_try: Final = object
when_done: Final = NoneType
when_wrong_code: Final = (e.RecoveryCodeInvalid, e.HandleNotFound)
"""Count guesses at the code of an account, whether it exists or not."""
when_wrong_secret: Final = (
    e.TokenInvalid,
    e.OneTimeCodeInvalid,
    e.SetUpInvalid,
    e.ConfirmationInvalid,
    e.DeviceCodeInvalid,
    e.PasskeyInvalid,
)
when_refused: Final = (e.HandleTaken, e.InviteRequired, e.InviteUnknown, e.InviteClaimed)
when_not_invited: Final = e.InvitationInvalid
when_missed: Final = (e.UserNotFound, e.ContactNotFound, e.CannotSend, e.HandleTaken)
"""Count handles that are nobody's, or whose owner cannot be reached: both tell who is here."""

GUESSES = OperationLimit("sign_in", by_address, when_wrong_secret)
"""For every operation that takes a token or a code."""
OWN_GUESSES = (GUESSES, OperationLimit("sign_in", by_user, when_wrong_secret))
"""The same for who is signed in: an account that was taken over guesses no faster from everywhere.
Nobody else can use up what it counts, so it locks nobody out."""
FETCHES = OperationLimit("device", by_user, every_try)
"""For every operation that has the hub ask servers elsewhere, which whoever calls it can choose."""
MISSED = OperationLimit("missed_handles", by_user, when_missed)
"""For every operation that names someone: together they tell of no more than so many handles."""
