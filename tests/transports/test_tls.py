"""The certificate and key of a hub: what can be used, and one sentence for what cannot."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from folkmoot.core import errors as e
from folkmoot.settings import TlsSettings
from folkmoot.settings.model import ClusterSettings
from folkmoot.transports.listen import load_ca, load_tls
from tests.certificates import certificate


def made(certificate: Path | str, key: Path | str) -> TlsSettings:
    return TlsSettings(certificate=str(certificate), key=str(key))


def test_without_a_certificate_there_is_no_tls() -> None:
    assert load_tls(TlsSettings()) is None


def test_a_certificate_and_its_key_are_taken_from_tls_1_2_on(tmp_path: Path) -> None:
    context = load_tls(made(*certificate(tmp_path)))
    assert context is not None
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2


def missing(folder: Path) -> TlsSettings:
    return made(folder / "none.pem", certificate(folder)[1])


def missing_key(folder: Path) -> TlsSettings:
    return made(certificate(folder)[0], folder / "none.pem")


def a_folder(folder: Path) -> TlsSettings:
    return made(folder, certificate(folder)[1])


def only_one(folder: Path) -> TlsSettings:
    return made(certificate(folder)[0], "")


def another_key(folder: Path) -> TlsSettings:
    return made(certificate(folder / "a")[0], certificate(folder / "b")[1])


def with_password(folder: Path) -> TlsSettings:
    return made(*certificate(folder, password=b"hunter2"))


def swapped(folder: Path) -> TlsSettings:
    return made(*reversed(certificate(folder)))


def garbage(folder: Path) -> TlsSettings:
    (folder / "garbage.pem").write_bytes(b"\xff" * 100)
    return made(folder / "garbage.pem", certificate(folder)[1])


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (missing, "tls.certificate: there is no file "),
        (missing_key, "tls.key: there is no file "),
        (a_folder, "cannot be read: is a directory."),
        (only_one, "tls.certificate and tls.key are set together or not at all."),
        (another_key, " is not the key of "),
        (with_password, "tls.key: the key is protected by a password"),
        (swapped, "are not a certificate and its key in PEM form."),
        (garbage, "are not a certificate and its key in PEM form."),
    ],
)
def test_files_that_cannot_be_used_are_told_in_one_sentence(
    tmp_path: Path, make: Callable[[Path], TlsSettings], told: str
) -> None:
    with pytest.raises(e.SettingsError) as refused:
        load_tls(make(tmp_path))
    assert told in refused.value.message
    assert refused.value.message.endswith(".")
    assert "\n" not in refused.value.message


def test_certificates_to_trust_are_read_from_a_file_or_told_in_one_sentence(
    tmp_path: Path,
) -> None:
    assert load_ca(ClusterSettings()) is None
    chain, key = certificate(tmp_path)
    context = load_ca(ClusterSettings(ca_file=str(chain)))
    assert context is not None
    assert context.verify_mode is ssl.CERT_REQUIRED
    for path, told in ((tmp_path / "none.pem", "there is no file"), (key, "has no certificates")):
        with pytest.raises(e.SettingsError, match=f"cluster.ca_file: .*{told}"):
            load_ca(ClusterSettings(ca_file=str(path)))
