"""What keeps a message from being carried, recorded or replayed."""

from __future__ import annotations

from folkmoot.core.errors.base import FolkmootError
from folkmoot.core.errors.rights import PolicyError

SERVER_ERROR = -32000


class CarryError(FolkmootError, jsonrpc=SERVER_ERROR, http=502):
    """A message cannot be carried to the other side."""

    unsent = False
    """Whether it is certain that the other side has nothing of it."""


class TransportClosed(CarryError, code="transport_closed"):
    """The other side of a transport is gone for good."""


class ServerUnreachable(CarryError, code="server_unreachable"):
    """The server cannot be started or reached, or broke the connection."""


class ServerAnswerInvalid(CarryError, code="server_answer_invalid"):
    """The server answered with something that is not a message."""


class ServerTimeout(CarryError, code="server_timeout", http=504):
    """The server did not answer in time."""


class ServerRefused(CarryError, code="server_refused"):
    """The server answered a request with an error of its own."""


class Misrouted(CarryError, code="misrouted", http=500):
    """A message was given to a side that its direction does not lead to."""


class TooManyInFlight(CarryError, code="too_many_in_flight", http=503):
    """More requests are open at once than are carried."""


class RequestCancelled(CarryError, code="request_cancelled"):
    """The client cancelled the request, and the server did not answer it."""


class EraNotBridged(CarryError, code="era_not_bridged", http=400):
    """Client and server speak different eras of MCP, and this cannot be said in both."""


class MessageDropped(PolicyError, code="message_dropped"):
    """A held message was dropped, or nobody decided in time."""


class TapeError(FolkmootError):
    """A tape cannot be written or used."""


class TapeUnwritable(TapeError, code="tape_unwritable", http=503):
    """The tape cannot be written, so no more messages are passed on."""


class TapeUnreadable(TapeError, code="tape_unreadable", http=422):
    """The file is not a tape, is of a newer format, or is broken before its last line."""


class TapeNotFound(TapeError, code="tape_not_found", http=404):
    """There is no tape of this name."""


class TapeExhausted(TapeError, code="not_on_tape", jsonrpc=SERVER_ERROR, http=404):
    """The tape holds no answer to this request."""


class PathSyntax(TapeError, code="path_syntax"):
    """Where to look in a message is not written as a path, such as `$.result.content[0].text`."""


class RulesInvalid(FolkmootError, code="rules_invalid"):
    """The file of rules cannot be used; the message names the rule and what is wrong with it."""


class BridgeError(FolkmootError, jsonrpc=SERVER_ERROR):
    """The bridge cannot keep a promise of end-to-end encryption, so it does not act."""


class DeviceKeyUnusable(BridgeError, code="device_key_unusable"):
    """The device's key cannot be read, written, exported or imported."""


class PeerKeyChanged(BridgeError, code="peer_key_changed"):
    """A correspondent's key is not the one that was pinned, or is gone."""


class PeerKeyInvalid(BridgeError, code="peer_key_invalid"):
    """What the hub names as a correspondent's key cannot be one, or is the device's own."""


class PeerUnknown(BridgeError, code="peer_unknown"):
    """The bridge cannot tell whom a message is for, so it cannot seal it."""


class BridgeStateUnusable(BridgeError, code="bridge_state_unusable"):
    """What the bridge remembers of correspondents' keys cannot be read or written."""
