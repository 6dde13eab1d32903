"""One tree of errors; every leaf knows its code and its JSON-RPC, HTTP and WebSocket form.

FolkmootError
├── MessageError            the bytes are not a message
│   ├── MessageTooLarge, InvalidUtf8, InvalidJson, LoneSurrogate, DuplicateKey,
│   │   NestingTooDeep, NumberOutOfRange
│   ├── BatchRefused, NotAnObject
│   ├── InvalidVersion, InvalidId, InvalidMethod, InvalidParams, InvalidResponse, Unclassifiable
│   └── UnsupportedProtocol, InvalidEnvelope
├── KindError               the kind is wrong, or does not fit its payload
│   ├── KindTooLong, KindSyntax, KindNeedsMethod, UnknownOperation, WrongOperation, ReservedKind
│   ├── MethodMismatch, ContextMismatch, ContextNotAllowed, FormatMismatch
│   ├── PayloadMissing, PayloadInvalid, PayloadIdInvalid, PayloadIdForbidden, ResultXorError
│   └── RecipientRequired, CorrelationRequired, CorrelationForbidden, ReasonRequired
├── SessionError            a session cannot go where it was told
│   └── SessionTransition
├── CapabilityError         a capability pattern cannot be compiled or granted
│   ├── PatternSyntax, ConstraintSyntax, CapabilityReserved, TooManyCapabilities
│   └── GrantExceedsRights
├── PolicyError             the message is well formed, and not allowed
│   ├── CapabilityDenied, ProposalRequired
│   └── BlockedByInterceptor, RewriteRefused
├── SettingsError           the configuration cannot be used
├── StoreError              the database cannot do what it was asked
│   ├── DatabaseNewer, DatabaseCorrupt, DatabaseLocked, DatabaseUnwritable
│   ├── MigrationFailed, MigrationEdited, BackupFailed
│   ├── DiskFull, DiskFailed
│   ├── ConstraintViolated, StatementFailed, UnitSuspended, SealBroken
│   └── StoreOverloaded, StoreClosed
├── BusError                an event cannot be carried
│   └── SubjectInvalid, EventUnencodable, EventTooLarge, BusClosed
├── DataFolderError         the data folder cannot be used
│   └── DataFolderUnwritable, DataFolderInUse, KeyUnusable, KeyMismatch
├── ServeError              the hub cannot listen
│   └── PortTaken, AddressUnusable
├── ControlError            the control socket cannot do what it was asked
│   └── HubNotRunning, CommandInvalid, UnknownCommand, CommandFailed, ExportFailed
├── ClientError             the command line cannot do what it was asked, as a client of a hub
│   ├── HubUnreachable, AnswerInvalid, ToolRefused
│   └── NotSignedIn, CredentialsUnusable, ClientFileUnusable
├── RequestError            the HTTP request cannot be served
│   ├── NotFound, MethodNotAllowed, BodyTooLarge, BodyTimeout
│   ├── HostNotAllowed, OriginNotAllowed, HubStopping
│   └── QueryInvalid, TokensDiffer, SessionNotFound, TooManySessions
├── ToolError               a tool cannot do what it was asked
│   ├── AuthenticationRequired, UnknownTool, ArgumentInvalid, RateLimited
│   ├── RegistrationClosed, InviteRequired, InviteUnknown, InviteClaimed
│   ├── HandleInvalid, HandleTaken, HandleNotFound, TooManyHandleChanges, RecoveryCodeInvalid
│   ├── UserNotFound, ContactNotFound, CannotSend, CannotAddSelf, CannotBlockSelf
│   ├── NothingToUpdate, PrivacyInvalid
│   ├── ContentMissing, ContentTwice, CannotSendToSelf
│   └── ThreadNotFound, MessageNotFound, AccessDenied
└── InternalError           the hub failed; the log tells more under the error's id
"""

from __future__ import annotations

from typing import Any, ClassVar

from folkmoot.core.closecodes import CloseCode

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
NOT_ALLOWED = -32003


