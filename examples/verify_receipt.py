"""Check the receipt of a decision without asking the hub, given its public keys.

    python verify_receipt.py RECEIPT jwks.json TOOL ARGUMENTS

A gateway, or a job in CI, does what it was asked to do only with such a receipt: it says who
approved which call, with which arguments, and the hub signed it. Needs `pip install pynacl`.
"""

from __future__ import annotations

import base64
import json
import sys
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

from nacl.exceptions import BadSignatureError
from nacl.signing import VerifyKey

TYPE = "ask-receipt+jwt"
MOST = 16_384
NAMES = ("ask", "asker", "decider", "until", "definition", "policy")


class NotValid(Exception):
    """Why a receipt proves nothing."""


def decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def claims_of(receipt: str, key_set: dict[str, Any]) -> dict[str, Any]:
    """What a receipt says, if one of these keys signed it."""
    try:
        head_part, body_part, signature = receipt[:MOST].split(".")
        head, body = json.loads(decoded(head_part)), json.loads(decoded(body_part))
        key = next(it["x"] for it in key_set["keys"] if it["kid"] == head["kid"])
        if (head["alg"], head["typ"]) != ("EdDSA", TYPE):
            raise NotValid("It is no receipt of an ask.")
        signed = f"{head_part}.{body_part}".encode()
        VerifyKey(decoded(key)).verify(signed, decoded(signature))
    except StopIteration:
        raise NotValid("None of these keys has signed it.") from None
    except (ValueError, KeyError, TypeError, BadSignatureError):
        raise NotValid("Its signature is not valid.") from None
    return dict(body)


def digest_of(claims: dict[str, Any], tool: str, arguments: dict[str, Any]) -> str:
    """The digest of an ask for this call, with the other things that it covers."""
    told = {name: claims[name] for name in NAMES if name in claims}
    told |= {"tool": tool, "arguments": arguments}
    text = json.dumps(told, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return sha256(text.encode()).hexdigest()


def check(
    receipt: str, key_set: dict[str, Any], tool: str, arguments: dict[str, Any], now: float
) -> dict[str, Any]:
    """The claims of a receipt that approves this very call, while it is good."""
    claims = claims_of(receipt, key_set)
    if claims.get("verdict") != "approved":
        raise NotValid("It was not approved.")
    if claims.get("digest") != digest_of(claims, tool, arguments):
        raise NotValid("It is about another call.")
    if now > float(claims.get("until") or 0):
        raise NotValid("It is too old.")
    return claims


def main() -> int:
    receipt, keys, tool, arguments = sys.argv[1:]
    try:
        key_set = json.loads(Path(keys).read_text())
        found = check(receipt, key_set, tool, json.loads(arguments), time.time())
    except NotValid as error:
        print(error, file=sys.stderr)
        return 1
    print(json.dumps(found, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
