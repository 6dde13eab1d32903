"""One tree of errors; every leaf knows its code and its JSON-RPC, HTTP and WebSocket form.

Each class is a row: what it is below, how its forms differ from those of that class, and what it
means, which is its sentence on the reference page. The order is that of the reference page.
"""

from __future__ import annotations

from typing import Any, ClassVar

from folkmoot.core.closecodes import CloseCode

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
SERVER_ERROR = -32000
NOT_ALLOWED = -32003
TARGET_LEFT = -32010
TIMED_OUT = -32011
CAPABILITY_MISSING = -32021

ERRORS: dict[str, type[FolkmootError]] = {}
"""Every leaf of the tree by its code: the table the reference page is made from."""


class FolkmootError(Exception):
    """The root of every error Folkmoot raises on purpose.

    The message is a clear sentence for the one who caused it; `data` holds what a program may want.
    """

    code: ClassVar[str] = "error"
    jsonrpc: ClassVar[int] = INTERNAL_ERROR
    http: ClassVar[int] = 500
    close: ClassVar[CloseCode] = CloseCode.INTERNAL
    sentence: ClassVar[str] = ""

    def __init__(self, message: str, **data: Any) -> None:
        super().__init__(message)
        self.message = message
        self.data = data

    def __init_subclass__(
        cls,
        *,
        abstract: bool = False,
        code: str | None = None,
        jsonrpc: int | None = None,
        http: int | None = None,
        close: CloseCode | None = None,
        says: str = "",
    ) -> None:
        """A leaf has a code: its name in snake case unless told; an `abstract` class has none.

        Only classes of this module are in the table; one of another module has its base's code.
        """
        super().__init_subclass__()
        if jsonrpc is not None:
            cls.jsonrpc = jsonrpc
        if http is not None:
            cls.http = http
        if close is not None:
            cls.close = close
        if says:
            cls.sentence = says
        if cls.__module__ == __name__ and not abstract:
            words = "".join(f"_{c.lower()}" if c.isupper() else c for c in cls.__name__)
            cls.code = code or words.removeprefix("_")
            ERRORS[cls.code] = cls

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


# fmt: off

class MessageError(
    FolkmootError, abstract=True, jsonrpc=INVALID_REQUEST, http=400, close=CloseCode.BAD_REQUEST
):
    """The bytes are not a message."""
class MessageTooLarge(MessageError, http=413, close=CloseCode.TOO_BIG):
    """The message has more bytes than the limit allows."""
class InvalidUtf8(MessageError, jsonrpc=PARSE_ERROR):
    """The bytes are not valid UTF-8."""
class InvalidJson(MessageError, jsonrpc=PARSE_ERROR):
    """The text is not one JSON value."""
class LoneSurrogate(MessageError, jsonrpc=PARSE_ERROR):
    r"""A string holds half of a surrogate pair, such as `\ud800`."""
class DuplicateKey(MessageError, jsonrpc=PARSE_ERROR):
    """An object, at any depth, names the same member twice."""
class NestingTooDeep(MessageError, jsonrpc=PARSE_ERROR):
    """Objects and arrays are nested deeper than the limit allows."""
class NumberOutOfRange(MessageError, jsonrpc=PARSE_ERROR):
    """A number is NaN, infinite or too large to be kept exactly."""
class BatchRefused(MessageError):
    """The message is an array; JSON-RPC batches are not accepted."""
class NotAnObject(MessageError):
    """The message is a JSON value, but not an object."""
class InvalidVersion(MessageError, code="invalid_jsonrpc_version"):
    """`jsonrpc` is missing or is not the string "2.0"."""
class InvalidId(MessageError):
    """`id` is not a string or an integer of 64 bits."""
class InvalidMethod(MessageError):
    """`method` must be a non-empty string."""
class InvalidParams(MessageError):
    """`params` is not an object or an array."""
class InvalidResponse(MessageError):
    """A response has no id, both result and error or neither, or an error of the wrong shape."""
class Unclassifiable(MessageError):
    """The object is neither request, notification nor response, or is several at once."""
class UnsupportedProtocol(MessageError):
    """`protocol` is not the version of MCPx this hub speaks."""
class InvalidEnvelope(MessageError):
    """A member of an MCPx message is missing, too long or of the wrong type."""

class KindError(
    FolkmootError, abstract=True, jsonrpc=INVALID_REQUEST, http=400, close=CloseCode.BAD_REQUEST
):
    """The kind is wrong, or does not fit its payload."""
class KindTooLong(KindError):
    """The kind, or one of its parts, is longer than the grammar allows."""