class FolkmootError(Exception):
    """The root of every error Folkmoot raises on purpose.

    The message is a clear sentence for the one who caused it; `data` holds what a program may want.
    """

    code: ClassVar[str] = "error"
    jsonrpc: ClassVar[int] = INTERNAL_ERROR
    http: ClassVar[int] = 500
    close: ClassVar[CloseCode] = CloseCode.INTERNAL

    def __init__(self, message: str, **data: Any) -> None:
        super().__init__(message)
        self.message = message
        self.data = data

    def __init_subclass__(
        cls,
        *,
        code: str | None = None,
        jsonrpc: int | None = None,
        http: int | None = None,
        close: CloseCode | None = None,
    ) -> None:
        super().__init_subclass__()
        if jsonrpc is not None:
            cls.jsonrpc = jsonrpc
        if http is not None:
            cls.http = http
        if close is not None:
            cls.close = close
        if code is not None:
            cls.code = code
            ERRORS[code] = cls

    def as_jsonrpc(self) -> dict[str, Any]:
        """The JSON-RPC error object: the number for machines, our code and data beside it."""
        return {
            "code": self.jsonrpc,
            "message": self.message,
            "data": {"code": self.code, **self.data},
        }

    def as_http(self) -> dict[str, Any]:
        """The JSON body of the HTTP answer with status `http`."""
        return {"error": {"code": self.code, "message": self.message, **self.data}}


ERRORS: dict[str, type[FolkmootError]] = {}
"""Every leaf of the tree by its code: the table the reference page is made from."""


class MessageError(FolkmootError, jsonrpc=INVALID_REQUEST, http=400, close=CloseCode.BAD_REQUEST):
    """The bytes are not a message."""


class MessageTooLarge(MessageError, code="message_too_large", http=413, close=CloseCode.TOO_BIG):
    """The message has more bytes than the limit allows."""


class InvalidUtf8(MessageError, code="invalid_utf8", jsonrpc=PARSE_ERROR):
    """The bytes are not valid UTF-8."""


class InvalidJson(MessageError, code="invalid_json", jsonrpc=PARSE_ERROR):
    """The text is not one JSON value."""


class LoneSurrogate(MessageError, code="lone_surrogate", jsonrpc=PARSE_ERROR):
    r"""A string holds half of a surrogate pair, such as `\ud800`."""


class DuplicateKey(MessageError, code="duplicate_key", jsonrpc=PARSE_ERROR):
    """An object, at any depth, names the same member twice."""


class NestingTooDeep(MessageError, code="nesting_too_deep", jsonrpc=PARSE_ERROR):
    """Objects and arrays lie deeper inside each other than the limit allows."""


class NumberOutOfRange(MessageError, code="number_out_of_range", jsonrpc=PARSE_ERROR):
    """A number is NaN, infinite or too large to be kept exactly."""


class BatchRefused(MessageError, code="batch_refused"):
    """The message is an array; JSON-RPC batches are not accepted."""


class NotAnObject(MessageError, code="not_an_object"):
    """The message is a JSON value, but not an object."""


class InvalidVersion(MessageError, code="invalid_jsonrpc_version"):
    """`jsonrpc` is missing or is not the string "2.0"."""


class InvalidId(MessageError, code="invalid_id"):
    """`id` is not a string or an integer of 64 bits."""


class InvalidMethod(MessageError, code="invalid_method"):
    """`method` is not a string that is not empty."""


class InvalidParams(MessageError, code="invalid_params"):
    """`params` is not an object or an array."""


class InvalidResponse(MessageError, code="invalid_response"):
    """A response has no id, both result and error or neither, or an error of the wrong shape."""


class Unclassifiable(MessageError, code="unclassifiable"):
    """The object is neither request, notification nor response, or is several at once."""


class UnsupportedProtocol(MessageError, code="unsupported_protocol"):
    """`protocol` is not the version of MCPx this hub speaks."""


class InvalidEnvelope(MessageError, code="invalid_envelope"):
    """A member of an MCPx message is missing, too long or of the wrong type."""


class KindError(FolkmootError, jsonrpc=INVALID_REQUEST, http=400, close=CloseCode.BAD_REQUEST):
    """The kind is wrong, or does not fit its payload."""


class KindTooLong(KindError, code="kind_too_long"):
    """The kind, or one of its parts, is longer than the grammar allows."""


class KindSyntax(KindError, code="kind_syntax"):
    """The kind does not follow `protocol.operation[.method[:context]]`."""


class KindNeedsMethod(KindError, code="kind_needs_method"):
    """A kind of the protocol `mcp` names no method."""


class UnknownOperation(KindError, code="unknown_operation"):
    """The protocol is known and has no such operation."""


class WrongOperation(KindError, code="wrong_operation"):
    """A request or proposal names a `notifications/…` method, or a notification another one."""


class ReservedKind(KindError, code="kind_reserved", http=403, close=CloseCode.NOT_ALLOWED):
    """The kind belongs to the gateway; no participant may send it."""


class MethodMismatch(KindError, code="method_mismatch"):
    """The kind names one method and the payload another."""


