"""The page of all error codes and close codes, from `folkmoot.core.errors`."""

from __future__ import annotations

from docs.pages.markdown import document, table
from folkmoot.core import errors as e
from folkmoot.core.closecodes import CLOSE_REASONS

INTRODUCTION = """\
Every error has a code that does not change. The same error is told in the form of the transport it
happened on: as a JSON-RPC error whose `data.code` is the code, as an HTTP answer with the status
and `{"error": {"code": …, "message": …}}`, or by closing a WebSocket with the close code, where an
error ends the connection. The message is for people and may change."""

CLOSE = """\
## Close codes

Why a WebSocket was closed by the hub:"""


HEAD = ["Code", "Meaning", "JSON-RPC", "HTTP", "Close"]


def page() -> str:
    """The whole page."""
    families: dict[type[e.FolkmootError], list[type[e.FolkmootError]]] = {}
    for error in e.ERRORS.values():
        families.setdefault(family(error), []).append(error)
    parts = []
    for root, members in families.items():
        parts += [f"## {root.__name__}", sentence(root), table(HEAD, map(row, members))]
    closes = ([str(code.value), reason] for code, reason in CLOSE_REASONS.items())
    return document("# Errors", INTRODUCTION, *parts, CLOSE, table(["Code", "Meaning"], closes))


def family(error: type[e.FolkmootError]) -> type[e.FolkmootError]:
    """The branch of the tree an error grows on: its ancestor just below the root."""
    line = error.__mro__
    return line[line.index(e.FolkmootError) - 1]


def row(error: type[e.FolkmootError]) -> list[str]:
    """One error in all its forms."""
    forms = [str(error.jsonrpc), str(error.http), str(error.close.value)]
    return [f"`{error.code}`", sentence(error), *forms]


def sentence(error: type[e.FolkmootError]) -> str:
    """What the class says of itself, on one line."""
    return " ".join((error.__doc__ or "").split())
