"""Mutations of wire bytes: those that break JSON, and those that keep it and change its meaning."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Final, TypeAlias

Mutation: TypeAlias = Callable[[random.Random, bytes], bytes]

_TOKENS: Final = [
    *(b'"', b"\\", b"{", b"}", b"[", b"]", b":", b",", b"\n", b"\x00", b"/*x*/"),
    *(b"\\u0022", b"\\ud800", b"\\udc00", b"\\u0073eq", b'"a":1,"a":2'),
    *(b"NaN", b"-Infinity", b"1e999", b"-0", b"1E5", b"0.0", b"9" * 400, b"true", b"null"),
    *(b"\xff", b"\xed\xa0\x80", b"\xc3\xa9", b"\xf0\x9f\x98\x80", b"\xef\xbb\xbf"),
    *(b"*", b"!", b".", b"..", b"mcp.request.", b"system.", b"chat.message", b"notifications/"),
]


def flip(chance: random.Random, raw: bytes) -> bytes:
    """One bit the other way."""
    at = chance.randrange(len(raw) or 1)
    return raw[:at] + bytes([(raw[at] if raw else 0) ^ 1 << chance.randrange(8)]) + raw[at + 1 :]


def insert(chance: random.Random, raw: bytes) -> bytes:
    """A token that means something, anywhere."""
    at = chance.randrange(len(raw) + 1)
    return raw[:at] + chance.choice(_TOKENS) + raw[at:]


def remove(chance: random.Random, raw: bytes) -> bytes:
    """A short run less."""
    at = chance.randrange(len(raw) + 1)
    return raw[:at] + raw[at + chance.randrange(1, 9) :]


def repeat(chance: random.Random, raw: bytes) -> bytes:
    """A run twice, or so often that it is deep."""
    at = chance.randrange(len(raw) + 1)
    run = raw[at : at + chance.randrange(1, 20)]
    return raw[:at] + run * chance.choice([2, 2, 3, 80]) + raw[at:]


def respell(chance: random.Random, raw: bytes) -> bytes:
    """The same JSON in another spelling: white space and escapes."""
    try:
        value = json.loads(raw)
        return json.dumps(
            value, indent=chance.choice([None, 1]), ensure_ascii=chance.random() < 0.5
        ).encode()
    except (ValueError, RecursionError):
        return raw


def escape(chance: random.Random, raw: bytes) -> bytes:
    """One letter written as an escape: the same string, if it stood in one."""
    letters = [at for at, byte in enumerate(raw) if chr(byte).isalnum()]
    if not letters:
        return raw
    at = chance.choice(letters)
    return raw[:at] + f"\\u{raw[at]:04x}".encode() + raw[at + 1 :]


MUTATIONS: Final[list[Mutation]] = [flip, insert, remove, repeat, respell, escape]


def mutate(chance: random.Random, raw: bytes) -> bytes:
    """One to four mutations, one after the other."""
    for _ in range(chance.randrange(1, 5)):
        raw = chance.choice(MUTATIONS)(chance, raw)
    return raw[:65536]
