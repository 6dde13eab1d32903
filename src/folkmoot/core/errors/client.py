"""What keeps the command line, or a program in a room, from acting as a client."""

from __future__ import annotations

from typing import Any

from folkmoot.core.errors.base import FolkmootError


class ClientError(FolkmootError):
    """The command line, or a program in a room, cannot do what it was asked of a hub."""


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


class RequestFailed(ClientError, code="request_failed"):
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


class ToolFailed(ClientError, code="tool_failed"):
    """A tool of a participant could not do what it was asked; the message is its own."""


class AnswerLost(ClientError, code="answer_lost"):
    """The connection was lost for longer than the history reaches; what came of it is unknown."""


class MessageRefused(ClientError, code="message_refused"):
    """The hub refused a message with a code that this program does not know."""


class Replaced(ClientError, code="replaced"):
    """The same connection id came back elsewhere, and the hub goes on with that connection."""


class RoomLeft(ClientError, code="room_left"):
    """The program is not in the room: not yet, or no longer."""
