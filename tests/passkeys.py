"""An authenticator in software: it answers what browsers pass on to one, and lies when told."""

from __future__ import annotations

import json
import secrets
from base64 import urlsafe_b64encode
from hashlib import sha256
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from fido2 import cbor
from fido2.cose import ES256
from fido2.webauthn import AttestationObject, AttestedCredentialData, AuthenticatorData

PRESENT, VERIFIED, ATTESTED = 0x01, 0x04, 0x40
LOCAL = "http://localhost:8420"


def encoded(value: bytes) -> str:
    return urlsafe_b64encode(value).rstrip(b"=").decode()


class Authenticator:
    """One passkey, at one name; `counts` is how many signatures it says it has made."""

    def __init__(self, origin: str = LOCAL, rp_id: str = "localhost") -> None:
        self.origin, self.rp_id, self.counts = origin, rp_id, 0
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.id = secrets.token_bytes(32)
        self.user = ""

    def make(self, options: dict[str, Any], **lies: Any) -> str:
        """What a browser answers when it has made a passkey."""
        self.user = options["user"]["id"]
        public = ES256.from_cryptography_key(self.key.public_key())
        key = AttestedCredentialData.create(b"\0" * 16, self.id, public)
        said = self._said("webauthn.create", options, lies)
        data = self._data(ATTESTED, lies, key)
        made = AttestationObject.create("none", data, {})
        return self._answer(said, attestationObject=encoded(bytes(made)))

    def sign(self, options: dict[str, Any], **lies: Any) -> str:
        """What a browser answers when its person is there."""
        said = self._said("webauthn.get", options, lies)
        data = self._data(0, lies)
        key = lies.get("key", self.key)
        signature = key.sign(bytes(data) + sha256(said).digest(), ec.ECDSA(SHA256()))
        return self._answer(
            said,
            authenticatorData=encoded(bytes(data)),
            signature=encoded(signature),
            userHandle=lies.get("user", self.user),
        )

    def _said(self, type_: str, options: dict[str, Any], lies: dict[str, Any]) -> bytes:
        said = {
            "type": lies.get("type", type_),
            "challenge": lies.get("challenge", options["challenge"]),
            "origin": lies.get("origin", self.origin),
            "crossOrigin": lies.get("framed", False),
        }
        return json.dumps(said).encode()

    def _data(self, flags: int, lies: dict[str, Any], key: Any = b"") -> AuthenticatorData:
        hashed = sha256(lies.get("rp_id", self.rp_id).encode()).digest()
        flags |= lies.get("flags", PRESENT | VERIFIED)
        return AuthenticatorData.create(hashed, flags, lies.get("counts", self.counts), key)

    def _answer(self, said: bytes, **response: str) -> str:
        id_ = encoded(self.id)
        response["clientDataJSON"] = encoded(said)
        return json.dumps({"id": id_, "rawId": id_, "type": "public-key", "response": response})


def bomb(depth: int = 5_000) -> str:
    """An attestation that is nested deeper than anyone reads."""
    return encoded(b"\x81" * depth + cbor.encode(0))