class ContextMismatch(KindError, code="context_mismatch"):
    """The kind names one tool, prompt or resource and the payload another."""


class ContextNotAllowed(KindError, code="context_not_allowed"):
    """The method takes no context, and the kind has one."""


class FormatMismatch(KindError, code="format_mismatch"):
    """A chat message claims one format in its kind and another in its payload."""


class PayloadMissing(KindError, code="payload_missing"):
    """The kind needs a payload that is an object, and there is none."""


class PayloadInvalid(KindError, code="payload_invalid"):
    """The payload lacks a member its kind requires, or the member has the wrong type."""


class PayloadIdInvalid(KindError, code="payload_id_invalid"):
    """`payload.id` is missing or is not a string or an integer."""


class PayloadIdForbidden(KindError, code="payload_id_forbidden"):
    """A notification carries a `payload.id`."""


class ResultXorError(KindError, code="result_xor_error"):
    """A response carries both `result` and `error`, or neither."""


class RecipientRequired(KindError, code="recipient_required"):
    """A request must name exactly one recipient; a response must name the requester."""


class CorrelationRequired(KindError, code="correlation_required"):
    """The kind must name, in `correlation_id`, the message it belongs to."""


class CorrelationForbidden(KindError, code="correlation_forbidden"):
    """A proposal begins something new and may not correlate an earlier message."""


class ReasonRequired(KindError, code="reason_required"):
    """A rejection must say why, in `payload.reason`."""


class SessionError(FolkmootError, jsonrpc=INVALID_REQUEST, http=409):
    """A session cannot go where it was told."""


class SessionTransition(SessionError, code="session_transition"):
    """The session's state does not lead to the one asked for."""


class CapabilityError(FolkmootError, jsonrpc=INVALID_PARAMS, http=400, close=CloseCode.BAD_REQUEST):
    """A capability pattern cannot be compiled or granted."""


class PatternSyntax(CapabilityError, code="pattern_syntax"):
    """The pattern is not a kind pattern."""


class ConstraintSyntax(CapabilityError, code="constraint_syntax"):
    """The payload constraint is not an object of exact values, wildcards and alternatives."""


class CapabilityReserved(CapabilityError, code="capability_reserved", http=403):
    """The pattern names `system.*`, which nobody but the gateway can hold."""


class TooManyCapabilities(CapabilityError, code="too_many_capabilities"):
    """More capabilities are held than one principal can have."""


class GrantExceedsRights(CapabilityError, code="grant_exceeds_rights", http=403):
    """The granter does not hold everything the granted pattern allows."""


class PolicyError(FolkmootError, jsonrpc=NOT_ALLOWED, http=403, close=CloseCode.NOT_ALLOWED):
    """The message is well formed, and not allowed."""


class CapabilityDenied(PolicyError, code="capability_denied"):
    """No capability of the sender's covers the message, or a deny does."""


class ProposalRequired(PolicyError, code="proposal_required"):
    """The sender may not do this, but may propose it."""


class BlockedByInterceptor(PolicyError, code="blocked"):
    """An interceptor stopped the message."""


class RewriteRefused(PolicyError, code="rewrite_refused", http=500):
    """An interceptor changed a room's message, which may be stopped but never rewritten."""


class SettingsError(FolkmootError, code="settings_invalid"):
    """The configuration cannot be used; the message names file, line and setting."""


class StoreError(FolkmootError, http=503):
    """The database cannot do what it was asked."""


class DatabaseNewer(StoreError, code="database_newer"):
    """The database was written by a newer Folkmoot; this one leaves it alone."""


class DatabaseCorrupt(StoreError, code="database_corrupt"):
    """The file is not a database, or its integrity check failed."""


class DatabaseLocked(StoreError, code="database_locked"):
    """Another program holds the database for longer than we wait."""


class DatabaseUnwritable(StoreError, code="database_unwritable"):
    """The database cannot be opened or written with the rights this program has."""


class MigrationFailed(StoreError, code="migration_failed"):
    """A migration failed and was undone as a whole."""


class MigrationEdited(StoreError, code="migration_edited"):
    """A migration this database already has differs from the one in this program."""


class BackupFailed(StoreError, code="backup_failed"):
    """The backup could not be written; nothing was left behind."""


class DiskFull(StoreError, code="disk_full", http=507):
    """The disk has no room for what was to be written."""


class DiskFailed(StoreError, code="disk_failed"):
    """The disk failed while the database was read or written."""


class ConstraintViolated(StoreError, code="constraint_violated", http=409):
    """A statement broke a rule of the schema, such as uniqueness."""


