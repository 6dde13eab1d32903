"""Who may register, how often, from where: the settings of a hub that people reach."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from folkmoot.bounds import rate_limits
from folkmoot.bus.limits import MAX_SENT_BYTES
from folkmoot.cluster.limits import MAX_UNRECEIVED_BYTES
from folkmoot.core import errors as e
from folkmoot.ratelimits import DAY, HOUR, MINUTE, Limit
from folkmoot.settings import Settings, load
from folkmoot.settings.limits import MAX_NODE_MESSAGE_BYTES
from tests.settings.conftest import cases


def settings(**variables: str) -> Settings:
    environ = {f"FOLKMOOT_{name}": value for name, value in variables.items()}
    return load(environ=environ).settings


@pytest.mark.requirement("auth.registration-open")
@pytest.mark.parametrize(
    ("host", "public_url", "policy"),
    [
        ("127.0.0.1", "", "open"),
        ("localhost", "", "open"),
        ("::1", "", "open"),
        ("127.0.0.1", "https://hub.example", "invite"),
        ("0.0.0.0", "", "invite"),
        ("::", "", "invite"),
        ("hub.example", "", "invite"),
    ],
)
def test_registration_is_open_on_this_machine_alone(host, public_url, policy):
    made = settings(HOST=host, PUBLIC_URL=public_url)
    assert (made.registration, made.registration_policy) == ("auto", policy)
    for chosen in ("open", "invite", "closed"):
        made = settings(HOST=host, PUBLIC_URL=public_url, REGISTRATION=chosen)
        assert made.registration_policy == chosen


@pytest.mark.requirement("rate.configurable")
def test_the_limits_are_the_specifications_unless_told():
    limits = rate_limits(settings())
    assert {name: replace(limit, setting="") for name, limit in limits.items()} == {
        "register": Limit(5, HOUR),
        "refused_handles": Limit(20, HOUR),
        "recover": Limit(5, HOUR),
        "recover_address": Limit(20, HOUR),
        "recover_handle": Limit(1_000, DAY, slows=True),
        "sign_in": Limit(20, HOUR),
        "missed_handles": Limit(100, HOUR),
        "send": Limit(60, MINUTE),
        "search": Limit(30, MINUTE),
        "invite": Limit(10, DAY),
        "export": Limit(10, HOUR),
        "guest": Limit(20, HOUR),
        "device": Limit(100, HOUR),
    }
    changed = settings(RATES_SEND_PER_MINUTE="7")
    assert rate_limits(changed)["send"] == Limit(7, MINUTE, setting="rates.send_per_minute")
    assert rate_limits(settings(RATE_LIMITS="off")) == {}


MEANINGLESS = {
    "REGISTRATION": ["maybe"],
    "RATE_LIMITS": ["sometimes"],
    "RATES_SEND_PER_MINUTE": ["0"],
    "MCP_NAMES": ["kebab"],
    "HTTP_TRUSTED_PROXIES": ["proxy.example", "10.0.0.1/8"],
    "HTTP_ALLOWED_ORIGINS": ["a.example", "https://a.example/", "https://A.example", "*", "null"],
}


@pytest.mark.parametrize(("variable", "value"), cases(MEANINGLESS))
def test_a_value_that_means_nothing_is_refused(variable, value):
    with pytest.raises(e.SettingsError, match=f"FOLKMOOT_{variable} must be"):
        settings(**{variable: value})


def test_lists_are_read_from_the_environment():
    made = settings(
        HTTP_TRUSTED_PROXIES="10.0.0.0/8, ::1, 192.0.2.7",
        HTTP_ALLOWED_ORIGINS="https://app.example, http://localhost:5173",
    )
    assert made.http.trusted_proxies == ("10.0.0.0/8", "::1", "192.0.2.7")
    assert made.http.allowed_origins == ("https://app.example", "http://localhost:5173")


NODES = {"BUS_URL": "nats://n", "STORE_URL": "postgresql://db", "CLUSTER_ADDRESS": "http://n"}
TOO_LARGE = "limits.message_bytes must be at most 4194304 with bus.url: nodes carry no larger"
UNSENT = "limits.unsent_bytes must be at least limits.message_bytes"
ADDRESS, STORE = {"CLUSTER_ADDRESS": "http://n"}, {"STORE_URL": "postgresql://db"}
OIDC = "SIGN_IN_OIDC"
LARGE = {**NODES, "LIMITS_UNSENT_BYTES": "9000000", "LIMITS_MESSAGE_BYTES": "4194305"}


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({"TLS_CERTIFICATE": "a.pem"}, "tls.certificate needs tls.key beside it"),
        ({"TLS_KEY": "a.pem"}, "tls.key needs tls.certificate beside it"),
        ({"LIMITS_MESSAGE_BYTES": "8000000"}, UNSENT),
        ({"LIMITS_UNSENT_BYTES": "70000"}, UNSENT),
        ({**ADDRESS, "BUS_URL": "nats://n"}, "bus.url needs store.url: nodes share one database"),
        ({**STORE, "BUS_URL": "nats://n"}, "bus.url needs cluster.address, where other nodes"),
        (LARGE, TOO_LARGE),
        ({f"{OIDC}_ISSUER": "https://i"}, "sign_in.oidc.issuer needs sign_in.oidc.client_id"),
        (
            {f"{OIDC}_CLIENT_ID": "hub", f"{OIDC}_ISSUER": "http://192.0.2.7"},
            "sign_in.oidc.issuer must be https unless on this machine",
        ),
        (
            {
                "PUBLIC_URL": "https://h/moot",
                f"{OIDC}_CLIENT_ID": "hub",
                f"{OIDC}_ISSUER": "https://i",
            },
            "sign_in.oidc.issuer needs a public_url without a path",
        ),
    ],
)
def test_values_that_do_not_go_together_are_refused_at_the_last_of_them(variables, told):
    with pytest.raises(e.SettingsError) as refused:
        settings(**variables)
    assert refused.value.message.startswith(f"FOLKMOOT_{list(variables)[-1]}: {told}")


def test_values_that_go_together_are_taken():
    made = settings(TLS_CERTIFICATE="a.pem", TLS_KEY="b.pem", LIMITS_UNSENT_BYTES="1048576")
    assert (made.tls.certificate, made.tls.key) == ("a.pem", "b.pem")
    assert settings(**NODES, LIMITS_MESSAGE_BYTES="4194304").limits.message_bytes == 4_194_304


def test_two_of_the_largest_messages_of_several_nodes_may_be_on_their_way_between_them():
    # What the room adds to each is little beside a third one.
    assert 3 * MAX_NODE_MESSAGE_BYTES <= MAX_UNRECEIVED_BYTES
    assert 2 * MAX_NODE_MESSAGE_BYTES <= MAX_SENT_BYTES
