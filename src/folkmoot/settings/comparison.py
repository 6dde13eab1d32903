"""Compares the settings of nodes by fingerprints, which tell nobody what the settings are."""

from __future__ import annotations

import json
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import msgspec

from folkmoot.settings.fields import FIELDS, gateway_in_effect, masked
from folkmoot.settings.limits import MAX_FINGERPRINTS

if TYPE_CHECKING:
    from folkmoot.settings.load import Loaded
    from folkmoot.settings.model import Settings

OWN: Final = frozenset(
    {
        "host", "port", "data", "master_key", "log", "tls", "record", "telemetry",
        "store", "bus", "cluster.address", "cluster.ca_file", "http.allowed_hosts",
        "http.max_connections", "http.shutdown_seconds", "http.trusted_proxies",
    }
)  # fmt: skip
"""Settings, and tables of them, that each node may have of its own."""
SHARED: Final = frozenset({"store.synchronous_replica"})
"""Settings in those tables that should be the same everywhere even so."""
_FINGERPRINTS: Final = msgspec.json.Decoder(dict[str, str])


def settings_fingerprints(settings: Settings, loaded: Loaded) -> str:
    """A fingerprint for each setting in effect that should be the same on every node, as JSON."""
    values: dict[str, Any] = {"registration": settings.registration_policy}
    for path, field in FIELDS.items():
        value = field.value_in(settings)
        if path not in values and is_shared(path, field.section) and value != field.default:
            values[path] = masked(field, value)
    told = ((path, value) for path, value, _ in gateway_in_effect(loaded))
    values.update(islice(told, MAX_FINGERPRINTS))
    return json.dumps({path: fingerprint(value) for path, value in values.items()}, sort_keys=True)


def is_shared(path: str, section: str) -> bool:
    """Whether a setting should be the same on every node."""
    return path in SHARED or not OWN & {path, section}


def fingerprint(value: Any) -> str:
    spelled = json.dumps(value, sort_keys=True, default=str)
    return sha256(spelled.encode()).hexdigest()[:8]


def differing_settings(one: str, other: str) -> list[str]:
    """The settings whose fingerprints differ; none where one of the nodes told none."""
    try:
        first, second = _FINGERPRINTS.decode(one), _FINGERPRINTS.decode(other)
    except msgspec.DecodeError:
        return []
    return sorted(path for path in first | second if first.get(path) != second.get(path))
