"""One tree of errors; every leaf knows its code and its JSON-RPC, HTTP and WebSocket form.

Here is the whole tree; the files below are its branches.

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
│   ├── CapabilityDenied, below it ScopeMissing, ProposalRequired
│   └── BlockedByInterceptor, RewriteRefused, MessageDropped
├── RoomError               the message does not fit what is so in the room
│   ├── SenderForged, IdUsed, MessageUnknown, RecipientUnknown, RecipientInvalid
│   ├── RequestIdOpen, RequestNotOpen, NotAsked, NotRequester, ResponseMismatch
│   ├── NotServing, RequestBegun
│   ├── TargetLeft, RequestTimedOut, ParticipantPaused, MethodUnknown
│   ├── ProposalUnknown, ProposalClosed, ProposalOwn, ProposalNotOwn, ProposalAltered
│   ├── RejectedAlready, GrantUnknown, TooManyOpen
│   └── AdmissionRefused    someone cannot come in
│       └── NameRefused, RoomFull, TooManyConnections
├── RoomDoorError           a room cannot be reached, made or changed as was asked
│   ├── RoomNotFound, RoomForbidden, RoomNameInvalid, RoomNameTaken, TooManyRooms
│   └── InvitationInvalid, RoomUnavailable, RoomUnreachable, RoomTakenOver
├── SettingsError           the configuration cannot be used
├── SettingsUnwritable      the settings file cannot be edited
├── StoreError              the database cannot do what it was asked
│   ├── DatabaseVersion, DatabaseCorrupt, DatabaseDamaged, DatabaseLocked, DatabaseUnwritable
│   ├── DatabaseUnreachable, DatabaseTooOld, DatabaseInUse, DatabaseFailedOver
│   ├── TextUnstorable
│   ├── MigrationFailed, BackupFailed, RestoreFailed, TransferFailed
│   ├── DiskFull, DiskFailed
│   ├── ConstraintViolated, StatementFailed, UnitSuspended, SealBroken
│   └── StoreOverloaded, LeaseOver, StoreClosed
├── BusError                an event cannot be carried
│   └── SubjectInvalid, EventUnencodable, EventTooLarge, BusUnreachable, BusClosed
├── DataFolderError         the data folder cannot be used
│   └── DataFolderUnwritable, DataFolderInUse, KeyUnusable, KeyMismatch
├── ServeError              the hub cannot listen
│   └── PortTaken, AddressUnusable
├── ControlError            an operator's command cannot be carried out
│   └── HubNotRunning, CommandInvalid, CommandFailed, ExportFailed
├── ClientError             a client of a hub cannot do what it was asked
│   ├── HubUnreachable, AnswerInvalid, ToolRefused
│   ├── NotSignedIn, CredentialsUnusable, ClientFileUnusable
│   └── RequestFailed, ToolFailed, AnswerLost, MessageRefused, Replaced, RoomLeft
├── CarryError              a message cannot be carried to the other side
│   ├── TransportClosed, ServerUnreachable, ServerAnswerInvalid, ServerTimeout, ServerRefused
│   └── Misrouted, TooManyInFlight, RequestCancelled, EraNotBridged
├── InvalidName             a name breaks the conventions
├── ProjectUnusable         the files of a project cannot be used or changed
├── GatewayError            a server behind the hub cannot be used
│   ├── BackendUnavailable, BackendFailed, BackendTimeout, BackendBusy, BackendUnknown
│   ├── ToolQuarantined, InputStateInvalid, ResourceUnknown, PromptUnknown
│   └── TaskUnknown, TaskUnsupported, TooManyTasks, CapabilityMissing
├── TapeError               a tape cannot be written or used
│   └── TapeUnwritable, TapeUnreadable, TapeNotFound, TapeExhausted, PathSyntax
├── RulesInvalid            the rules of interceptors cannot be used
├── BridgeError             end-to-end encryption cannot be kept up
│   ├── DeviceKeyUnusable, BridgeStateUnusable
│   └── PeerKeyChanged, PeerKeyInvalid, PeerUnknown
├── RequestError            the HTTP request cannot be served
│   ├── NotFound, MethodNotAllowed, BodyTooLarge, HeadTooLarge, BodyTimeout
│   ├── HostNotAllowed, OriginNotAllowed, HubStopping, NodeDraining, HubFull, ConnectionsExceeded
│   ├── UpgradeRequired, HandshakeInvalid, MediaTypeUnsupported
│   ├── NotAcceptable, VersionUnsupported, VersionMissing, HeaderMismatch, ParamsInvalid
│   ├── SessionRequired, SessionNotFound, TooManySessions, EventUnknown, StreamExists
│   └── QueryInvalid, TokensDiffer
├── ToolError               a tool cannot do what it was asked
│   ├── AuthenticationRequired, AlreadySignedIn, ConfirmationInvalid
│   ├── TokenRefused        TokenInvalid, AccountSuspended
│   ├── UnknownTool, ArgumentInvalid, RateLimited, QuotaExceeded
│   ├── RegistrationClosed, InviteRequired, InviteUnknown, InviteClaimed, InviteNotOpen
│   ├── HandleInvalid, HandleTaken, HandleNotFound, TooManyHandleChanges
│   ├── RecoveryCodeInvalid, OneTimeCodeInvalid
│   ├── UserNotFound, ContactNotFound, CannotSend, CannotAddSelf, CannotBlockSelf
│   ├── CredentialNotFound, NothingToUpdate, PrivacyInvalid
│   ├── ContentMissing, ContentTwice, CannotSendToSelf
│   └── ThreadNotFound, MessageNotFound, AccessDenied
└── InternalError           the hub failed; the log tells more under the error's id
"""

from __future__ import annotations

from folkmoot.core.errors.base import *
from folkmoot.core.errors.messages import *
from folkmoot.core.errors.rights import *
from folkmoot.core.errors.rooms import *
from folkmoot.core.errors.hub import *
from folkmoot.core.errors.client import *
from folkmoot.core.errors.proxy import *
from folkmoot.core.errors.gateway import *
from folkmoot.core.errors.requests import *
from folkmoot.core.errors.tools import *
