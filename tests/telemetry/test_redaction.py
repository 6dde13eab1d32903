from __future__ import annotations

import json
import time
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.core.redaction import is_secret_name
from folkmoot.telemetry.redaction import (
    IN_JSON,
    LONGEST_HARMLESS,
    MASK,
    MOST,
    MOST_HARMLESS,
    MOST_KEPT,
    Redactor,
)

TOKEN = "sk_" + "0a1b2c3d" * 8
HEX = TOKEN[3:]
CODE = "AB3K-9TW2-HNPQ"


def every_char_escaped(text: str, spell: str) -> str:
    return "".join(spell.format(ord(char)) for char in text)


INVITE = "q3Yt-_9ZkLm0PqRsTuVwXy"
# What must not be seen, and the texts that it stands in.
SURVIVORS = {
    HEX: [
        TOKEN, f"before{TOKEN}after", f"POST /mcp?names=safe&token={TOKEN}", "%73k_" + HEX,
        "sk%5F" + HEX, "%2573k%255f" + HEX, "sk\\u005f" + HEX, "\\\\u0073k_" + HEX, "gi_" + HEX,
        f"/ws?room=plaza&token=gk_{HEX}&after=7", "%67i%5f" + HEX, "gk\\u005f" + HEX, "bs_" + HEX,
        "%6fc%5f" + HEX, f"jobs_{HEX}",
    ],
    "hunter2": [
        "token=hunter2", "redis://user:hunter2@cache:6379/0", "proxy http://:hunter2@proxy.example",
        r'in {"url": "redis:\/\/user:hunter2@cache:6379\/0"', r"redis:\\/\\/user:hunter2@cache",
        r"redis:/\/user:hunter2@cache", "t%6Fken=hunter2", "%74%6F%6b%65%6e%253dhunter2",
        "recovery%5Fcode=hunter2", "new_token=hunter2 accessToken=x", "x-api-key: hunter2",
        "DB_PASS=hunter2", "smtpPass: hunter2", "p%61ss=hunter2",
    ],
    "two words": [
        '{"token": "two words"}', "{'token': 'two words'}", '{"t\\u006fken": "two words"}',
        '{"credential": "two words"}',
    ],
    "inner": [
        json.dumps(json.dumps({"token": "inner"})),
        json.dumps(json.dumps(json.dumps({"recovery_code": "inner"}))),
    ],
    "abc.def": [
        "Authorization: Bearer abc.def", "auth: Bearer abc.def",
        "[(b'authorization', b'Bearer abc.def'), (b'host', b'x')]",
    ],
    "c2VjcmV0": ["FOLKMOOT_MASTER_KEY=c2VjcmV0", "master_key: 'c2VjcmV0'"],
    "dXNlcg": ["Proxy-Authorization: Basic dXNlcg", "authorization=Basic dXNlcg"],
    CODE: [CODE, f"x{CODE}y"],
    CODE.lower(): [CODE.lower(), "line\\n" + CODE.lower()],
    INVITE: [f"/invite/{INVITE}", rf"GET \/invite\/{INVITE}", quote(f"/invite/{INVITE}", safe="")],
    every_char_escaped(HEX, "%{:02x}"): [every_char_escaped(TOKEN, "%{:02x}")],
    every_char_escaped(HEX, "\\u{:04x}"): [every_char_escaped(TOKEN, "\\u{:04x}")],
    "12345678": ["sk_12345678"],
    "NotHexAtAll99": ["sk_NotHexAtAll99"],
    "short": ["/mcp?token=short&x=1"],
    "feed": ['Authorization: Digest username="u", response="feed"'],
    "abc": ["Cookie: session=abc; theme=dark"],
    "abcdefgh12345": ["tried bearer abcdefgh12345"],
    "9TW2": [CODE.replace("-", "%2D")],
    "ab3k9tw2hnpq": ["recovery_code=ab3k9tw2hnpq"],
    "%31%32": ["sk_" + HEX[:10] + "%31%32%33%34"],
    "ter2": ["postgres://user:hun@ter2@db"],
    "er2": ["redis://user:hunt\ufeffer2@cache"],
    "à2": ["redis://user:huntà2@cache"],
}  # fmt: skip


@pytest.mark.parametrize(("secret", "text"), [(s, it) for s in SURVIVORS for it in SURVIVORS[s]])
def test_a_secret_does_not_survive(secret, text):
    masked = Redactor().redact(text)
    assert secret not in masked
    assert MASK in masked