class KindSyntax(KindError):
    """The kind does not follow `protocol.operation[.method[:context]]`."""
class KindNeedsMethod(KindError):
    """A kind of the protocol `mcp` names no method."""
class UnknownOperation(KindError):
    """The protocol is known, but has no such operation."""
class WrongOperation(KindError):
    """A request or proposal names a `notifications/…` method, or a notification another one."""
class ReservedKind(KindError, code="kind_reserved", http=403, close=CloseCode.NOT_ALLOWED):
    """The kind belongs to the gateway; no participant may send it."""
class MethodMismatch(KindError):
    """The kind names one method and the payload another."""
class ContextMismatch(KindError):
    """The kind names one tool, prompt or resource and the payload another."""
class ContextNotAllowed(KindError):
    """The method takes no context, and the kind has one."""
class FormatMismatch(KindError):
    """A chat message claims one format in its kind and another in its payload."""
class PayloadMissing(KindError):
    """The kind needs a payload that is an object, and there is none."""
class PayloadInvalid(KindError):
    """The payload lacks a member its kind requires, or the member has the wrong type."""
class PayloadIdInvalid(KindError):
    """`payload.id` is missing or is not a string or an integer."""
class PayloadIdForbidden(KindError):
    """A notification carries a `payload.id`."""
class ResultXorError(KindError):
    """A response carries both `result` and `error`, or neither."""
class RecipientRequired(KindError):
    """A request must name exactly one recipient; a response must name the requester."""
class CorrelationRequired(KindError):
    """The kind must name, in `correlation_id`, the message it belongs to."""
class CorrelationForbidden(KindError):
    """A proposal must not correlate an earlier message."""
class ReasonRequired(KindError):
    """A rejection must say why, in `payload.reason`."""

class SessionError(FolkmootError, abstract=True, jsonrpc=INVALID_REQUEST, http=409):
    """A session cannot change its state as requested."""
class SessionTransition(SessionError):
    """The session's state does not lead to the one asked for."""

class CapabilityError(
    FolkmootError, abstract=True, jsonrpc=INVALID_PARAMS, http=400, close=CloseCode.BAD_REQUEST
):
    """A capability pattern cannot be compiled or granted."""
class PatternSyntax(CapabilityError):
    """The pattern is not a kind pattern."""
class ConstraintSyntax(CapabilityError):
    """The payload constraint is not an object of exact values, wildcards and alternatives."""
class CapabilityReserved(CapabilityError, http=403):
    """The pattern names `system.*`, which nobody but the gateway can hold."""
class TooManyCapabilities(CapabilityError):
    """More capabilities are held than one principal can have."""
class GrantExceedsRights(CapabilityError, http=403):
    """The granter does not hold everything the granted pattern allows."""

class PolicyError(
    FolkmootError, abstract=True, jsonrpc=NOT_ALLOWED, http=403, close=CloseCode.NOT_ALLOWED
):
    """The message is well formed, but not allowed."""
class CapabilityDenied(PolicyError):
    """No capability of the sender covers the message, or a deny does."""
class ScopeMissing(CapabilityDenied):
    """The credential that was used has a scope, and the message is outside it."""
class ProposalRequired(PolicyError):
    """The sender may not do this, but may propose it."""
class BlockedByInterceptor(PolicyError, code="blocked"):
    """An interceptor stopped the message."""
class RewriteRefused(PolicyError, http=500):
    """An interceptor changed what may be stopped but not rewritten, such as a room's message."""
class MessageDropped(PolicyError):
    """A held message was dropped, or nobody decided in time."""

class RoomError(
    FolkmootError, abstract=True, jsonrpc=INVALID_REQUEST, http=409, close=CloseCode.BAD_REQUEST
):
    """The message is well formed, but not valid in the room's present state."""
class SenderForged(RoomError, http=403, close=CloseCode.NOT_ALLOWED):
    """`from` names someone other than the participant who sent the message."""
class IdUsed(RoomError):
    """An earlier message of the room has this id; `seq` is there when it was the same sender's."""
class RecipientUnknown(RoomError, http=404):
    """The recipient of a request is not in the room."""
class RecipientInvalid(RoomError, http=400):
    """The recipients are not those the message must have, or one is named twice."""
class MessageUnknown(RoomError, http=404):
    """The room's history has no message with the id that is named."""
class RequestIdOpen(RoomError):
    """The requester has an open request to the same participant with the same `payload.id`."""
class RequestNotOpen(RoomError):
    """The message correlates no open request: it was answered, cancelled or never made."""
class NotAsked(RoomError, http=403, close=CloseCode.NOT_ALLOWED):
    """Only the participant a request was sent to may answer it or report its progress."""
