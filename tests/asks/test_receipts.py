"""Receipts: what they prove, and the vectors by which others test their own verifier.

python -m tests.asks.test_receipts      writes the vectors
"""

from __future__ import annotations

import importlib.util
import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from nacl.signing import SigningKey

from folkmoot.asks.machine import Wish, bound
from folkmoot.asks.receipts import (
    LISTED_SECONDS,
    SIGNING_SECONDS,
    Receipts,
    check,
    encoded,
    signed_by,
)
from folkmoot.core import errors as e
from tests.clocks import StillClock

EXAMPLES = Path(__file__).parents[2] / "examples"
VECTORS = EXAMPLES / "receipt_vectors.json"
ARGUMENTS = {"command": "make deploy", "to": ["ä", 1, 2.5, None, True], "more": {"b": {}, "a": ""}}
UNTIL = 1_800_000_000


def load_example() -> Any:
    spec = importlib.util.spec_from_file_location("verify_receipt", EXAMPLES / "verify_receipt.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def made() -> dict[str, Any]:
    """All vectors; nothing in them is left to chance."""
    key, other = SigningKey(b"\x07" * 32), SigningKey(b"\x08" * 32)
    wish = Wish(tool="shell", arguments=ARGUMENTS, why="", until=UNTIL)
    claims = {
        "iss": "https://moot.example", "jti": "00", "iat": UNTIL - 3600, "ask": "ask_1",
        "asker": "ada", "decider": "bob", "tool": "shell", "until": UNTIL,
        "digest": sha256(bound("ask_1", "ada", "bob", wish)).hexdigest(),
        "verdict": "approved", "presence": "passkey",
    }  # fmt: skip
    good = signed_by(key, "k1", claims)
    call = {"tool": "shell", "arguments": ARGUMENTS, "now": UNTIL - 1}
    turned = {name: ARGUMENTS[name] for name in reversed(ARGUMENTS)}
    rejected = signed_by(key, "k1", {**claims, "verdict": "rejected"})
    forged = signed_by(key, "k1", {**claims, "asker": "eve"}).split(".")[1]
    head, _, signature = good.split(".")
    none = encoded(b'{"alg":"none","typ":"ask-receipt+jwt","kid":"k1"}').decode()
    rows = [
        ("a good one", good, {}, True),
        ("arguments in another order", good, {"arguments": turned}, True),
        ("another argument", good, {"arguments": {**ARGUMENTS, "command": "rm"}}, False),
        ("an argument more", good, {"arguments": {**ARGUMENTS, "force": True}}, False),
        ("another tool", good, {"tool": "sql"}, False),
        ("too late", good, {"now": UNTIL + 1}, False),
        ("rejected", rejected, {}, False),
        ("another asker", signed_by(key, "k1", {**claims, "asker": "eve"}), {}, False),
        ("claims of another receipt", f"{head}.{forged}.{signature}", {}, False),
        ("signed by another key", signed_by(other, "k1", claims), {}, False),
        ("a key that is not listed", signed_by(other, "k2", claims), {}, False),
        ("no signature", f"{none}.{good.split('.')[1]}.", {}, False),
        ("no receipt", "x", {}, False),
    ]
    public = encoded(bytes(key.verify_key)).decode()
    about = {"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": "k1"}
    return {
        "keys": [{**about, "x": public}],
        "vectors": [
            {"name": name, "receipt": receipt, **call, **more, "valid": valid}
            for name, receipt, more, valid in rows
        ],
    }


TABLE = made()


def test_the_vectors_in_the_examples_are_these():
    assert json.loads(VECTORS.read_text()) == TABLE


@pytest.mark.parametrize("row", TABLE["vectors"], ids=lambda row: row["name"])
@pytest.mark.parametrize("whose", ["ours", "the example's"])
def test_a_receipt_proves_the_very_call_alone(row, whose):
    example = load_example()
    verify: Any = example.check
    wrong: Any = example.NotValid
    if whose == "ours":
        verify, wrong = check, e.ReceiptInvalid
    given = row["receipt"], {"keys": TABLE["keys"]}, row["tool"], row["arguments"], row["now"]
    if row["valid"]:
        assert verify(*given)["decider"] == "bob"
    else:
        with pytest.raises(wrong):
            verify(*given)


class Plain:
    """Seals nothing, but says for what it was asked to."""

    def seal(self, purpose: str, row: str, plain: bytes) -> str:
        return f"{purpose} {row} {plain.hex()}"

    def open(self, purpose: str, row: str, sealed: str) -> bytes:
        assert sealed.startswith(f"{purpose} {row} ")
        return bytes.fromhex(sealed.rpartition(" ")[2])


async def test_another_key_signs_after_a_while_and_the_old_one_still_checks(store):
    clock = StillClock()
    receipts = Receipts(store, Plain(), clock, lambda: "https://moot.example")

    async def signed() -> str:
        return await store.write(lambda tx: receipts.sign(tx, {"verdict": "approved"}))

    async def kids() -> list[str]:
        clock.seconds += 2
        return [each["kid"] for each in (await receipts.key_set())["keys"]]

    await signed()
    await signed()
    (first,) = await kids()
    clock.seconds += SIGNING_SECONDS
    await signed()
    second, before = await kids()
    assert before == first != second
    clock.seconds += LISTED_SECONDS - SIGNING_SECONDS
    await signed()
    third, kept = await kids()
    assert kept == second != third


if __name__ == "__main__":
    VECTORS.write_text(json.dumps(TABLE, indent=2, ensure_ascii=False) + "\n")
