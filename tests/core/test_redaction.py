"""The table of what secrets are called and look like, and an example of each of its rows."""

from __future__ import annotations

import pytest

from folkmoot.core.redaction import (
    FORMS,
    HEX_TOKENS,
    LAST_WORDS,
    NAMED_FORMS,
    NAMES,
    QUERY_NAMES,
    TOKENS,
    are_secrets,
    is_secret_header,
    is_secret_name,
    is_secret_option,
    is_secret_parameter,
    kind_of,
    may_hold_secret,
    prepare,
    sounds_secret,
)
from tests.core.secrets import EXAMPLES, SECRET


def test_every_row_of_the_table_has_an_example():
    assert {form.name for form in (*FORMS, *NAMED_FORMS)} == EXAMPLES.keys()


@pytest.mark.parametrize("row", EXAMPLES)
def test_an_example_is_found_by_its_row_and_suspicious_at_a_glance(row):
    text, secret = EXAMPLES[row]
    forms = [form for form in (*FORMS, *NAMED_FORMS) if form.name == row]
    for form in forms:
        assert may_hold_secret(text.lower())
        if form.hints[0] == "%":
            continue
        assert any(hint in text.lower() for hint in form.hints)
        found = form.pattern.search(text)
        assert secret in found[0]
        assert form.first is None or form.first.search(text)


@pytest.mark.parametrize("start", [*TOKENS, *HEX_TOKENS])
def test_each_sort_of_token_is_found_plain_spelled_or_inside_a_word(start):
    body = "0a1b2c3d" * 8
    plain, spelled = f"it was {start}{body} then", f"it was %{ord(start[0]):x}{start[1:]}{body}"
    for text in (plain, f"x{start}{body}", spelled):
        assert may_hold_secret(text)
        forms = [form for form in FORMS if any(hint in text for hint in form.hints)]
        assert any(body in found[0] for form in forms if (found := form.pattern.search(text)))
    assert kind_of(start + body) == "token"


@pytest.mark.parametrize(
    "name",
    [
        *NAMES,
        *LAST_WORDS,
        *("DB_PASS", "smtp-pass", "user.otp", "SENTRY_DSN", "newToken", "FOLKMOOT_MASTER-KEY"),
        *("inProgressToken", "pass_word"),
    ],
)
def test_names_of_secrets_are_known_in_any_spelling(name):
    assert is_secret_name(name)
    assert is_secret_name(name.replace("_", "-"))
    assert sounds_secret(name)
    assert is_secret_header(name.lower())
    assert is_secret_parameter(name)


@pytest.mark.parametrize(
    "name",
    [
        *("max_tokens", "token_count", "code", "key", "monkey", "author", "compass", "passage"),
        *("pass_rate", "auth_method", "progressToken", "progress_token", "to_ken", 'api"key'),
        *("PWD", "OLDPWD"),
    ],
)
def test_other_names_are_no_secrets(name):
    assert not is_secret_name(name)


@pytest.mark.parametrize("name", ["X-Key-Id", "GITHUB_TOKEN_2", "x-auth-user", "Authorisation"])
def test_what_only_sounds_like_a_secret_is_hidden_as_a_header_or_a_variable(name):
    assert sounds_secret(name)
    assert is_secret_header(name.lower())


@pytest.mark.parametrize("name", ["GIT_AUTHOR_NAME", "content-type", "Authority", "PWD", "HOME"])
def test_what_does_not_is_shown(name):
    assert not sounds_secret(name)


@pytest.mark.parametrize("name", ["smtpPass", "userOTP", "DBPass", "basicAuth", "dbpass"])
def test_capital_letters_begin_a_word_of_a_name(name):
    assert is_secret_name(name)


def test_headers_that_only_speak_of_secrets_are_shown():
    assert not is_secret_header("www-authenticate")
    assert is_secret_header("authorization")


def test_several_secrets_parameters_and_options_are_known():
    assert are_secrets("apiKeys")
    assert not are_secrets("apiKey")
    assert all(map(is_secret_parameter, QUERY_NAMES))
    assert not is_secret_parameter("page")
    assert is_secret_option("--api-key")
    assert is_secret_option("-pass")
    assert not is_secret_option("--keyword")
    assert not is_secret_option("token")


def test_a_placeholder_says_what_kind_of_secret_it_was():
    kinds = {name: kind_of(secret) for name, (_, secret) in EXAMPLES.items()}
    assert kinds["Folkmoot token"] == kinds["GitHub token"] == "token"
    assert kinds["recovery code"] == "code"
    assert kinds["JSON Web Token"] == "jwt"
    assert kinds["private key"] == "key"
    assert kind_of(SECRET) == "secret"


def test_a_token_is_suspicious_unless_it_is_that_of_progress():
    word = "progress"
    assert not may_hold_secret(f'{{"{word}Token": 1, "{word.upper()}TOKEN": 2}}')
    for length in range(len(word)):
        end = word[len(word) - length :]
        assert may_hold_secret(f"{end}token")
        assert may_hold_secret(f" x{end}Token")
    assert may_hold_secret(f"{word}token and a token")


def test_a_program_can_compile_every_pattern_before_it_is_needed():
    prepare()
    assert all("pattern" in vars(form) for form in (*FORMS, *NAMED_FORMS))


def test_what_is_no_text_is_suspicious():
    assert may_hold_secret("half of a pair: \ud800")


def test_ordinary_text_is_not_suspicious():
    for text in (
        "request method=get path=/health status=200 ms=1.2 id=955717734b1e9397",
        "created_at_ and start_at_2026 in rt_total, ac_power and dc_current",
        "job_cancelled while mail_controller ran at 2026-11-15t02:12:14.916z",
        "http://127.0.0.1:8420/path and http://hub:80 asked by a@b, 5% of 100%",
        '{"key": "b", "progresstoken": 3}',
    ):
        assert not may_hold_secret(text)