class StatementFailed(StoreError, code="statement_failed", http=500):
    """A statement could not be run; the fault is in the program."""


class UnitSuspended(StoreError, code="unit_suspended", http=500):
    """A unit awaited something other than its transaction; the fault is in the program."""


class SealBroken(StoreError, code="seal_broken", http=500):
    """Something sealed cannot be opened: it was changed, or was sealed for another place."""


class StoreOverloaded(StoreError, code="store_overloaded"):
    """More writes are waiting than the queue holds; try again in a moment."""


class StoreClosed(StoreError, code="store_closed", close=CloseCode.RESTARTING):
    """The store is closing or closed."""


class BusError(FolkmootError, http=503):
    """An event cannot be carried."""


class SubjectInvalid(BusError, code="subject_invalid", http=500):
    """A subject or pattern is not made of tokens joined by dots."""


class EventUnencodable(BusError, code="event_unencodable", http=500):
    """An event cannot be written as JSON."""


class EventTooLarge(BusError, code="event_too_large"):
    """An event has more bytes than the bus carries."""


class BusClosed(BusError, code="bus_closed", close=CloseCode.RESTARTING):
    """The bus is closing or closed."""


class DataFolderError(FolkmootError):
    """The data folder cannot be used."""


class DataFolderUnwritable(DataFolderError, code="data_folder_unwritable"):
    """The data folder cannot be made or written."""


class DataFolderInUse(DataFolderError, code="data_folder_in_use"):
    """Another hub is running on this data folder."""


class KeyUnusable(DataFolderError, code="key_unusable"):
    """The master key is missing beside an existing database, malformed, or readable by others."""


class KeyMismatch(DataFolderError, code="key_mismatch"):
    """The master key is not the one that opens this database."""


class ServeError(FolkmootError):
    """The hub cannot listen."""


class PortTaken(ServeError, code="port_taken"):
    """Another program listens on the port."""


class AddressUnusable(ServeError, code="address_unusable"):
    """The host is not an address of this machine, or the port is not allowed."""


class ControlError(FolkmootError):
    """The control socket cannot do what it was asked."""


class HubNotRunning(ControlError, code="hub_not_running"):
    """No hub is running on the data folder."""


class CommandInvalid(ControlError, code="command_invalid"):
    """The request, or one of its arguments, is not what the command takes."""


class UnknownCommand(ControlError, code="unknown_command"):
    """The running hub does not know the command."""


class CommandFailed(ControlError, code="command_failed"):
    """The running hub could not carry the command out; the message says why."""


class ExportFailed(ControlError, code="export_failed"):
    """The export could not be written; nothing was left behind."""


class ClientError(FolkmootError):
    """The command line cannot do what it was asked, as a client of a hub."""


class HubUnreachable(ClientError, code="hub_unreachable"):
    """No hub answers at the address, or the connection broke."""


class AnswerInvalid(ClientError, code="answer_invalid"):
    """What answers at the address does not answer as a hub does."""


class ToolRefused(ClientError, code="tool_refused"):
    """The hub understood the command and refused it; the message says why."""


class NotSignedIn(ClientError, code="not_signed_in"):
    """The credentials file has no account that fits, or the hub does not accept its token."""


class CredentialsUnusable(ClientError, code="credentials_unusable"):
    """The credentials file cannot be read or written, or others can read it."""


class ClientFileUnusable(ClientError, code="client_file_unusable"):
    """The settings file of an MCP client cannot be extended without the risk of harming it."""


class RequestError(FolkmootError, jsonrpc=INVALID_REQUEST, http=400, close=CloseCode.BAD_REQUEST):
    """The HTTP request cannot be served."""


class NotFound(RequestError, code="not_found", http=404):
    """Nothing is served at this path."""


class MethodNotAllowed(RequestError, code="method_not_allowed", http=405):
    """The path does not take this method; `Allow` names those it takes."""


class BodyTooLarge(RequestError, code="body_too_large", http=413, close=CloseCode.TOO_BIG):
    """The request's body has more bytes than the limit allows."""


class BodyTimeout(RequestError, code="body_timeout", http=408):
    """The rest of the request's body did not arrive in time."""


class HostNotAllowed(RequestError, code="host_not_allowed", http=421, close=CloseCode.NOT_ALLOWED):
    """The request is addressed to a host name this hub does not answer to."""


class OriginNotAllowed(
    RequestError, code="origin_not_allowed", http=403, close=CloseCode.NOT_ALLOWED
):
    """A web page of another origin sent the request."""


class HubStopping(RequestError, code="hub_stopping", http=503, close=CloseCode.RESTARTING):
    """The hub is stopping and could not finish the request in time."""