class NotRequester(RoomError, http=403, close=CloseCode.NOT_ALLOWED):
    """Only the participant who made a request, or sent a chat message, may cancel it."""
class NotServing(RoomError):
    """Only the connection that serves may begin a request, and this one does not."""
class RequestBegun(RoomError):
    """One of the participant's connections has begun this request already."""
class ResponseMismatch(RoomError, http=400):
    """The message differs from its request in method, context, id or progress token."""
class TargetLeft(RoomError, jsonrpc=TARGET_LEFT):
    """The participant who was asked left the room before answering."""
class RequestTimedOut(RoomError, jsonrpc=TIMED_OUT, http=504):
    """The participant who was asked did not answer in time."""
class ParticipantPaused(RoomError, jsonrpc=NOT_ALLOWED, http=403, close=CloseCode.NOT_ALLOWED):
    """The sender is paused, and the message would begin something; `by` and `reason` tell more."""
class MethodUnknown(RoomError, jsonrpc=METHOD_NOT_FOUND, http=404):
    """The gateway was asked for a method or tool it does not have."""
class ProposalUnknown(RoomError, http=404):
    """The message correlates nothing that is a proposal of this room."""
class ProposalClosed(RoomError):
    """The proposal was fulfilled, rejected or withdrawn, or has expired; `state` says which."""
class ProposalOwn(RoomError, http=403, close=CloseCode.NOT_ALLOWED):
    """The proposer can withdraw the proposal, and neither fulfil nor reject it."""
class ProposalNotOwn(RoomError, http=403, close=CloseCode.NOT_ALLOWED):
    """Only the proposer can withdraw a proposal."""
class ProposalAltered(RoomError):
    """The request differs from the proposal it fulfils in method, params or recipient."""
class RejectedAlready(RoomError):
    """The participant has already rejected the proposal."""
class GrantUnknown(RoomError, http=404):
    """There is no such grant in the room."""
class TooManyOpen(RoomError, http=429):
    """Too many requests, proposals or grants are open."""
class AdmissionRefused(
    RoomError, abstract=True, jsonrpc=NOT_ALLOWED, http=403, close=CloseCode.NOT_ALLOWED
):
    """Someone cannot enter the room."""
class NameRefused(AdmissionRefused, jsonrpc=INVALID_PARAMS):
    """The name is not valid, or could be mistaken for the gateway or another participant."""
class RoomFull(AdmissionRefused, http=429):
    """The room is full."""
class TooManyConnections(AdmissionRefused, http=429):
    """The participant has too many connections to the room."""

class RoomDoorError(
    FolkmootError, abstract=True, jsonrpc=INVALID_PARAMS, http=404, close=CloseCode.NOT_ALLOWED
):
    """A room cannot be reached, created or changed as requested."""
class RoomNotFound(RoomDoorError, close=CloseCode.NO_SUCH_ROOM):
    """The room does not exist, or the caller may not know of it."""
class RoomForbidden(RoomDoorError, jsonrpc=NOT_ALLOWED, http=403):
    """The caller may not enter the room, or may not do this in it."""
class RoomNameInvalid(RoomDoorError, http=400, close=CloseCode.BAD_REQUEST):
    """The name is not one that a room can have."""
class RoomNameTaken(RoomDoorError, http=409):
    """Another room has this name."""
class TooManyRooms(RoomDoorError, jsonrpc=NOT_ALLOWED, http=429):
    """The account already owns as many rooms as allowed."""
class InvitationInvalid(RoomDoorError, http=401, close=CloseCode.NOT_AUTHENTICATED):
    """The invitation was used before, has expired, or was never made for this room."""
class RoomUnavailable(RoomDoorError, jsonrpc=INTERNAL_ERROR, http=503, close=CloseCode.INTERNAL):
    """What was said could not be stored; the room starts anew from what is stored."""
class RoomUnreachable(RoomUnavailable, close=CloseCode.RESTARTING):
    """The node of the room does not answer. Try again; what you asked for may have been done."""
class RoomTakenOver(RoomDoorError, jsonrpc=INTERNAL_ERROR, http=503, close=CloseCode.RESTARTING):
    """Another process of the hub owns the room now. Try again."""

class SettingsError(FolkmootError, code="settings_invalid"):
    """The configuration cannot be used; the message names file, line and setting."""

class StoreError(FolkmootError, abstract=True, http=503):
    """The database cannot do what it was asked."""
class DatabaseVersion(StoreError):
    """The database was written by another version of Folkmoot, so this one does not open it."""
class DatabaseCorrupt(StoreError):
    """The file is not a database, or its integrity check failed."""
