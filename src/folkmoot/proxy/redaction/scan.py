r"""A quick look at the bytes of a message: most hold nothing that could be a secret.

It may say yes to what holds none, never no to what holds one: whatever `forms`, `names` and `mail`
know is found here by a piece of it. Patterns begin with a character that is rare, since looking for
one character costs next to nothing. Any letter may be spelled `\u00…` or `%…`.
"""

from __future__ import annotations

import re
from typing import Final

PIECES: Final = (
    "cre",  # secret, credential
    "pass",
    "pwd",
    "auth",
    "bearer",
    "recovery",
    "invite",
    "msg",
    "eyj",
    "aiza",
    "ya29",
    "\\u00",
)
"""What is looked for as it stands."""

_NAMED = re.compile(r"k(?:(?<=tok)(?<!progresstok)en|(?<=cook)ie|(?<=ak)ia|(?<!\"k)ey)").search
_JOINED = re.compile(
    r"_(?:(?<=[sgrp][ki]_)|(?<=gh[oprsu]_)|(?<=npm_)|(?<=hf_)|pat_|mode|message_b)"
).search
_DASHED = re.compile(
    r"-(?:(?<=sk-)|(?<=xox[a-z]-)|(?<=xapp-)|(?<=glpat-)|(?<=pypi-)|----begin"
    r"|[a-hj-np-z2-9]{4}-[a-hj-np-z2-9]{4})"
).search
_USER = re.compile(r"://[^\s/?#@\"'<>]*@").search
_QUERY = re.compile(r"[?&](?:key|sig|signature|code|access|session_?id|x-[a-z]+-[a-z]+)=").search
_PERCENT = re.compile(r"%(?:25)*[2-7][0-9a-f]").search


def may_hold_secret(raw: bytes, known: tuple[str, ...] = ()) -> bool:
    """Whether something in these bytes could be a secret, or mail, or is one of those known."""
    text = folded(raw)
    for piece in PIECES:
        if piece in text:
            return True
    for piece in known:
        if piece in text:
            return True
    return bool(
        _NAMED(text)
        or _JOINED(text)
        or _DASHED(text)
        or ("@" in text and _USER(text))
        or ("=" in text and _QUERY(text))
        or ("%" in text and _PERCENT(text))
    )


def folded(raw: bytes) -> str:
    """Bytes in small letters; as Latin-1, so that each is one character and nothing can fail."""
    return raw.lower().decode("latin-1")
