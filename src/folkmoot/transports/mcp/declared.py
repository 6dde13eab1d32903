"""What a client declares of itself, cut down to what is used, before it is kept or passed on.

A client may declare anything under `capabilities` and `clientInfo`, and a session keeps it for as
long as it is open. Declarations of usual size pass as they are; of longer ones only the members
remain that the hub or a backend acts on.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from folkmoot.core.errors import BodyTooLarge, InvalidJson
from folkmoot.mcp.wire import APPS_EXTENSION, CAPABILITIES_KEY, CLIENT_KEY, INITIALIZE

MOST_BYTES: Final = 1_024
"""Of a declaration that is kept as it is; those of usual clients have a few hundred."""
FLAGS: Final = ("elicitation", "roots", "sampling", "tasks")
"""The capabilities that somebody may ask a client for."""
NAMES: Final = ("name", "title", "version")
MOST_OF_ONE: Final = 128
"""Bytes of one member of a long declaration."""
OPENING: Final = ("protocolVersion", "capabilities", "clientInfo")
EMPTY: Final = Raw(b"{}")


class _Call(Struct):
    method: Any = None
    params: Raw = Raw(b"null")


_call = msgspec.json.Decoder(_Call).decode
_whole = msgspec.json.Decoder(dict[str, Raw]).decode
_encode = msgspec.json.Encoder().encode


def reduce_declared(body: bytes) -> bytes:
    """A message whose declarations are short: the same, unless they were long."""
    if len(body) <= MOST_BYTES:
        return body
    try:
        call = _call(body)
        params = _whole(call.params)
        if call.method == INITIALIZE:
            return _with_params(body, _opening(params))
        meta = _whole(params.get("_meta", EMPTY))
    except msgspec.ValidationError:
        # Whoever reads it next refuses it: what is declared stands in objects.
        return body
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise InvalidJson("The message is not valid JSON.") from None
    if _size(meta, (CAPABILITIES_KEY, CLIENT_KEY)) <= MOST_BYTES:
        return body
    reduced = _reduced(meta, CAPABILITIES_KEY, CLIENT_KEY)
    return _with_params(body, {**params, "_meta": Raw(_encode(reduced))})


def _opening(params: dict[str, Raw]) -> dict[str, Raw]:
    """The params of `initialize`; a session keeps nothing else of them."""
    known: dict[str, Raw] = {name: params[name] for name in OPENING if name in params}
    if _size(known, OPENING) > MOST_BYTES:
        known = _reduced(known, "capabilities", "clientInfo")
    if _size(known, OPENING) > MOST_BYTES:
        raise BodyTooLarge(
            f"What a client declares of itself may have at most {MOST_BYTES:,} bytes.",
            limit=MOST_BYTES,
        )
    return known


def _size(members: dict[str, Raw], names: tuple[str, ...]) -> int:
    return sum(len(bytes(members[name])) for name in names if name in members)


def _reduced(members: dict[str, Raw], capabilities: str, client: str) -> dict[str, Raw]:
    changed = dict(members)
    if capabilities in members:
        declared = _whole(members[capabilities])
        kept: dict[str, Raw] = {
            name: _short(declared[name], EMPTY) for name in FLAGS if name in declared
        }
        apps = _whole(declared.get("extensions", EMPTY)).get(APPS_EXTENSION)
        if apps is not None:
            kept["extensions"] = Raw(_encode({APPS_EXTENSION: _short(apps, EMPTY)}))
        changed[capabilities] = Raw(_encode(kept))
    if client in members:
        info = _whole(members[client])
        named = {name: _short(info[name], Raw(b'""')) for name in NAMES if name in info}
        changed[client] = Raw(_encode(named))
    return changed


def _short(raw: Raw, otherwise: Raw) -> Raw:
    return raw if len(bytes(raw)) <= MOST_OF_ONE else otherwise


def _with_params(body: bytes, params: dict[str, Raw]) -> bytes:
    return _encode({**_whole(body), "params": Raw(_encode(params))})