class DatabaseDamaged(StoreError):
    """The database is damaged: nothing is written until it is restored and the hub restarted."""
class DatabaseLocked(StoreError):
    """Another program holds the database for longer than we wait."""
class DatabaseUnwritable(StoreError):
    """The database cannot be opened or written with the rights this program has."""
class DatabaseUnreachable(StoreError):
    """The database server cannot be reached, or the connection to it was lost."""
class DatabaseTooOld(StoreError):
    """The database server's version or encoding is not one that this program works with."""
class DatabaseInUse(StoreError):
    """Another hub uses the database."""
class DatabaseFailedOver(StoreError):
    """Another server took over, which may lack what the last one acknowledged: restart the hub."""
class MigrationFailed(StoreError):
    """A migration failed and was undone as a whole."""
class BackupFailed(StoreError):
    """The backup could not be written; nothing was left behind."""
class RestoreFailed(StoreError):
    """The backup cannot be restored; the database that was in use is unchanged."""
class TransferFailed(StoreError):
    """The database could not be copied to a server; nothing was left there."""
class DiskFull(StoreError, http=507):
    """The disk is full."""
class DiskFailed(StoreError):
    """The disk failed while the database was read or written."""
class ConstraintViolated(StoreError, http=409):
    """A statement broke a rule of the schema, such as uniqueness."""
class StatementFailed(StoreError, http=500):
    """A statement could not be run; the fault is in the program."""
class TextUnstorable(StoreError, http=400):
    """A text contains the character NUL, which the database cannot store."""
class UnitSuspended(StoreError, http=500):
    """A unit awaited something other than its transaction; the fault is in the program."""
class SealBroken(StoreError, http=500):
    """Something sealed cannot be opened: it was changed, or was sealed for another place."""
class StoreOverloaded(StoreError):
    """More writes are waiting than `store.queue` allows; try again in a moment."""
class LeaseOver(StoreError):
    """The node could not renew its lease at the database in time."""
class StoreClosed(StoreError, close=CloseCode.RESTARTING):
    """The store is closing or closed."""

class BusError(FolkmootError, abstract=True, http=503):
    """An event cannot be carried."""
class SubjectInvalid(BusError, http=500):
    """A subject or pattern is not made of tokens joined by dots."""
class EventUnencodable(BusError, http=500):
    """An event cannot be written as JSON."""
class EventTooLarge(BusError):
    """An event has more bytes than the bus carries."""
class BusUnreachable(BusError):
    """No NATS server can be used."""
class BusClosed(BusError, close=CloseCode.RESTARTING):
    """The bus is closing or closed."""

class DataFolderError(FolkmootError, abstract=True):
    """The data folder cannot be used."""
class DataFolderUnwritable(DataFolderError):
    """The data folder cannot be made or written."""
class DataFolderInUse(DataFolderError):
    """Another hub is running on this data folder."""
class KeyUnusable(DataFolderError):
    """The master key is missing beside an existing database, malformed, or readable by others."""
class KeyMismatch(DataFolderError):
    """The master key is not the one that opens this database."""

class ServeError(FolkmootError, abstract=True):
    """The hub cannot listen."""
class PortTaken(ServeError):
    """Another program listens on the port."""
class AddressUnusable(ServeError):
    """The host is not an address of this machine, or the port is not allowed."""

class ControlError(FolkmootError, abstract=True):
    """An operator's command cannot be carried out."""
class HubNotRunning(ControlError):
    """No hub is running on the data folder."""
class CommandInvalid(ControlError, http=400):
    """An argument is not what the operator's command takes."""
class CommandFailed(ControlError):
    """The running hub could not carry the command out; the message says why."""
class ExportFailed(ControlError):
    """The export could not be written; nothing was left behind."""

class InternalError(FolkmootError):
    """The hub failed; its log has the details under the id in the answer."""

class ClientError(FolkmootError, abstract=True):
    """The command line, or a program in a room, cannot do what it was asked of a hub."""
class HubUnreachable(ClientError):
    """No hub answers at the address, or the connection broke."""
class AnswerInvalid(ClientError):
    """What answers at the address does not answer as a hub does."""
class ToolRefused(ClientError):
    """The hub understood the command and refused it; the message says why."""
class NotSignedIn(ClientError):
    """The credentials file has no account that fits, or the hub does not accept its token."""
class CredentialsUnusable(ClientError):
    """The credentials file cannot be read or written, or others can read it."""
class ClientFileUnusable(ClientError):
    """The settings file of an MCP client cannot be extended without the risk of harming it."""
