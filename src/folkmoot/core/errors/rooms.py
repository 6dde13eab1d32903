"""Errors of rooms: a message that does not fit the room's state, or a refused join."""

from __future__ import annotations

from folkmoot.core.closecodes import CloseCode
from folkmoot.core.errors.base import INVALID_PARAMS, INVALID_REQUEST, NOT_ALLOWED, FolkmootError

TARGET_LEFT = -32010
TIMED_OUT = -32011
"""JSON-RPC numbers of answers that the gateway gives in a participant's place."""


class RoomError(FolkmootError, jsonrpc=INVALID_REQUEST, http=409, close=CloseCode.BAD_REQUEST):
    """The message is well formed, but not valid in the room's present state."""


class SenderForged(RoomError, code="sender_forged", http=403, close=CloseCode.NOT_ALLOWED):
    """`from` names someone other than the participant who sent the message."""


class IdUsed(RoomError, code="id_used"):
    """An earlier message of the room has this id; `seq` is there when it was the same sender's."""


class RecipientUnknown(RoomError, code="recipient_unknown", http=404):
    """The recipient of a request is not in the room."""


class RecipientInvalid(RoomError, code="recipient_invalid", http=400):
    """The recipients are not those the message must have, or one is named twice."""


class MessageUnknown(RoomError, code="message_unknown", http=404):
    """The room's history has no message with the id that is named."""


class RequestIdOpen(RoomError, code="request_id_open"):
    """The requester has an open request to the same participant with the same `payload.id`."""


class RequestNotOpen(RoomError, code="request_not_open"):
    """The message correlates no open request: it was answered, cancelled or never made."""


class NotAsked(RoomError, code="not_asked", http=403, close=CloseCode.NOT_ALLOWED):
    """Only the participant a request was sent to may answer it or report its progress."""


class NotRequester(RoomError, code="not_requester", http=403, close=CloseCode.NOT_ALLOWED):
    """Only the participant who made a request, or sent a chat message, may cancel it."""


class NotServing(RoomError, code="not_serving"):
    """Only the connection that serves may begin a request, and this one does not."""


class RequestBegun(RoomError, code="request_begun"):
    """One of the participant's connections has begun this request already."""


class ResponseMismatch(RoomError, code="response_mismatch", http=400):
    """The message differs from its request in method, context, id or progress token."""


class TargetLeft(RoomError, code="target_left", jsonrpc=TARGET_LEFT):
    """The participant who was asked left the room before answering."""


class RequestTimedOut(RoomError, code="request_timed_out", jsonrpc=TIMED_OUT, http=504):
    """The participant who was asked did not answer in time."""


class ParticipantPaused(
    RoomError, code="participant_paused", jsonrpc=NOT_ALLOWED, http=403, close=CloseCode.NOT_ALLOWED
):
    """The sender is paused, and the message would begin something; `by` and `reason` tell more."""


class MethodUnknown(RoomError, code="method_unknown", jsonrpc=-32601, http=404):
    """The gateway was asked for a method or tool it does not have."""


class ProposalUnknown(RoomError, code="proposal_unknown", http=404):
    """The message correlates nothing that is a proposal of this room."""


class ProposalClosed(RoomError, code="proposal_closed"):
    """The proposal was fulfilled, rejected or withdrawn, or has expired; `state` says which."""


class ProposalOwn(RoomError, code="proposal_own", http=403, close=CloseCode.NOT_ALLOWED):
    """The proposer can withdraw the proposal, and neither fulfil nor reject it."""


class ProposalNotOwn(RoomError, code="proposal_not_own", http=403, close=CloseCode.NOT_ALLOWED):
    """Only the proposer can withdraw a proposal."""


class ProposalAltered(RoomError, code="proposal_altered"):
    """The request differs from the proposal it fulfils in method, params or recipient."""


class RejectedAlready(RoomError, code="rejected_already"):
    """The participant has already rejected the proposal."""


class GrantUnknown(RoomError, code="grant_unknown", http=404):
    """There is no such grant in the room."""


class TooManyOpen(RoomError, code="too_many_open", http=429):
    """Too many requests, proposals or grants are open."""


class AdmissionRefused(RoomError, jsonrpc=NOT_ALLOWED, http=403, close=CloseCode.NOT_ALLOWED):
    """Someone cannot enter the room."""


class NameRefused(AdmissionRefused, code="name_refused", jsonrpc=INVALID_PARAMS):
    """The name is not valid, or could be mistaken for the gateway or another participant."""


class RoomFull(AdmissionRefused, code="room_full", http=429):
    """The room is full."""


class TooManyConnections(AdmissionRefused, code="too_many_connections", http=429):
    """The participant has too many connections to the room."""


class RoomDoorError(FolkmootError, jsonrpc=INVALID_PARAMS, http=404, close=CloseCode.NOT_ALLOWED):
    """A room cannot be reached, created or changed as requested."""


class RoomNotFound(RoomDoorError, code="room_not_found", close=CloseCode.NO_SUCH_ROOM):
    """The room does not exist, or the caller may not know of it."""


class RoomForbidden(RoomDoorError, code="room_forbidden", jsonrpc=NOT_ALLOWED, http=403):
    """The caller may not enter the room, or may not do this in it."""


class RoomNameInvalid(
    RoomDoorError, code="room_name_invalid", http=400, close=CloseCode.BAD_REQUEST
):
    """The name is not one that a room can have."""


class RoomNameTaken(RoomDoorError, code="room_name_taken", http=409):
    """Another room has this name."""


class TooManyRooms(RoomDoorError, code="too_many_rooms", jsonrpc=NOT_ALLOWED, http=429):
    """The account already owns as many rooms as allowed."""


class InvitationInvalid(
    RoomDoorError, code="invitation_invalid", http=401, close=CloseCode.NOT_AUTHENTICATED
):
    """The invitation was used before, has expired, or was never made for this room."""


class RoomUnavailable(
    RoomDoorError, code="room_unavailable", jsonrpc=-32603, http=503, close=CloseCode.INTERNAL
):
    """What was said could not be stored; the room starts anew from what is stored."""


class RoomUnreachable(RoomUnavailable, code="room_unreachable", close=CloseCode.RESTARTING):
    """The node of the room does not answer. Try again; what you asked for may have been done."""


class RoomTakenOver(
    RoomDoorError, code="room_taken_over", jsonrpc=-32603, http=503, close=CloseCode.RESTARTING
):
    """Another process of the hub owns the room now. Try again."""
