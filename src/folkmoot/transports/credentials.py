"""The token of a request: in its URL, as `?token=`, or in its header, as `Bearer`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from folkmoot.core.errors import TokensDiffer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.types import Scope

BEARER = "bearer "


def read_token(scope: Scope, in_url: Iterable[str] = ()) -> str:
    """The token of a request; empty when it has none, refused when it has several.

    `in_url` are the values of `token` in its query.
    """
    tokens = {token for token in in_url if token}
    for name, value in scope["headers"]:
        if name != b"authorization":
            continue
        text = value.decode("latin-1").strip()
        if text.lower().startswith(BEARER) and (token := text[len(BEARER) :].strip()):
            tokens.add(token)
    if len(tokens) > 1:
        raise TokensDiffer("The request carries two different tokens; send one.")
    return tokens.pop() if tokens else ""
