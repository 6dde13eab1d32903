"""Nodes compare their settings by fingerprints."""

from __future__ import annotations

from pathlib import Path

from folkmoot.settings import load
from folkmoot.settings.comparison import differing_settings, settings_fingerprints


def fingerprints(folder: Path, text: str = "", **environ: str) -> str:
    file = folder / "folkmoot.toml"
    file.write_text(text)
    loaded = load(file, environ=environ)
    return settings_fingerprints(loaded.settings, loaded)


def test_what_a_node_may_have_of_its_own_does_not_differ(tmp_path):
    own = """
        port = 8421
        data = "/tmp/one"
        log.level = "debug"
        store.url = "postgresql://db1"
        bus.url = "nats://nats1"
        cluster.address = "http://node1:8420"
        http.trusted_proxies = ["10.0.0.1"]
        telemetry.service_name = "one"
    """
    assert differing_settings(fingerprints(tmp_path, own), fingerprints(tmp_path)) == []


def test_settings_backends_and_grants_that_differ_are_named(tmp_path):
    one = """
        rates.send_per_minute = 7
        store.synchronous_replica = true
        [backends.notes]
        url = "https://notes.example.org/mcp"
        [grants]
        ada = ["mcp.request.tools/call:notes/*"]
    """
    other = """
        [backends.notes]
        url = "https://other.example.org/mcp"
    """
    assert differing_settings(fingerprints(tmp_path, one), fingerprints(tmp_path, other)) == [
        "backends.notes.url",
        "grants.ada",
        "rates.send_per_minute",
        "store.synchronous_replica",
    ]
    assert differing_settings(fingerprints(tmp_path, one), fingerprints(tmp_path, one)) == []


def test_who_may_register_differs_also_where_only_the_host_does(tmp_path):
    everyone, invited = fingerprints(tmp_path), fingerprints(tmp_path, 'host = "0.0.0.0"')
    assert differing_settings(everyone, invited) == ["registration"]
    assert differing_settings(fingerprints(tmp_path, 'registration = "open"'), everyone) == []


def test_marks_of_another_release_or_none_differ_in_nothing(tmp_path):
    assert differing_settings("", fingerprints(tmp_path)) == []
    assert differing_settings("[1]", fingerprints(tmp_path)) == []
