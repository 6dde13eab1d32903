"""TLS of the hub's own, from the certificate and the key that its settings name."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from folkmoot.core.errors import SettingsError

if TYPE_CHECKING:
    from folkmoot.settings import TlsSettings


def load_tls(settings: TlsSettings) -> ssl.SSLContext | None:
    """What the port is served with; None without TLS, a `SettingsError` when it cannot be."""
    if not (settings.certificate or settings.key):
        return None
    certificate = _readable("tls.certificate", settings.certificate)
    key = _readable("tls.key", settings.key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    # Not every build of Python or configuration of OpenSSL refuses older versions by default.
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        # Without an answer of ours OpenSSL would ask the terminal for a password.
        context.load_cert_chain(certificate, key, password=_no_password)
    except ssl.SSLError as error:
        raise _unusable(error, certificate, key) from None
    return context


def _readable(setting: str, name: str) -> Path:
    if not name:
        raise SettingsError("tls.certificate and tls.key are set together or not at all.")
    path = Path(name).expanduser().absolute()
    try:
        with path.open("rb"):
            return path
    except FileNotFoundError:
        raise SettingsError(f"{setting}: there is no file {path}.") from None
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise SettingsError(f"{setting}: {path} cannot be read: {reason}.") from None


def _no_password() -> NoReturn:
    raise SettingsError("tls.key: the key is protected by a password; the hub needs one without.")


def _unusable(error: ssl.SSLError, certificate: Path, key: Path) -> SettingsError:
    if error.reason == "KEY_VALUES_MISMATCH":
        return SettingsError(f"tls.key: {key} is not the key of {certificate}.")
    return SettingsError(
        f"tls.certificate and tls.key: {certificate} and {key} are not a certificate and its key "
        "in PEM form."
    )
