"""The words and tables of the bridge are those of the SDK and of the page about eras."""

from __future__ import annotations

import mcp_types as types
import pytest
from mcp.shared.subscriptions import LISTEN_STREAM_METHODS, SUBSCRIPTION_ID_META_KEY
from mcp_types import methods, version

from folkmoot.mcp import wire
from folkmoot.mcp.eras.table import UNBRIDGED, EraRefusal
from tests.mcp.eras import test_handshake_client as handshake
from tests.mcp.eras import test_stateless_client as stateless
from tests.mcp.eras.script import META, client, play, refused, request


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (wire.STATELESS_VERSION, version.LATEST_MODERN_VERSION),
        (wire.HANDSHAKE_VERSION, version.LATEST_HANDSHAKE_VERSION),
        (wire.HANDSHAKE_VERSIONS, frozenset(version.HANDSHAKE_PROTOCOL_VERSIONS)),
        (wire.VERSION_KEY, types.PROTOCOL_VERSION_META_KEY),
        (wire.CLIENT_KEY, types.CLIENT_INFO_META_KEY),
        (wire.CAPABILITIES_KEY, types.CLIENT_CAPABILITIES_META_KEY),
        (wire.LEVEL_KEY, types.LOG_LEVEL_META_KEY),
        (wire.SERVER_KEY, types.SERVER_INFO_META_KEY),
        (wire.SUBSCRIPTION_KEY, SUBSCRIPTION_ID_META_KEY),
        (wire.CACHEABLE | {wire.DISCOVER}, methods.CACHEABLE_METHODS),
        (wire.ASKING - {wire.TASKS_RESULT}, methods.INPUT_REQUIRED_METHODS),
        ({*wire.CHANGES, wire.UPDATED}, LISTEN_STREAM_METHODS),
        (wire.VERSION_UNSUPPORTED, types.UNSUPPORTED_PROTOCOL_VERSION),
        (wire.CAPABILITY_MISSING, types.MISSING_REQUIRED_CLIENT_CAPABILITY),
        (wire.HEADER_MISMATCH, types.HEADER_MISMATCH),
    ],
)
def test_the_words_are_those_of_the_official_types(ours, theirs):
    assert ours == theirs


def test_every_request_of_a_handshake_server_is_known():
    asked = {method for method, _ in methods.SERVER_REQUESTS} - {wire.PING}
    assert asked == set(wire.NEEDED)


@pytest.mark.requirement("mcp.eras-bridged")
@pytest.mark.parametrize("method", sorted(UNBRIDGED))
def test_a_method_that_is_not_bridged_is_refused_in_both_directions(method):
    told = refused(1, EraRefusal.TASKS.sentence)
    play(handshake.met(), client(request(1, method)), told)
    play(stateless.met(), client(request(1, method, _meta=META)), told)
