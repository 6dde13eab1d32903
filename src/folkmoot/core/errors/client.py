"""What keeps the command line from acting as a client."""

from __future__ import annotations

from folkmoot.core.errors.base import FolkmootError


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
