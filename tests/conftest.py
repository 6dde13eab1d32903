"""For every test: its own user folders, the Hypothesis profile, the check of requirement marks.

With `-n` the tests run in several processes.
"""

from __future__ import annotations

import os
import signal
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

from tests.interaction.manifest import ManifestError, load
from tests.interaction.marks import COLLECTED, Collected, MarkError, check_marks, why_partial
from tests.workers import Workers

CORE = Path(__file__).parent / "core"
PROFILE_VARIABLE = "FOLKMOOT_TEST_PROFILE"

# The everyday profile tries the same examples in every run, so that a red run can be repeated;
# the deep one looks for new ones and prints how to repeat what it found.
PROFILES = {
    "default": settings(max_examples=20, deadline=None, database=None, derandomize=True),
    "deep": settings(max_examples=2000, deadline=None, database=None, print_blob=True),
}
for _name, _profile in PROFILES.items():
    settings.register_profile(_name, _profile)


def pytest_addoption(parser: pytest.Parser) -> None:
    # Only this way may an option be a small letter.
    parser.getgroup("folkmoot")._addoption(
        "-n",
        type=int,
        default=0,
        dest="workers",
        metavar="WORKERS",
        help="Run this many at a time.",
    )


def pytest_configure(config: pytest.Config) -> None:
    name = os.environ.get(PROFILE_VARIABLE, "default")
    if name not in PROFILES:
        raise pytest.UsageError(f"{PROFILE_VARIABLE} is {name!r}; use {' or '.join(PROFILES)}.")
    settings.load_profile(name)
    # A shell that starts the suite in the background has it ignore what Ctrl-C sends, and what the
    # suite starts would ignore it too.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    leave_the_users_folders(config)
    if config.option.workers:
        config.pluginmanager.register(Workers(config.option.workers))


def leave_the_users_folders(config: pytest.Config) -> None:
    """Let no test see the accounts and keys of whoever runs it; workers inherit the variables."""
    folder = tempfile.TemporaryDirectory(prefix="folkmoot-tests-")
    config.add_cleanup(folder.cleanup)
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        os.environ[name] = str(Path(folder.name) / name.lower())


@pytest.hookimpl(tryfirst=True)  # before -m and -k take tests away
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    try:
        proved = check_marks(items, load())
    except (ManifestError, MarkError) as error:
        raise pytest.UsageError(str(error)) from error
    config.stash[COLLECTED] = Collected(proved, why_partial(config))
    for item in items:
        if item.path.is_relative_to(CORE):
            item.add_marker("core")
