"""`make fuzz`: a bounded run over every decoder of the core, against a slow and simple reader.

Each input is read by the strict decoder and by the standard library told to refuse what we refuse;
the two must agree on whether it is JSON and on what it says. What is JSON goes on through the
message, MCPx, kind and capability parsers, which may raise nothing but their own errors and must
give back what they were given. The seed is printed: the same seed makes the same run.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from contextlib import suppress
from typing import Any

from folkmoot.core import errors as e
from folkmoot.core import strict
from folkmoot.core.capability import Rights, capability
from folkmoot.core.kinds import parse
from folkmoot.core.mcpx import decode_mcpx
from folkmoot.core.message import (
    decode_message,
    encode_message,
    members,
    message_from,
)
from folkmoot.core.policy import Principal, decide
from folkmoot.core.strict import Limits, same
from tests.fuzz.mutate import mutate

CALL = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_file"}}'
COMPLETE = (
    b'{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{"uri":"a://b"}}}'
)
ROOM = b'{"protocol":"mcpx/v1","id":"m1","from":"alice","to":["files"],"kind":"%s","payload":%s}'
SEEDS = [
    CALL,
    b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":0.5}}',
    b'{"jsonrpc":"2.0","id":"a","result":{"content":[{"type":"text","text":"\\u00e9\\n"}]}}',
    b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no","data":[1,2.5,true]}}',
    ROOM % (b"mcp.request.tools/call:read_file", CALL),
    ROOM % (b"mcp.request.completion/complete", COMPLETE),
    ROOM % (b"chat.message", b'{"text":"hello","format":"markdown"}'),
    ROOM % (b"mcpx.reject.proposal", b'{"reason":"no"}'),
]
LIMITS = Limits(message_bytes=65536, nesting=32)
ALICE = Principal("account-1", "alice")
RIGHTS = Rights(
    ["chat.*", "mcp.request.tools/call:read_*", {"kind": "mcp.*", "payload": {"id": 1}}]
)


def reference(raw: bytes) -> Any:
    """What a slow reader makes of the bytes; whatever it refuses is a ValueError."""

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(found)) != len(found):
            raise ValueError("duplicate")
        return dict(found)

    def constant(name: str) -> Any:
        raise ValueError(name)

    def number(text: str) -> float:
        if float(text) in (float("inf"), float("-inf")):
            raise ValueError(text)
        return float(text)

    value = json.loads(
        raw.decode("utf-8"), object_pairs_hook=pairs, parse_constant=constant, parse_float=number
    )
    json.dumps(value, ensure_ascii=False).encode("utf-8")
    if depth(value) > LIMITS.nesting:
        raise ValueError("deep")
    return value


def depth(value: Any) -> int:
    """How deep objects and arrays lie in each other."""
    inside = value.values() if type(value) is dict else value if type(value) is list else None
    return 0 if inside is None else 1 + max(map(depth, inside), default=0)


def try_one(raw: bytes) -> bool:
    """Read one input with everything; answer whether it was JSON."""
    try:
        expected = reference(raw)
    except (ValueError, RecursionError):
        expected = ...
    try:
        value = strict.decode(raw, LIMITS)
    except e.MessageError:
        assert expected is ..., f"refused, but the reference reads it: {raw!r}"
        return False
    assert expected is not ..., f"read, but the reference refuses it: {raw!r}"
    assert same(value, expected), f"read differently: {raw!r}"
    try_message(raw)
    try_room(raw)
    for text in strings(value):
        try_text(text)
    return True


def try_message(raw: bytes) -> None:
    """A message survives being taken apart and put together."""
    try:
        message = decode_message(raw, LIMITS)
        decide(ALICE, RIGHTS, message)
    except (e.MessageError, e.KindError):
        return
    assert encode_message(message) == raw
    assert message_from(members(message)) == message


def try_room(raw: bytes) -> None:
    """A room's message is judged or refused, never anything else."""
    with suppress(e.MessageError, e.KindError):
        decide(ALICE, RIGHTS, decode_mcpx(raw, LIMITS, accept_old_spellings=len(raw) % 2 == 0))


def try_text(text: str) -> None:
    """A kind formats back; a pattern compiles and covers itself, or is refused."""
    with suppress(e.KindError):
        assert str(parse(text)) == text
    with suppress(e.CapabilityError):
        held = capability(text)
        assert held.covers(held)


def strings(value: Any) -> list[str]:
    """Every string in a value, names included."""
    if type(value) is str:
        return [value]
    inside = [*value, *value.values()] if type(value) is dict else value
    return [text for item in inside for text in strings(item)] if type(inside) is list else []


def fuzz(seconds: float, seed: int) -> tuple[int, int]:
    """Mutate for so long, keeping what is still JSON as new seeds; answer how many were tried."""
    chance = random.Random(seed)
    corpus = list(SEEDS)
    tried = read = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        raw = mutate(chance, chance.choice(corpus))
        tried += 1
        if try_one(raw):
            read += 1
            if len(corpus) < 2000:
                corpus.append(raw)
            else:
                corpus[chance.randrange(len(SEEDS), len(corpus))] = raw
    return tried, read


def main() -> int:
    """Run for the given time and say what was done."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=time.time_ns())
    asked = parser.parse_args()
    print(f"fuzzing the decoders for {asked.seconds:g} s, seed {asked.seed}")
    tried, read = fuzz(asked.seconds, asked.seed)
    print(f"{tried:,} inputs, {read:,} of them JSON: no difference and no foreign error")
    return 0


if __name__ == "__main__":
    sys.exit(main())
