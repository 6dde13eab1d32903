"""Redactor: what a recorder asks to keep secrets out of a tape."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import msgspec

from folkmoot.core.message import (
    ProtocolMessage,
    Request,
    Response,
    encode_message,
)
from folkmoot.core.redaction import OPEN_HEADERS, is_secret_header, is_secret_parameter
from folkmoot.core.transport import Headers
from folkmoot.mcp.wire import (
    DISCOVER,
    INITIALIZE,
    NAME_HEADER,
    PARAM_HEADERS,
    PROMPTS_LIST,
    RESOURCES_LIST,
    SESSION_HEADER,
    TEMPLATES_LIST,
    TOOLS_LIST,
)
from folkmoot.proxy.redaction import mail
from folkmoot.proxy.redaction.placeholders import Placeholders, RedactedPlace
from folkmoot.proxy.redaction.text import Secrets, TextRedactor, may_hold_secret
from folkmoot.proxy.redaction.walk import RedactedPaths, Walk

DEFINITIONS: Final = frozenset(
    {
        INITIALIZE,
        DISCOVER,
        TOOLS_LIST,
        PROMPTS_LIST,
        RESOURCES_LIST,
        TEMPLATES_LIST,
    }
)
"""Requests whose answers describe things: there a name is followed by what it means."""

"""Headers that repeat an argument, which the message holds in any case."""
NAMED: Final = (("params", "name"), ("params", "uri"))
"""What that header repeats."""

SESSION_NAMES: Final = frozenset({"session_id", "sessionid", "session"})
"""Parameters of a URL that name a session."""
_BASE64: Final = re.compile(r"=\?base64\?(.*)\?=")

Places = tuple[RedactedPlace, ...]


class TapeRedactor:
    """Puts keyed placeholders where secrets are: equal secrets stay equal, under the same key."""

    def __init__(self, key: bytes, *, paths: Sequence[str] = (), mail: bool = True) -> None:
        placeholders = Placeholders(key)
        self.key_id = placeholders.id
        """Which key it is; the key itself is told nobody."""
        self.mail = mail
        self._paths = RedactedPaths(paths)
        self.texts = TextRedactor(placeholders)
        """Redacts texts, and remembers credentials."""
        self._names_are_secret = any(map(self._paths.lead_to, NAMED))

    @property
    def paths(self) -> tuple[str, ...]:
        """What is left out besides secrets and mail."""
        return self._paths.texts

    def message(
        self, message: ProtocolMessage, *, answering: Request | None = None
    ) -> tuple[bytes | None, Places]:
        """The bytes of a message without its secrets; None where its own can be written."""
        raw = encode_message(message)
        if not self.suspects(message, raw, answering):
            return None, ()
        defines = answering is not None and answering.method in DEFINITIONS
        walk = Walk(self.texts, self._paths, look_for_mail=self.mail, definitions=defines)
        value = msgspec.json.decode(raw)
        redacted = walk.message(value, self._words(message, answering))
        if not walk.places:
            return None, ()
        return msgspec.json.encode(redacted), tuple(walk.places)

    def value(self, value: Any) -> tuple[Any, Places]:
        """Any JSON value without its secrets."""
        walk = Walk(self.texts, RedactedPaths(()), look_for_mail=self.mail)
        return walk.value(value), tuple(walk.places)

    def headers(self, headers: Headers) -> Headers:
        """Headers without what opens doors."""
        pairs = tuple((name, self._header(name, value)) for name, value in headers)
        return headers if pairs == headers.pairs else Headers(pairs)

    def text(self, text: str) -> str:
        """Text without the secrets in it."""
        return self.texts.mask(text)

    def session_id(self, text: str) -> str:
        """What stands for the id of a session."""
        return self.texts.session(text)

    @contextmanager
    def noticing(self) -> Iterator[list[tuple[str, str]]]:
        """The credentials that are met while entered: `recall` has them found again later."""
        noticed: list[tuple[str, str]] = []
        self.texts.noticed = noticed
        try:
            yield noticed
        finally:
            self.texts.noticed = None

    def recall(self, secrets: Secrets) -> None:
        """Find these secrets everywhere, as if just seen."""
        self.texts.recall(secrets)

    def uri(self, uri: str) -> str:
        """An address without the values in its query that open doors."""
        address, mark, query = uri.partition("?")
        if not mark:
            return self.texts.mask(uri)
        return self.texts.mask(address) + mark + "&".join(map(self._parameter, query.split("&")))

    def suspects(self, message: ProtocolMessage, raw: bytes, answering: Request | None) -> bool:
        """Whether something in a message, which has these bytes, may have to be left out."""
        if may_hold_secret(raw, self.texts.known):
            return True
        if self._paths.texts and self._paths.may_lead_into(raw):
            return True
        return bool(self._words(message, answering))

    def _words(self, message: ProtocolMessage, answering: Request | None) -> mail.Names:
        """Under which names an answer has mail."""
        if not self.mail or type(message) is not Response:
            return frozenset()
        return mail.words_in_answer(answering)

    def _header(self, name: str, value: str) -> str:
        if name == SESSION_HEADER:
            return self.texts.session(value)
        if is_secret_header(name):
            return self.texts.credential(value)
        if name.startswith(PARAM_HEADERS) or (name == NAME_HEADER and self._names_are_secret):
            return self.texts.whole(value)
        inside = _unwrapped(value)
        masked = self.texts.mask(inside, forms_only=name in OPEN_HEADERS)
        return value if masked == inside else masked

    def _parameter(self, pair: str) -> str:
        name, mark, value = pair.partition("=")
        if name.lower() in SESSION_NAMES:
            return name + mark + self.texts.session(value)
        if is_secret_parameter(name):
            return name + mark + self.texts.whole(value)
        return self.texts.mask(pair)


def _unwrapped(value: str) -> str:
    """The value of a header without its encoded-word wrapping."""
    wrapped = _BASE64.fullmatch(value)
    if wrapped is None:
        return value
    try:
        return base64.b64decode(wrapped[1], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return value
