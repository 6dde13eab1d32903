"""Values that are not written in the settings, and the environment that a server is started with.

They are read when a server is reached, so that a changed secret counts from the next link on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from folkmoot.core import errors as e
from folkmoot.core.redaction import sounds_secret
from folkmoot.core.transport import Headers
from folkmoot.settings.backends import SecretReference, Value
from folkmoot.telemetry.redaction import redactor

MOST_BYTES: Final = 64 * 1024
"""A longer file holds something else than a secret."""

PASSED_ON: Final = frozenset(
    {
        "HOME",
        "LANG",
        "LANGUAGE",
        "LOGNAME",
        "NODE_EXTRA_CA_CERTS",
        "PATH",
        "SHELL",
        "SSL_CERT_DIR",
        "SSL_CERT_FILE",
        "SYSTEMROOT",
        "TEMP",
        "TERM",
        "TMP",
        "TMPDIR",
        "TZ",
        "USER",
        "XDG_CACHE_HOME",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "XDG_RUNTIME_DIR",
        "XDG_STATE_HOME",
    }
)
"""The variables of ours that every server may know.

A proxy's address is not among them, since it may hold a password: whoever needs it names it.
"""
PREFIX: Final = "LC_"
_RANDOM: Final = re.compile(r"(?=[^0-9]*[0-9])(?=[^A-Za-z]*[A-Za-z])[\w~.%=-]{12,}")
"""What nobody would name a folder: long, with letters and digits."""


def child_environment(named: Mapping[str, Value], environ: Mapping[str, str]) -> dict[str, str]:
    """The whole environment of a server: the common variables, and those it names."""
    passed = {
        name: value
        for name, value in environ.items()
        if name in PASSED_ON or name.startswith(PREFIX)
    }
    return passed | _resolved(named, environ, "variable")


def headers_of(named: Mapping[str, Value], environ: Mapping[str, str]) -> Headers:
    """The headers that go with every request to a server."""
    found = _resolved(named, environ, "header")
    return Headers(tuple((name.lower(), value) for name, value in found.items()))


def _resolved(named: Mapping[str, Value], environ: Mapping[str, str], what: str) -> dict[str, str]:
    found = {}
    for name, value in named.items():
        if isinstance(value, SecretReference):
            secret = resolve(value, environ, f"the {what} {name}")
            redactor.hide(secret)
            found[name] = value.around(secret)
        else:
            if sounds_secret(name):
                # Before it may stand a word for how it is meant, such as `Bearer`.
                redactor.hide(value, value.rpartition(" ")[2])
            found[name] = value
    return found


def hide_address(url: str) -> None:
    """Keep out of logs what looks like a secret in the path of a server's address."""
    path = url.partition("://")[2].partition("?")[0].split("/")[1:]
    redactor.hide(*(part for part in path if _RANDOM.fullmatch(part)))


def resolve(secret: SecretReference, environ: Mapping[str, str], use: str) -> str:
    """The value that a secret stands for; `use` says what it is for, should it be missing."""
    if secret.env:
        value = environ.get(secret.env)
        if value is None:
            raise e.BackendUnavailable(
                f"The secret for {use} is missing: the variable {secret.env} is not set."
            )
        return value
    return _read(Path(secret.file).expanduser(), use)


def _read(path: Path, use: str) -> str:
    try:
        # Of a pipe or a device nobody knows when it ends.
        usable = path.is_file() and path.stat().st_size <= MOST_BYTES
        raw = path.read_bytes() if usable else b""
        value = raw.decode().rstrip("\r\n")
    except (OSError, ValueError):
        usable, value = False, ""
    if not usable:
        raise e.BackendUnavailable(
            f"The secret for {use} is missing: the file {path} cannot be read as one."
        )
    return value