class QueryInvalid(RequestError, code="query_invalid"):
    """A query parameter has a value the address does not take."""


class TokensDiffer(RequestError, code="tokens_differ"):
    """The request carries two different tokens, one in its URL and one in its header."""


class SessionNotFound(RequestError, code="session_not_found", http=404):
    """The session has ended, never was, or was opened with another token."""


class TooManySessions(RequestError, code="too_many_sessions", http=429):
    """So many sessions without an account come from one address that it may open no more."""


class ToolError(FolkmootError, jsonrpc=INVALID_PARAMS, http=400, close=CloseCode.BAD_REQUEST):
    """A tool cannot do what it was asked; a leaf's `sentence` is what it says unless told."""

    sentence: ClassVar[str] = ""

    def __init__(self, message: str = "", **data: Any) -> None:
        super().__init__(message or self.sentence, **data)


class AuthenticationRequired(
    ToolError, code="authentication_required", http=401, close=CloseCode.NOT_AUTHENTICATED
):
    """The tool needs an account, and the request has no token, or one that is nobody's."""

    sentence = "Authentication required."


class UnknownTool(ToolError, code="unknown_tool", http=404):
    """No tool has this name, in either spelling."""


class ArgumentInvalid(ToolError, code="argument_invalid"):
    """An argument has a value the tool does not take; the message names it."""

    def __init__(self, message: str, *, field: str) -> None:
        super().__init__(message, field=field)


class RateLimited(ToolError, code="rate_limited", http=429, close=CloseCode.OVER_RATE):
    """It was done too often; the message and `retry_after` say when it may be tried again."""


class RegistrationClosed(ToolError, code="registration_closed", http=403):
    """The hub takes no new accounts."""

    sentence = "Registration is closed on this server."


class InviteRequired(ToolError, code="invite_required", http=403):
    """The hub takes only accounts that were invited."""

    sentence = "An invite code is required to register on this server."


class InviteUnknown(ToolError, code="invite_unknown"):
    """No invite has this code."""

    sentence = "Invalid invite code."


class InviteClaimed(ToolError, code="invite_claimed", http=409):
    """Someone has registered with this invite already."""

    sentence = "This invite has already been claimed."


class HandleInvalid(ToolError, code="handle_invalid"):
    """The handle is not 3 to 20 letters, digits and underscores that begin with a letter."""

    sentence = (
        "Invalid handle. Must be 3-20 characters, lowercase alphanumeric and underscores, "
        "starting with a letter."
    )


class HandleTaken(ToolError, code="handle_taken", http=409):
    """The handle is someone's, leads to someone, or is reserved."""

    sentence = "Handle already taken."


class HandleNotFound(ToolError, code="handle_not_found", http=404):
    """The account to recover does not exist."""

    sentence = "Handle not found."


class TooManyHandleChanges(ToolError, code="too_many_handle_changes", http=429):
    """So many old handles still lead to the account that it may not leave another one."""

    sentence = "Too many handle changes. Wait until an old handle no longer redirects."


class RecoveryCodeInvalid(ToolError, code="recovery_code_invalid", http=403):
    """The recovery code is not the account's."""

    sentence = "Invalid recovery code."


class UserNotFound(ToolError, code="user_not_found", http=404):
    """No user has this handle, or none whom the caller may see."""

    sentence = "User not found."


class ContactNotFound(ToolError, code="contact_not_found", http=404):
    """The user is not among the caller's contacts."""

    sentence = "Contact not found."


class CannotSend(ToolError, code="cannot_send", http=403):
    """The recipient blocked the sender, or takes mail from contacts only."""

    sentence = "Cannot send message to this user."


class CannotAddSelf(ToolError, code="cannot_add_self"):
    """Nobody is a contact of their own."""

    sentence = "Cannot add yourself as a contact."


class CannotBlockSelf(ToolError, code="cannot_block_self"):
    """Nobody blocks themselves."""

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
    """Nobody writes to themselves."""

    sentence = "Cannot send a message to yourself."


class ThreadNotFound(ToolError, code="thread_not_found", http=404):
    """No thread has this id, or the caller deleted it."""

    sentence = "Thread not found."


class MessageNotFound(ToolError, code="message_not_found", http=404):
    """No message has this id, or the caller deleted it."""

    sentence = "Message not found."


class AccessDenied(ToolError, code="access_denied", http=403):
    """The thread is of others."""

    sentence = "Access denied."


class InternalError(FolkmootError, code="internal_error"):
    """The hub failed; the log tells more under the id in the answer."""