class RequestFailed(ClientError):
    """A participant or the gateway answered with an error, or not in time; `error` tells it."""

    @property
    def error(self) -> dict[str, Any]:
        """The JSON-RPC error, as it was answered."""
        error: dict[str, Any] = self.data.get("error", {})
        return error

    @property
    def reason(self) -> str | None:
        """The hub's code for it, such as `target_left`; None where another program failed."""
        data = self.error.get("data")
        code = data.get("code") if isinstance(data, dict) else None
        return code if isinstance(code, str) else None

class ToolFailed(ClientError):
    """A tool of a participant could not do what it was asked; the message is its own."""
class AnswerLost(ClientError):
    """The connection was lost for longer than the history reaches; what came of it is unknown."""
class MessageRefused(ClientError):
    """The hub refused a message with a code that this program does not know."""
class Replaced(ClientError):
    """The same connection id came back elsewhere, and the hub goes on with that connection."""
class RoomLeft(ClientError):
    """The program is not in the room: not yet, or no longer."""

class CarryError(FolkmootError, abstract=True, jsonrpc=SERVER_ERROR, http=502):
    """A message cannot be carried to the other side."""

    unsent = False
    """Whether it is certain that the other side has nothing of it."""

class TransportClosed(CarryError):
    """The other side of a transport is gone for good."""
class ServerUnreachable(CarryError):
    """The server cannot be started or reached, or broke the connection."""
class ServerAnswerInvalid(CarryError):
    """The server answered with something that is not a message."""
class ServerTimeout(CarryError, http=504):
    """The server did not answer in time."""
class ServerRefused(CarryError):
    """The server answered a request with an error of its own."""
class Misrouted(CarryError, http=500):
    """A message was given to a side that its direction does not lead to."""
class TooManyInFlight(CarryError, http=503):
    """More requests are open at once than are carried."""
class RequestCancelled(CarryError):
    """The client cancelled the request, and the server did not answer it."""
class ConsentNeeded(CarryError, http=403):
    """The server wants its own sign-in of the person, who has not consented, or not to so much."""

    unsent = True

    def __init__(self, namespace: str, scope: str = "", url: str = "") -> None:
        where = f"Open {url} in a browser, then try again" if url else "It does not let you in yet"
        super().__init__(
            f"Sign in to the server {namespace} first. {where}.",
            namespace=namespace,
            **({"url": url} if url else {}),
        )
        self.scope = scope

class EraNotBridged(CarryError, http=400):
    """Client and server speak different eras of MCP, and this cannot be said in both."""
class SignInRefused(CarryError, http=403):
    """Nobody can be signed in at the server like this; `error` is OAuth's code for the reason."""

    def __init__(self, message: str, error: str = "") -> None:
        super().__init__(message, **({"error": error} if error else {}))
        self.error = error

class TapeError(FolkmootError, abstract=True):
    """A tape cannot be written or used."""
class TapeUnwritable(TapeError, http=503):
    """The tape cannot be written, so no more messages are passed on."""
class TapeUnreadable(TapeError, http=422):
    """The file is not a tape, is of a newer format, or is broken before its last line."""
class TapeNotFound(TapeError, http=404):
    """There is no tape of this name."""
class TapeExhausted(TapeError, code="not_on_tape", jsonrpc=SERVER_ERROR, http=404):
    """The tape holds no answer to this request."""
class PathSyntax(TapeError):
    """Where to look in a message is not written as a path, such as `$.result.content[0].text`."""

class RulesInvalid(FolkmootError):
    """The file of rules cannot be used; the message names the rule and what is wrong with it."""

class BridgeError(FolkmootError, abstract=True, jsonrpc=SERVER_ERROR):
    """The bridge cannot keep a promise of end-to-end encryption, so it does not act."""
class DeviceKeyUnusable(BridgeError):
    """The device's key cannot be read, written, exported or imported."""
class PeerKeyChanged(BridgeError):
    """A correspondent's key is not the one that was pinned, or is gone."""
class PeerKeyInvalid(BridgeError):
    """What the hub names as a correspondent's key cannot be one, or is the device's own."""
class PeerUnknown(BridgeError):
    """The bridge cannot tell whom a message is for, so it cannot seal it."""
class BridgeStateUnusable(BridgeError):
    """What the bridge remembers of correspondents' keys cannot be read or written."""

