"""The certificate and key of a hub: what can be used, and one sentence for what cannot."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from folkmoot.core import errors as e
from folkmoot.settings import TlsSettings
from folkmoot.settings.model import ClusterSettings
from folkmoot.transports.listen import load_ca, load_tls
from tests.certificates import certificate


def made(certificate: Path | str, key: Path | str) -> TlsSettings:
    return TlsSettings(certificate=str(certificate), key=str(key))


def test_a_certificate_and_its_key_are_taken_from_tls_1_2_on(tmp_path):
    assert load_tls(TlsSettings()) is None
    context = load_tls(made(*certificate(tmp_path)))
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2


def test_files_that_cannot_be_used_are_told_in_one_sentence(tmp_path):
    chain, key = certificate(tmp_path / "a")
    _, other_key = certificate(tmp_path / "b")
    none, garbage = tmp_path / "none.pem", tmp_path / "garbage.pem"
    garbage.write_bytes(b"\xff" * 100)
    protected = certificate(tmp_path / "c", password=b"hunter2")
    for settings, told in (
        (made(none, key), "tls.certificate: there is no file "),
        (made(chain, none), "tls.key: there is no file "),
        (made(tmp_path, key), "cannot be read: is a directory."),
        (made(chain, ""), "tls.certificate and tls.key are set together or not at all."),
        (made(chain, other_key), " is not the key of "),
        (made(*protected), "tls.key: the key is protected by a password"),
        (made(key, chain), "are not a certificate and its key in PEM form."),
        (made(garbage, key), "are not a certificate and its key in PEM form."),
    ):
        with pytest.raises(e.SettingsError) as refused:
            load_tls(settings)
        assert told in refused.value.message
        assert refused.value.message.endswith(".")
        assert "\n" not in refused.value.message


def test_certificates_to_trust_are_read_from_a_file_or_told_in_one_sentence(tmp_path):
    assert load_ca(ClusterSettings()) is None
    chain, key = certificate(tmp_path)
    context = load_ca(ClusterSettings(ca_file=str(chain)))
    assert context.verify_mode is ssl.CERT_REQUIRED
    for path, told in ((tmp_path / "none.pem", "there is no file"), (key, "has no certificates")):
        with pytest.raises(e.SettingsError, match=f"cluster.ca_file: .*{told}"):
            load_ca(ClusterSettings(ca_file=str(path)))