@pytest.mark.parametrize(
    "text",
    [
        "request method=GET path=/health status=200 ms=1.2 id=955717734b1e9397",
        "the token expired and its keeper was told",
        "task_cancelled while disk_controller and risk_assessment ran",
        "id 6ba7b810-9dad-11d1-80b4-00c04fd430c8 at 2026-11-15T02:12:14.916Z",
        "room folkmoot://rooms/plaza-2026-spring opened",
        "max_tokens=500, tokens: 12",
        "docs_20261117 and jobs_20261117 of topic_0123456789abcdef, 5% of them",
        "3 pass, 2 fail; author: ann; compass=north; bypass: no",
        "/invites and /invite are not codes",
        "http://127.0.0.1:8420/path and http://hub:80 asked by a@b",
        "http://hub:8420?by=a@b 100%25 of 5%20",
        "the magi_of_persia kept regi_ster and credentials.json",
    ],
)
def test_ordinary_text_is_left_alone(text):
    assert Redactor().redact(text) == text


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (f"GET /mcp?token={TOKEN}&names=safe", f"GET /mcp?token={MASK}&names=safe"),
        ('{"token": "x", "handle": "ann"}', f'{{"token": "{MASK}", "handle": "ann"}}'),
        ("GET /invite/abc123/accept", f"GET /invite/{MASK}/accept"),
        (f"Authorization: Bearer x, {CODE}", f"Authorization: {MASK}"),
    ],
)
def test_what_stands_beside_a_secret_stays_readable_and_masking_twice_changes_nothing(text, masked):
    redact = Redactor().redact
    assert redact(text) == redact(redact(text)) == masked


def test_a_value_that_was_named_once_is_hidden_from_then_on():
    redactor = Redactor()
    said = "it was correct horse battery!"
    assert redactor.redact(said) == said
    redactor.hide("correct horse battery", "short")
    assert redactor.redact(said) == f"it was {MASK}!"
    assert redactor.redact("a short story") == "a short story"


def test_values_are_bounded_and_the_first_are_never_dropped():
    secrets = [f"a/secret of {number:04}" for number in range(MOST + 100)]
    redactor = Redactor(["the/master key"])
    redactor.hide(*secrets[: MOST - 1])
    # However many spellings they have, so many fit.
    assert all(redactor.redact(each) == MASK for each in secrets[: MOST - 1])
    redactor.hide(*secrets[MOST - 1 :])
    assert redactor.redact("the/master key, the%2Fmaster+key") == f"{MASK}, {MASK}"
    shown = [each for each in secrets if redactor.redact(each) != MASK]
    assert shown == secrets[MOST_KEPT - 1 :][:101]


@pytest.mark.parametrize("value", ['ab/c"d é+% \\x', "pässwörter"])
def test_a_value_is_hidden_however_it_is_spelled(value):
    redactor = Redactor()
    redactor.hide(value)
    in_json = json.dumps(value)[1:-1]
    as_text = json.dumps(value, ensure_ascii=False)[1:-1]
    for spelled in (
        value, in_json, in_json.replace("/", r"\/"), as_text, quote(value),
        quote(value, safe="").lower(), quote_plus(value), repr(value)[1:-1],
    ):  # fmt: skip
        assert redactor.redact(f"<{spelled}>") == f"<{MASK}>", spelled


def test_forms_are_masked_in_json_without_breaking_it():
    line = json.dumps({"a": f'say "{TOKEN}"', "b": [CODE, "sk\\u005f" + HEX], "c": "/invite/abc"})
    masked = Redactor().redact_forms(line)
    assert HEX not in masked
    assert json.loads(masked) == {"a": f'say "{MASK}"', "b": [MASK, MASK], "c": f"/invite/{MASK}"}


SECRETS = """
token Authorization recovery-code MASTER_KEY cookie Set-Cookie new_token accessToken apiKey
x-api-key recoveryCode FOLKMOOT_MASTER_KEY db.password credential
"""


def test_names_of_secrets_are_known_in_any_spelling():
    assert [name for name in SECRETS.split() if not is_secret_name(name)] == []
    others = ("max_tokens", "token_count", "code", "key", "monkey", "path", "")
    assert [name for name in others if is_secret_name(name)] == []


HOSTILE = [
    "\\" * 20_000, "%" * 20_000, "%25" * 7_000, "token" + " " * 20_000, "token" * 4_000,
    "ABCD-" * 4_000, "sk_" * 7_000, "/invite" * 3_000, "authorization'" * 2_000,
    '"token": "' + "\\" * 20_000, "%74" * 7_000, "\\u0074" * 4_000, "://a:" * 5_000,
    "://a:" + "a" * 20_000, "eyJ" * 7_000, "eyJ" + "-eyJaaaaaaaa" * 1_600,
    "-----BEGIN PRIVATE KEY-----" * 800, "<token " * 3_000, "--token " * 3_000, "?key=" * 5_000,
    "://" + "a" * 20_000,
]  # fmt: skip


@pytest.mark.parametrize("hostile", HOSTILE)
def test_no_text_makes_masking_slow(hostile):
    started = time.process_time()
    Redactor().redact(hostile)
    assert time.process_time() - started < 1.0


def test_no_more_texts_are_remembered_than_are_kept():
    redactor = Redactor()
    for number in range(2 * MOST_HARMLESS):
        redactor.redact(f"text {number}")
    redactor.redact("long " * LONGEST_HARMLESS)
    assert 0 < len(redactor.harmless) <= MOST_HARMLESS
    assert all(len(text) <= LONGEST_HARMLESS for text in redactor.harmless)


@given(st.lists(st.sampled_from(["AB2", "ab2", "K9", "01", "-", "-", " ", "\\n", "_", "%2d"])))
def test_codes_are_found_wherever_they_could_be(parts):
    text = "".join(parts)
    for form in IN_JSON:
        if form.first is not None and not any(hint in text for hint in ("%", "\\u")):
            assert bool(form.first.search(text)) is bool(form.pattern.search(text))
