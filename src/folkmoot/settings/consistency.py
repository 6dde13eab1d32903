"""Settings that are right alone and wrong together, or right and yet of no use to someone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from folkmoot.settings.model import Settings

PATH: Final = (
    "public_url has a path: MCP and REST work below it, but the inbox and the console do not. Give "
    "the hub a host name of its own to use them"
)


def contradictions(settings: Settings) -> Iterator[tuple[str, str]]:
    """Each with the path of a setting that was set, which it is told of, and a sentence."""
    tls, limits = settings.tls, settings.limits
    if tls.certificate and not tls.key:
        yield "tls.certificate", "tls.certificate needs tls.key beside it"
    if tls.key and not tls.certificate:
        yield "tls.key", "tls.key needs tls.certificate beside it"
    if limits.unsent_bytes < limits.message_bytes:
        # Otherwise whoever is sent the largest message could be closed for it as too slow.
        raised = limits.message_bytes > type(limits)().message_bytes
        path = "limits.message_bytes" if raised else "limits.unsent_bytes"
        yield path, "limits.unsent_bytes must be at least limits.message_bytes"


def advice(settings: Settings) -> Iterator[tuple[str, str]]:
    """What someone who chose a setting should know, with its path and a sentence."""
    if urlsplit(settings.public_url).path.strip("/"):
        yield "public_url", PATH
