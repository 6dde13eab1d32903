"""What rate limits count by, and which outcomes they count."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from folkmoot.core.errors import (
    CannotSend,
    ConfirmationInvalid,
    ContactNotFound,
    FolkmootError,
    HandleNotFound,
    HandleTaken,
    InvitationInvalid,
    InviteClaimed,
    InviteRequired,
    InviteUnknown,
    OneTimeCodeInvalid,
    RecoveryCodeInvalid,
    TokenInvalid,
    UserNotFound,
)
from folkmoot.names.handles import parse_handle
from folkmoot.operations.row import Limit

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
    """The handle a call is about, in one spelling; what is no handle counts as one and the same."""
    return parse_handle(given.handle) or ""


def by_handle_and_address(caller: Caller, given: Any) -> str:
    """The handle a call is about, and the address it came from."""
    return f"{by_handle(caller, given)} {caller.address}"


def by_user(caller: Caller, _: Any) -> str:
    """The account that calls."""
    return caller.account.id if caller.account is not None else ""


def every_try(_: FolkmootError | None) -> bool:
    """Count whatever comes of it."""
    return True


def when_done(error: FolkmootError | None) -> bool:
    """Count what succeeded."""
    return error is None


def when_wrong_code(error: FolkmootError | None) -> bool:
    """Count guesses at the code of an account, whether it exists or not."""
    return isinstance(error, (RecoveryCodeInvalid, HandleNotFound))


def when_wrong_secret(error: FolkmootError | None) -> bool:
    """Count tokens and one-time codes that open nothing."""
    return isinstance(error, (TokenInvalid, OneTimeCodeInvalid, ConfirmationInvalid))


def when_refused(error: FolkmootError | None) -> bool:
    """Count handles that could not be registered."""
    return isinstance(error, (HandleTaken, InviteRequired, InviteUnknown, InviteClaimed))


def when_not_invited(error: FolkmootError | None) -> bool:
    """Count tokens that are nobody's invitation."""
    return isinstance(error, InvitationInvalid)


def when_missed(error: FolkmootError | None) -> bool:
    """Count handles that are nobody's, or whose owner cannot be reached: both tell who is here."""
    return isinstance(error, (UserNotFound, ContactNotFound, CannotSend, HandleTaken))


MISSED = Limit("missed_handles", by_user, when_missed)
"""For every operation that names someone: together they tell of no more than so many handles."""
