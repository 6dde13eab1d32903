"""Secrets to plant, and a redactor to find them."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from hypothesis import settings
from hypothesis import strategies as st

from folkmoot.core.message import ProtocolMessage, Request, decode_message
from folkmoot.proxy.redaction import TapeRedactor

# For properties that need fewer examples than others; in the deep tier that is still many.
SOME = settings(max_examples=settings().max_examples // 3)

KEY = b"a key of thirty-two random bytes"
LETTERS = "abcdefghijkmnpqrstuvwxyz23456789"
WORDS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"


def _random(alphabet: str, count: int) -> st.SearchStrategy[str]:
    return st.text(alphabet, min_size=count, max_size=count)


TOKENS = st.one_of(
    st.tuples(st.sampled_from(["sk_", "gi_", "gk_"]), _random(LETTERS, 32)).map("".join),
    st.tuples(st.sampled_from(["bs_", "oc_", "ic_"]), _random("0123456789abcdef", 32)).map("".join),
    st.tuples(st.just("sk-proj-"), _random(LETTERS, 32)).map("".join),
    st.tuples(st.sampled_from(["ghp_", "gho_", "ghs_"]), _random(LETTERS, 36)).map("".join),
    st.tuples(st.just("xoxb-"), _random(LETTERS, 24)).map("".join),
    st.tuples(st.just("AKIA"), _random(WORDS, 16)).map("".join),
    st.tuples(*(_random(LETTERS, count) for count in (12, 9, 20))).map(
        lambda parts: "eyJhbGciOi{}.eyJzdWIi{}.{}".format(*parts)
    ),
)
CODES = st.tuples(*[_random(WORDS, 4)] * 3).map("-".join)
# Secrets that show by their form wherever they stand.
FORMED = TOKENS | CODES

# Secrets that only their name tells.
PASSWORDS = st.text(
    st.characters(min_codepoint=33, max_codepoint=0x24F, exclude_categories=["Cs", "Cc", "Zs"]),
    min_size=10,
    max_size=20,
).map(lambda text: f"p{text}w")


def redactor(**options: Any) -> TapeRedactor:
    return TapeRedactor(KEY, **options)


def escaped(text: str) -> str:
    r"""A JSON text with every letter of its strings spelled `\u…`."""
    value = json.loads(text)

    def spell(value: Any) -> str:
        if isinstance(value, str):
            units = value.encode("utf-16-be")
            codes = (units[at : at + 2].hex() for at in range(0, len(units), 2))
            return '"' + "".join(f"\\u{code}" for code in codes) + '"'
        if isinstance(value, dict):
            inside = ",".join(f"{spell(name)}:{spell(member)}" for name, member in value.items())
            return "{" + inside + "}"
        if isinstance(value, list):
            return "[" + ",".join(map(spell, value)) + "]"
        return json.dumps(value)

    return spell(value)


def message(body: dict[str, Any]) -> ProtocolMessage:
    return decode_message(msgspec.json.encode({"jsonrpc": "2.0", **body}))


def request(tool: str, arguments: Any = None) -> Request:
    return Request(id=1, method="tools/call", params={"name": tool, "arguments": arguments})


def redacted(body: dict[str, Any], *, by: TapeRedactor | None = None, **more: Any) -> Any:
    """What is written of a message."""
    given = message(body)
    raw, places = (by or redactor()).message(given, **more)
    assert (raw is None) == (not places)
    return msgspec.json.decode(given.raw if raw is None else raw)