class InvalidName(FolkmootError, ValueError, jsonrpc=INVALID_PARAMS, http=400):
    """A namespace, a tool name or a resource URI breaks a rule of the conventions.

    `rule` is the rule's name in the linter, `position` where in the name it is broken, and
    `nearest` a valid name close to it, where there is one.
    """

    def __init__(
        self,
        message: str,
        *,
        name: str,
        rule: str,
        position: int | None = None,
        nearest: str | None = None,
        **data: Any,
    ) -> None:
        told = {"name": name, "rule": rule, "position": position, "nearest": nearest, **data}
        super().__init__(
            message, **{key: value for key, value in told.items() if value is not None}
        )
        self.name = name
        self.rule = rule
        self.position = position
        self.nearest = nearest

class ProjectUnusable(FolkmootError, http=400):
    """A project's files cannot be read, or cannot be changed as was asked."""

class GatewayError(FolkmootError, abstract=True, jsonrpc=SERVER_ERROR, http=502):
    """A server behind the hub cannot be used for what was asked."""
class BackendUnavailable(GatewayError, http=503):
    """The backend is down; `retry_after` says in how many seconds it will be tried again."""
class BackendFailed(GatewayError):
    """The backend broke the connection or gave no valid answer; it may have done what was asked."""
class BackendTimeout(GatewayError, http=504):
    """The backend did not answer in time."""
class BackendBusy(GatewayError, http=503):
    """The backend already has as many open requests as allowed."""
class BackendUnknown(GatewayError, http=404):
    """No backend has this namespace."""
class ToolQuarantined(GatewayError, http=409):
    """The tool or prompt changed, or was added, and an operator has not accepted that yet."""
class InputStateInvalid(GatewayError, jsonrpc=INVALID_PARAMS, http=400):
    """The `requestState` of a repeated call is not one that this caller was given for it."""
class ResourceUnknown(GatewayError, jsonrpc=-32002, http=404):
    """No resource is known by this URI, or none that the caller may see."""
class PromptUnknown(GatewayError, jsonrpc=INVALID_PARAMS, http=404):
    """No prompt has this name, or none that the caller may see."""
class TaskUnknown(GatewayError, jsonrpc=INVALID_PARAMS, http=404):
    """No task has this id, or none of the caller's; or it has ended and is forgotten."""

    def __init__(self) -> None:
        super().__init__("Task not found.")

class TaskUnsupported(GatewayError, jsonrpc=METHOD_NOT_FOUND, http=404):
    """The tool cannot be run as a task, or only as one, or not for this client."""
class TooManyTasks(GatewayError, http=429):
    """The account has as many unfinished tasks as allowed."""
class CapabilityMissing(GatewayError, jsonrpc=CAPABILITY_MISSING, http=400):
    """The client has not declared a capability that the request needs."""

class SettingsUnwritable(FolkmootError):
    """The settings file cannot be edited without the risk of harming it, or not at all."""

class RequestError(
    FolkmootError, abstract=True, jsonrpc=INVALID_REQUEST, http=400, close=CloseCode.BAD_REQUEST
):
    """The HTTP request cannot be served."""
class NotFound(RequestError, http=404):
    """Nothing is served at this path."""
class MethodNotAllowed(RequestError, http=405):
    """The path does not take this method; `Allow` names those it takes."""
class BodyTooLarge(RequestError, http=413, close=CloseCode.TOO_BIG):
    """The request's body has more bytes, more JSON values, or more tiny chunks than the limit
    allows.
    """
class HeadTooLarge(RequestError, http=431):
    """The request's head has more bytes, or more headers, than the limit allows."""
class HubFull(RequestError, http=503, close=CloseCode.RESTARTING):
    """The hub is serving as much as it can; `retry_after` says when to try again."""
class ConnectionsExceeded(RequestError, http=429):
    """One account, or one address without an account, has too many connections."""
class BodyTimeout(RequestError, http=408):
    """The rest of the request's body did not arrive in time."""
class MediaTypeUnsupported(RequestError, http=415):
    """The request's body is not of a type that the address reads."""
class HostNotAllowed(RequestError, http=421, close=CloseCode.NOT_ALLOWED):
    """The request is addressed to a host name this hub does not answer to."""
class OriginNotAllowed(RequestError, http=403, close=CloseCode.NOT_ALLOWED):
    """A web page of another origin sent the request."""
class UpgradeRequired(RequestError, http=426):
    """The address is for WebSockets, of the version that the answer names."""
class HandshakeInvalid(RequestError):
    """The request asks for a WebSocket in a way that cannot be answered."""
class HubStopping(RequestError, http=503, close=CloseCode.RESTARTING):
    """The hub is stopping and could not finish the request in time."""
class NodeDraining(RequestError, http=503, close=CloseCode.RESTARTING):
    """The node is about to be stopped, and other nodes have its rooms."""
class QueryInvalid(RequestError):
    """A query parameter has a value the address does not take."""
