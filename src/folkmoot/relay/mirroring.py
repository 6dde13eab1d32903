"""Headers that repeat a message, put right where an interceptor has made the message another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from folkmoot.core.message import Request, Response
from folkmoot.core.transport import Headers
from folkmoot.mcp.client.mirror import (
    METHOD,
    NAME,
    PARAM,
    VERSION,
    Mirror,
    Path,
    as_text,
    as_value,
    stateless_version,
    value_at,
)
from folkmoot.mcp.server.heads import unwrapped

if TYPE_CHECKING:
    from folkmoot.core.message import ProtocolMessage

REPEATED: Final = frozenset({METHOD, NAME, VERSION})

_mirror: Final = Mirror()


def mirrored(
    headers: Headers, message: ProtocolMessage, before: ProtocolMessage | None = None
) -> Headers:
    """The headers of a request that says this now; only the stateless era has any to change.

    `before` is what it said when its client made the headers.
    """
    version = stateless_version(message)
    if version is None or isinstance(message, Response):
        return headers
    kept: Iterator[tuple[str, str]] = (pair for pair in headers if pair[0] not in REPEATED)
    if isinstance(message, Request) and isinstance(before, Request):
        kept = _with_params(kept, _arguments(before), _arguments(message))
    return Headers((*kept, *_mirror.headers(message, version).items()))


def _with_params(
    headers: Iterator[tuple[str, str]], before: Any, now: Any
) -> Iterator[tuple[str, str]]:
    """Headers in which repeated arguments are those of now.

    Which argument a header repeats is told by its value; where several have that value, by its
    name. One that cannot be told stays, and is for the server to judge.
    """
    known = list(_leaves(before))
    for name, value in headers:
        if not name.startswith(PARAM):
            yield name, value
            continue
        paths = [path for path, leaf in known if leaf == unwrapped(value)]
        if len(paths) > 1:
            paths = [path for path in paths if path[-1].lower() == name.removeprefix(PARAM)]
        if len(paths) != 1:
            yield name, value
        elif (text := as_text(value_at(now, paths[0]))) is not None:
            yield name, as_value(text)


def _leaves(arguments: Any) -> Iterator[tuple[Path, str]]:
    """Every argument that a header could repeat, as it would, and where it stands."""
    waiting: list[tuple[Path, Any]] = [((), arguments)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, dict):
            waiting += [((*path, name), each) for name, each in value.items()]
        elif path and (text := as_text(value)) is not None:
            yield path, text


def _arguments(request: Request) -> Any:
    return request.params.get("arguments") if isinstance(request.params, dict) else None
