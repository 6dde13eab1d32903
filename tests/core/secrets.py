"""A secret for each row of the table of redaction: what is written, and what must not be seen."""

from __future__ import annotations

SECRET = "correct-horse"
LETTERS = "q3yt9zkm0pqrstuvwxy7abcd2efgh4jk"
KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAK\n-----END RSA PRIVATE KEY-----"
JWT = f"eyJhbGciOiJI.eyJzdWIiOiIx.{LETTERS}"
QUERY = "https://store.example/a?page=2&sig="


def _alone(secret: str) -> tuple[str, str]:
    return f"it was {secret} then", secret


EXAMPLES: dict[str, tuple[str, str]] = {
    "Folkmoot token": _alone("sk_" + "0a1b2c3d" * 8),
    "recovery code": _alone("AB3K-9TW2-HNPQ"),
    "password in a URL": (f"redis://user:{SECRET}@cache:6379/0", SECRET),
    "invite": (f"GET /invite/{LETTERS}", LETTERS),
    "JSON Web Token": _alone(JWT),
    "private key": _alone(KEY),
    "OpenAI or Anthropic key": _alone(f"sk-proj-{LETTERS}"),
    "Stripe key": _alone(f"rk_live_{LETTERS}"),
    "GitHub token": _alone(f"ghp_{LETTERS}"),
    "GitHub fine-grained token": _alone(f"github_pat_{LETTERS}"),
    "GitLab token": _alone(f"glpat-{LETTERS}"),
    "Slack token": _alone(f"xoxb-{LETTERS}"),
    "Slack app token": _alone(f"xapp-{LETTERS}"),
    "AWS access key": _alone("AKIA" + "Q3YT9ZKM0PQRSTUV"),
    "Google API key": _alone(f"AIza{LETTERS}"),
    "Google access token": _alone(f"ya29.{LETTERS}"),
    "npm token": _alone(f"npm_{LETTERS}"),
    "Hugging Face token": _alone(f"hf_{LETTERS}"),
    "PyPI token": _alone(f"pypi-{LETTERS}"),
    "token as the user of a URL": (f"https://{LETTERS}@git.example/a.git", LETTERS),
    "key in a URL's query": (f"{QUERY}{SECRET}", SECRET),
    "header with its value": (f"Authorization: Basic {SECRET}", SECRET),
    "secret behind its name": (f"the api_key={SECRET} was refused", SECRET),
    "bearer token": (f"tried bearer {LETTERS} twice", LETTERS),
    "option of a command": (f"ran serve --token {SECRET} twice", SECRET),
    "element of XML": (f"<a><Password>{SECRET}</Password></a>", SECRET),
}