class TokensDiffer(RequestError):
    """The request carries two different tokens, one in its URL and one in its header."""
class OAuthError(RequestError, code="oauth_error"):
    """An app's request to sign someone in is invalid; `error` is OAuth's code for the reason."""

    def __init__(self, error: str, description: str, status: int = 400) -> None:
        super().__init__(description, error=error)
        self.error = error
        self.status = status

    def body(self) -> dict[str, str]:
        """The JSON body of an answer by OAuth."""
        return {"error": self.error, "error_description": self.message}


class GrantInvalid(OAuthError):
    """The code or refresh token of an app is not valid, or is not this app's."""

    def __init__(self) -> None:
        super().__init__(
            "invalid_grant",
            "The code or refresh token is wrong, was used, has expired or was revoked. Sign in "
            "again.",
        )


class NotAcceptable(RequestError, http=406):
    """The client takes none of the forms an answer can have."""
class VersionUnsupported(RequestError, jsonrpc=-32022):
    """The request names a version of MCP not spoken here; `supported` names those that are."""
class ParamsInvalid(RequestError, jsonrpc=INVALID_PARAMS):
    """The params of a request are not what its method takes; the message names the member."""
class VersionMissing(RequestError, jsonrpc=INVALID_PARAMS):
    """A request of the stateless era does not say in its `_meta` which version it speaks."""
class HeaderMismatch(RequestError, jsonrpc=-32020):
    """A header that repeats part of the message is missing, occurs twice, or does not match."""
class SessionRequired(RequestError):
    """The request names no session, and is not one that opens a session."""
class EventUnknown(RequestError):
    """The stream to resume is no longer kept, or never existed."""
class SessionNotFound(RequestError, http=404):
    """The session has ended, never existed, or was opened with another token."""
class StreamExists(RequestError, http=409):
    """The session has an event stream already."""
class TooManySessions(RequestError, http=429):
    """Too many sessions without an account are open from one address."""

class ToolError(
    FolkmootError, abstract=True, jsonrpc=INVALID_PARAMS, http=400, close=CloseCode.BAD_REQUEST
):
    """A tool cannot do what it was asked; a leaf's `sentence` is what it says unless told."""

    def __init__(self, message: str = "", **data: Any) -> None:
        super().__init__(message or self.sentence, **data)

class AuthenticationRequired(
    ToolError, http=401, close=CloseCode.NOT_AUTHENTICATED, says="Authentication required."
):
    """The request needs an account and carries no token."""
class TokenRefused(ToolError, abstract=True, http=401, close=CloseCode.NOT_AUTHENTICATED):
    """The token opens no account."""
class TokenInvalid(
    TokenRefused,
    says="Authentication required. The token is not valid: it is wrong, was replaced, or its "
    "account was deleted. Use the current token, or get a new one with msg/recover.",
):
    """The token is wrong, was replaced by a recovery, or its account was deleted."""
class AccountSuspended(
    TokenRefused,
    says="Authentication required. This account is suspended, so its token does not work. Ask the "
    "operator of this hub.",
):
    """The operator has suspended the account, so its token and recovery code do not work."""
class ConfirmationInvalid(ToolError, http=403):
    """A token must be given once more for this, and it is missing or not one that may."""
class AlreadySignedIn(ToolError, http=409):
    """An account was registered or recovered in this session, so no other can be registered in
    it.
    """
class UnknownTool(ToolError, http=404):
    """No tool has this name, in either spelling."""
class ArgumentInvalid(ToolError):
    """An argument has a value the tool does not take; the message names it."""

    def __init__(self, message: str, *, field: str, **data: Any) -> None:
        super().__init__(message, field=field, **data)

class RateLimited(ToolError, http=429, close=CloseCode.OVER_RATE):
    """It was done too often; the message and `retry_after` say when to try again."""
class QuotaExceeded(ToolError, jsonrpc=NOT_ALLOWED, http=507):
    """It would exceed a quota of the account or the hub; see `quota`, `limit` and `used`."""
class RegistrationClosed(ToolError, http=403, says="Registration is closed on this server."):
    """The hub accepts no new accounts."""
class InviteRequired(
    ToolError, http=403, says="An invite code is required to register on this server."
):
    """The hub accepts new accounts only by invitation."""
class InviteUnknown(ToolError, says="Invalid invite code."):
    """No invite has this code."""
class InviteNotOpen(ToolError, http=404, says="There is no such open invitation."):
    """The invitation was used, has expired or was withdrawn, or is someone else's."""
class AskUnknown(ToolError, http=404, says="There is no such ask."):
    """No program has asked this, or the ask is between other people."""
