"""What a tool says when it cannot do what it was asked, in the words of the specification."""

from __future__ import annotations

from typing import Any, ClassVar

from folkmoot.core.closecodes import CloseCode
from folkmoot.core.errors.base import INVALID_PARAMS, NOT_ALLOWED, FolkmootError


class ToolError(FolkmootError, jsonrpc=INVALID_PARAMS, http=400, close=CloseCode.BAD_REQUEST):
    """A tool cannot do what it was asked; a leaf's `sentence` is what it says unless told."""

    sentence: ClassVar[str] = ""

    def __init__(self, message: str = "", **data: Any) -> None:
        super().__init__(message or self.sentence, **data)


class AuthenticationRequired(
    ToolError, code="authentication_required", http=401, close=CloseCode.NOT_AUTHENTICATED
):
    """The request needs an account and carries no token."""

    sentence = "Authentication required."


class TokenRefused(ToolError, http=401, close=CloseCode.NOT_AUTHENTICATED):
    """The token opens no account."""


class TokenInvalid(TokenRefused, code="token_invalid"):
    """The token is wrong, was replaced by a recovery, or its account was deleted."""

    sentence = (
        "Authentication required. The token is not valid: it is wrong, was replaced, or its "
        "account was deleted. Use the current token, or get a new one with msg/recover."
    )


class AccountSuspended(TokenRefused, code="account_suspended"):
    """The operator has suspended the account, so its token and recovery code do not work."""

    sentence = (
        "Authentication required. This account is suspended, so its token does not work. Ask the "
        "operator of this hub."
    )


class ConfirmationInvalid(ToolError, code="confirmation_invalid", http=403):
    """A token must be given once more for this, and it is missing or not one that may."""


class AlreadySignedIn(ToolError, code="already_signed_in", http=409):
    """An account was registered or recovered in this session, so no other can be registered in
    it.
    """


class UnknownTool(ToolError, code="unknown_tool", http=404):
    """No tool has this name, in either spelling."""


class ArgumentInvalid(ToolError, code="argument_invalid"):
    """An argument has a value the tool does not take; the message names it."""

    def __init__(self, message: str, *, field: str, **data: Any) -> None:
        super().__init__(message, field=field, **data)


class RateLimited(ToolError, code="rate_limited", http=429, close=CloseCode.OVER_RATE):
    """It was done too often; the message and `retry_after` say when to try again."""


class QuotaExceeded(ToolError, code="quota_exceeded", jsonrpc=NOT_ALLOWED, http=507):
    """It would exceed a quota of the account or the hub; see `quota`, `limit` and `used`."""


class RegistrationClosed(ToolError, code="registration_closed", http=403):
    """The hub accepts no new accounts."""

    sentence = "Registration is closed on this server."


class InviteRequired(ToolError, code="invite_required", http=403):
    """The hub accepts new accounts only by invitation."""

    sentence = "An invite code is required to register on this server."


class InviteUnknown(ToolError, code="invite_unknown"):
    """No invite has this code."""

    sentence = "Invalid invite code."


class InviteNotOpen(ToolError, code="invite_not_open", http=404):
    """The invitation was used, has expired or was withdrawn, or is someone else's."""

    sentence = "There is no such open invitation."


class InviteClaimed(ToolError, code="invite_claimed", http=409):
    """Someone has already registered with this invite."""

    sentence = "This invite has already been claimed."


class HandleInvalid(ToolError, code="handle_invalid"):
    """The handle is not 3 to 20 letters, digits and underscores that begin with a letter."""

    sentence = (
        "Invalid handle. Must be 3-20 characters, lowercase alphanumeric and underscores, "
        "starting with a letter."
    )


class HandleTaken(ToolError, code="handle_taken", http=409):
    """The handle is taken, redirects to someone, or is reserved."""

    sentence = "Handle already taken."


class HandleNotFound(ToolError, code="handle_not_found", http=404):
    """The account to recover does not exist."""

    sentence = "Handle not found."


class TooManyHandleChanges(ToolError, code="too_many_handle_changes", http=429):
    """Too many old handles still redirect to the account to change it again."""

    sentence = "Too many handle changes. Wait until an old handle no longer redirects."


class RecoveryCodeInvalid(ToolError, code="recovery_code_invalid", http=403):
    """The recovery code is not the account's."""

    sentence = "Invalid recovery code."


class OneTimeCodeInvalid(ToolError, code="one_time_code_invalid", http=403):
    """The link was used already, is too old, or never was one."""

    sentence = "This link was used already or is too old. Make a new one with 'folkmoot open'."


class UserNotFound(ToolError, code="user_not_found", http=404):
    """No user has this handle, or none whom the caller may see."""

    sentence = "User not found."


class ContactNotFound(ToolError, code="contact_not_found", http=404):
    """The user is not among the caller's contacts."""

    sentence = "Contact not found."


class CredentialNotFound(ToolError, code="credential_not_found", http=404):
    """The caller has no token with this id."""

    sentence = "You have no token with this id."


class CannotSend(ToolError, code="cannot_send", http=403):
    """The recipient blocked the sender, or takes mail from contacts only."""

    sentence = "Cannot send message to this user."


class CannotAddSelf(ToolError, code="cannot_add_self"):
    """You cannot add yourself as a contact."""

    sentence = "Cannot add yourself as a contact."


class CannotBlockSelf(ToolError, code="cannot_block_self"):
    """You cannot block yourself."""

    sentence = "Cannot block yourself."


class NothingToUpdate(ToolError, code="nothing_to_update"):
    """A change of the profile names no field."""

    sentence = "No fields to update."


class PrivacyInvalid(ToolError, code="privacy_invalid"):
    """The privacy level is not one of the three."""

    sentence = "Invalid privacy level."


class ContentMissing(ToolError, code="content_missing"):
    """A message has neither a body nor an encrypted payload."""

    sentence = "Either body or encrypted_payload is required."


class ContentTwice(ToolError, code="content_twice"):
    """A message has both a body and an encrypted payload."""

    sentence = "Provide either body or encrypted_payload, not both."


class CannotSendToSelf(ToolError, code="cannot_send_to_self"):
    """You cannot send a message to yourself."""

    sentence = "Cannot send a message to yourself."


class ThreadNotFound(ToolError, code="thread_not_found", http=404):
    """No thread has this id, or the caller deleted it."""

    sentence = "Thread not found."


class MessageNotFound(ToolError, code="message_not_found", http=404):
    """No message has this id, or the caller deleted it."""

    sentence = "Message not found."


class AccessDenied(ToolError, code="access_denied", http=403):
    """The thread belongs to others."""

    sentence = "Access denied."
