"""Receipts: what was decided about an ask, signed by the hub, for whoever wants to check it later.

A receipt is a JWS with EdDSA. The keys that check it are public, at `/.well-known/jwks.json`; the
keys that sign are sealed in the store. The hub makes a new one every `SIGNING_SECONDS`, and the
public half of an old one is listed for as long as receipts made with it are of use.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Callable
from hashlib import sha256
from typing import Any, Final

import msgspec
from nacl.exceptions import CryptoError
from nacl.signing import SigningKey, VerifyKey

from folkmoot.asks.limits import MAX_RECEIPT
from folkmoot.asks.machine import canonical
from folkmoot.core import errors as e
from folkmoot.core.ports import Clock, Sealer, Store, Tx
from folkmoot.rows import insert, many

KNOWN_SECONDS: Final = 1.0
TYPE: Final = "ask-receipt+jwt"
BOUND: Final = ("ask", "asker", "decider", "until", "definition", "policy")
"""What a digest covers beside the call, in the claims."""
PURPOSE: Final = "receipt_key"
SIGNING_SECONDS: Final = 90 * 86_400
LISTED_SECONDS: Final = 3 * 365 * 86_400


class Receipts:
    """Signs receipts, and lists the public keys."""

    def __init__(
        self, store: Store, sealer: Sealer, clock: Clock, issuer: Callable[[], str]
    ) -> None:
        self._store, self._sealer, self._clock = store, sealer, clock
        self._issuer = issuer
        self._known: tuple[float, dict[str, Any]] = (-1.0, {})

    async def sign(self, tx: Tx, claims: dict[str, Any]) -> str:
        """Within a unit: a receipt with an id of its own."""
        id_, key = await self._key(tx)
        body = {
            "iss": self._issuer(),
            "jti": secrets.token_hex(16),
            "iat": int(self._clock.now()),
            **claims,
        }
        return signed_by(key, id_, body)

    async def _key(self, tx: Tx) -> tuple[str, SigningKey]:
        """The key that signs now, made if there is none or it has signed for long enough."""
        now = self._clock.now()
        row = await tx.fetch_one(
            "SELECT id, sealed FROM receipt_keys WHERE made_at > ? "
            "ORDER BY made_at DESC, id LIMIT 1",
            (now - SIGNING_SECONDS,),
        )
        if row is not None:
            return row[0], SigningKey(self._sealer.open(PURPOSE, row[0], row[1]))
        key = SigningKey.generate()
        public = encoded(bytes(key.verify_key)).decode()
        id_ = sha256(public.encode()).hexdigest()[:16]
        sealed = self._sealer.seal(PURPOSE, id_, bytes(key))
        made = {"id": id_, "sealed": sealed, "public_key": public, "made_at": now}
        await insert(tx, "receipt_keys", made)
        await tx.execute("DELETE FROM receipt_keys WHERE made_at < ?", (now - LISTED_SECONDS,))
        return id_, key

    async def key_set(self) -> dict[str, Any]:
        """The public keys, as a JSON Web Key Set; strangers read the store once in a while."""
        now = self._clock.monotonic()
        if now >= self._known[0]:
            self._known = now + KNOWN_SECONDS, await self._read()
        return self._known[1]

    async def _read(self) -> dict[str, Any]:
        rows = await self._store.read(
            lambda tx: many(
                tx,
                lambda id_, public: {
                    "kty": "OKP",
                    "crv": "Ed25519",
                    "alg": "EdDSA",
                    "use": "sig",
                    "kid": id_,
                    "x": public,
                },
                "SELECT id, public_key FROM receipt_keys ORDER BY made_at DESC, id",
            )
        )
        return {"keys": rows}


def signed_by(key: SigningKey, id_: str, body: dict[str, Any]) -> str:
    """The receipt that says this."""
    head = {"alg": "EdDSA", "typ": TYPE, "kid": id_}
    signed = b".".join(encoded(msgspec.json.encode(part)) for part in (head, body))
    return (signed + b"." + encoded(key.sign(signed).signature)).decode()


def check(
    receipt: str, key_set: Any, tool: str, arguments: dict[str, Any], now: float
) -> dict[str, Any]:
    """What a receipt says, if it approves this very call and is still good.

    `examples/verify_receipt.py` does the same without this package.
    """
    claims = claims_of(receipt, key_set)
    told = {name: claims[name] for name in BOUND if name in claims}
    digest = sha256(canonical(told | {"tool": tool, "arguments": arguments})).hexdigest()
    if claims.get("verdict") != "approved":
        raise e.ReceiptInvalid("It was not approved.")
    if claims.get("digest") != digest:
        raise e.ReceiptInvalid("It is about another call.")
    if now > float(claims.get("until") or 0):
        raise e.ReceiptInvalid("It is too old.")
    return claims


def claims_of(receipt: str, key_set: Any) -> dict[str, Any]:
    """What a receipt says, if one of these keys has signed it."""
    try:
        head_part, body_part, signature = receipt[:MAX_RECEIPT].split(".")
        head, body = (msgspec.json.decode(decoded(it)) for it in (head_part, body_part))
        public = next((it["x"] for it in key_set["keys"] if it["kid"] == head["kid"]), None)
        if (head["alg"], head["typ"]) != ("EdDSA", TYPE):
            raise e.ReceiptInvalid("It is no receipt of an ask.")
        if public is None:
            raise e.ReceiptInvalid("None of these keys has signed it.")
        signed = f"{head_part}.{body_part}".encode()
        VerifyKey(decoded(public)).verify(signed, decoded(signature))
    except (ValueError, KeyError, TypeError, msgspec.DecodeError, CryptoError):
        raise e.ReceiptInvalid("Its signature is not valid.") from None
    return dict(body)


def decoded(text: str) -> bytes:
    """The bytes of base64 for URLs."""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def encoded(data: bytes) -> bytes:
    """Base64 for URLs, without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=")