class AskNotYours(ToolError, http=403, says="Another one is to decide this."):
    """Whoever is asked decides, and whoever asked can withdraw."""
class AskClosed(ToolError, http=409):
    """The ask was approved, rejected or withdrawn, or its time is over; `state` says which."""
class AskOutdated(ToolError, http=409):
    """What was asked is not what would be done any more: the tool, the rules, or who asked and what
    they can do has changed. Nothing was done.
    """
class TooManyAsks(ToolError, http=429):
    """As many asks of the account, or to it, are open as are allowed."""
class PersonNeeded(
    ToolError, http=403,
    says="Only you yourself can decide this: open it in your browser, and use your passkey.",
):
    """One's own program asks, or a rule wants a person, who has to show that they are there."""
class ReceiptInvalid(ToolError, http=403):
    """The receipt of a decision proves nothing about the call that is to be made."""
class InviteClaimed(ToolError, http=409, says="This invite has already been claimed."):
    """Someone has already registered with this invite."""
class HandleInvalid(
    ToolError,
    says="Invalid handle. Must be 3-20 characters, lowercase alphanumeric and underscores, "
    "starting with a letter.",
):
    """The handle is not 3 to 20 letters, digits and underscores that begin with a letter."""
class HandleTaken(ToolError, http=409, says="Handle already taken."):
    """The handle is taken, redirects to someone, or is reserved."""
class HandleNotFound(ToolError, http=404, says="Handle not found."):
    """The account to recover does not exist."""
class TooManyHandleChanges(
    ToolError, http=429,
    says="Too many handle changes. Wait until an old handle no longer redirects.",
):
    """Too many old handles still redirect to the account to change it again."""
class RecoveryCodeInvalid(ToolError, http=403, says="Invalid recovery code."):
    """The recovery code is not the account's."""
class OneTimeCodeInvalid(
    ToolError, http=403,
    says="This link was used already or is too old. Make a new one with 'folkmoot open'.",
):
    """The link was used already, is too old, or never was one."""
class SetUpInvalid(
    ToolError, http=403,
    says="This link does not work any more. While nobody has an account, the hub prints a new one "
    "when it starts; otherwise sign in.",
):
    """The link to set up the hub is too old or wrong, or the hub has an account already."""
class DeviceCodeInvalid(
    ToolError, http=403,
    says="There is no such code, or it is too old. Look at the device again, or start again there.",
):
    """No device waits with this code: it is wrong, was decided on, or is too old."""
class PasskeyInvalid(
    ToolError, http=403, says="This passkey did not work here. Try again, or sign in another way.",
):
    """The answer of a passkey is wrong, too late or was used, or nobody here has that passkey."""
class PasskeyUnusable(ToolError):
    """A browser has no passkeys at the address that the hub was reached at."""
class CompanySignInRefused(ToolError, http=403):
    """Somebody who comes from their company's provider is not signed in."""
class PasskeyNotFound(ToolError, http=404, says="You have no passkey with this id."):
    """The caller has no passkey with this id."""
class UserNotFound(ToolError, http=404, says="User not found."):
    """No user has this handle, or none whom the caller may see."""
class ContactNotFound(ToolError, http=404, says="Contact not found."):
    """The user is not among the caller's contacts."""
class CredentialNotFound(ToolError, http=404, says="You have no token with this id."):
    """The caller has no token with this id."""
class CannotSend(ToolError, http=403, says="Cannot send message to this user."):
    """The recipient blocked the sender, or takes mail from contacts only."""
class CannotAddSelf(ToolError, says="Cannot add yourself as a contact."):
    """You cannot add yourself as a contact."""
class CannotBlockSelf(ToolError, says="Cannot block yourself."):
    """You cannot block yourself."""
class NothingToUpdate(ToolError, says="No fields to update."):
    """A change of the profile names no field."""
class PrivacyInvalid(ToolError, says="Invalid privacy level."):
    """The privacy level is not one of the three."""
class ContentMissing(ToolError, says="Either body or encrypted_payload is required."):
    """A message has neither a body nor an encrypted payload."""
class ContentTwice(ToolError, says="Provide either body or encrypted_payload, not both."):
    """A message has both a body and an encrypted payload."""
class CannotSendToSelf(ToolError, says="Cannot send a message to yourself."):
    """You cannot send a message to yourself."""
class ThreadNotFound(ToolError, http=404, says="Thread not found."):
    """No thread has this id, or the caller deleted it."""
class MessageNotFound(ToolError, http=404, says="Message not found."):
    """No message has this id, or the caller deleted it."""
class AccessDenied(ToolError, http=403, says="Access denied."):
    """The thread belongs to others."""
