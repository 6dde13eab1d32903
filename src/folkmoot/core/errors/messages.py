"""Errors of a message: of its bytes, its kind or its session."""

from __future__ import annotations

from folkmoot.core.closecodes import CloseCode
from folkmoot.core.errors.base import INVALID_REQUEST, PARSE_ERROR, FolkmootError


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
    """Objects and arrays are nested deeper than the limit allows."""


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
    """`method` must be a non-empty string."""


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
    """The protocol is known, but has no such operation."""


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
    """A proposal must not correlate an earlier message."""


class ReasonRequired(KindError, code="reason_required"):
    """A rejection must say why, in `payload.reason`."""


class SessionError(FolkmootError, jsonrpc=INVALID_REQUEST, http=409):
    """A session cannot change its state as requested."""


class SessionTransition(SessionError, code="session_transition"):
    """The session's state does not lead to the one asked for."""
