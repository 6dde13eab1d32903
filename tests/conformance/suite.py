"""One run of the conformance suite against a hub, and what came of it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.conformance.node import Node
from tests.process import STOP_SECONDS, environment

# The revisions of MCP, and how many scenarios each scores for a server.
REVISIONS = {"2025-11-25": 30, "2026-07-28": 37}
# How many checks hold in the scenarios of tasks, which are not scored.
TASK_CHECKS = {"2025-11-25": 0, "2026-07-28": 44}

# The scenarios for clients that are not about authorization, by revision.
CLIENT_SCENARIOS = {
    "2025-11-25": (
        "initialize",
        "tools_call",
        "elicitation-sep1034-client-defaults",
        "sse-retry",
        "json-schema-2020-12-preservation",
    ),
    "2026-07-28": (
        "tools_call",
        "request-metadata",
        "sep-2322-client-request-state",
        "http-standard-headers",
        "http-custom-headers",
        "http-invalid-tool-headers",
        "json-schema-ref-no-deref",
        "json-schema-2020-12-preservation",
    ),
}
_AUTH = (
    *("metadata-default", "metadata-var1", "metadata-var2", "metadata-var3", "basic-cimd"),
    *("scope-from-www-authenticate", "scope-from-scopes-supported"),
    *("scope-omitted-when-undefined", "scope-step-up", "scope-retry-limit"),
    *("token-endpoint-auth-basic", "token-endpoint-auth-post", "token-endpoint-auth-none"),
    "pre-registration",
)
_LATER = (
    *("resource-mismatch", "offline-access-scope", "offline-access-not-supported"),
    *("authorization-server-migration", "iss-supported", "iss-not-advertised"),
    *("iss-supported-missing", "iss-wrong-issuer", "iss-unexpected", "iss-normalized"),
    "metadata-issuer-mismatch",
)
# The scored scenarios for clients that are about authorization, by revision.
AUTH_SCENARIOS = {"2025-11-25": _AUTH, "2026-07-28": (*_AUTH, *_LATER)}
# Scenarios whose server asks its client something, which `folkmoot call` has nobody to ask.
NEED_ANSWERS = frozenset({"elicitation-sep1034-client-defaults", "sep-2322-client-request-state"})
# How the suite's server is used: behind a hub, and with `folkmoot call`.
WAYS = ("gateway", "call")

PROGRAM = Path("@modelcontextprotocol/conformance/dist/index.js")
RUN_SECONDS = 180
ROOT = Path(__file__).parents[2]

SUMMARY = re.compile(
    r"^[✓✗] (?P<name>[\w/.-]+): (?P<passed>\d+) passed, (?P<failed>\d+) failed", re.MULTILINE
)
NOT_SCORED = re.compile(r"^\s+[✓✗] (?P<name>[\w/.-]+) \((?P<why>[\w-]+)\)", re.MULTILINE)


class Scenario(NamedTuple):
    """One scenario: how many of its checks held, and what the others said."""

    name: str
    # Why it does not count; empty when it does.
    not_scored: str
    passed: int
    failed: int
    # What failed, and what the suite warns of.
    said: tuple[str, ...]


class Outcome(NamedTuple):
    """A run."""

    revision: str
    exit_code: int
    scenarios: tuple[Scenario, ...]
    output: str

    @property
    def scored(self) -> list[Scenario]:
        """The scenarios that the revision demands."""
        return [each for each in self.scenarios if not each.not_scored]

    @property
    def failing(self) -> list[Scenario]:
        """The scored scenarios that failed or were not tested at all."""
        return [each for each in self.scored if each.failed or not each.passed]

    @property
    def task_checks(self) -> tuple[int, int]:
        """How many checks of the scenarios of tasks held, and how many did not."""
        found = [each for each in self.scenarios if each.name.startswith("tasks-")]
        return sum(each.passed for each in found), sum(each.failed for each in found)

    @property
    def conforms(self) -> bool:
        """Whether the whole of what the revision demands ran and passed."""
        whole = len(self.scored) == REVISIONS[self.revision]
        return self.exit_code == 0 and whole and not self.failing


@contextmanager
def hub(folder: Path) -> Iterator[str]:
    """A hub in a process of its own with the fixtures on it; the URL of an account there."""
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.conformance.serve", str(folder)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(),
        text=True,
    )
    assert child.stdin
    assert child.stdout
    try:
        url = child.stdout.readline().strip()
        assert url, "the hub did not start"
        yield url
        child.stdin.close()
        assert child.wait(STOP_SECONDS) == 0
    finally:
        child.kill()
        child.wait()
        child.stdin.close()
        child.stdout.close()


def run(node: Node, *words: str) -> subprocess.CompletedProcess[str]:
    """The suite's program, to its end."""
    return subprocess.run(
        [node.binary, str(node.modules / PROGRAM), *words],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS,
        check=False,
    )


def run_suite(node: Node, url: str, revision: str, results: Path) -> Outcome:
    """Everything the suite has for servers of a revision, at that revision's wire."""
    wanted = ("--requirements", revision, "--output-dir", str(results))
    done = run(node, "server", "--url", url, *wanted)
    output = (done.stdout + done.stderr).replace(url, "URL")
    unscored = {each["name"]: each["why"] for each in NOT_SCORED.finditer(output)}
    scenarios = tuple(
        Scenario(
            each["name"],
            unscored.get(each["name"], ""),
            int(each["passed"]),
            int(each["failed"]),
            tuple(complaints(results, each["name"])),
        )
        for each in SUMMARY.finditer(output)
    )
    return Outcome(revision, done.returncode, scenarios, output)


def client_runs(way: str) -> list[tuple[str, str]]:
    """The revision and name of each scenario that is tried in one way."""
    return [
        (revision, name)
        for revision, names in CLIENT_SCENARIOS.items()
        for name in names
        if way == "gateway" or name not in NEED_ANSWERS
    ]


def run_client(
    node: Node, way: str, revision: str, scenario: str
) -> subprocess.CompletedProcess[str]:
    """One scenario of the suite for clients; its exit code is 0 if all of it passed."""
    drive = f"{sys.executable} -m tests.conformance.drive {way}"
    tried = ("--scenario", scenario, "--spec-version", revision, "--timeout", "170000")
    return run(node, "client", "--command", drive, *tried)


def complaints(results: Path, scenario: str) -> Iterator[str]:
    """What the checks of a scenario say that did not hold."""
    for path in results.glob(f"server-{scenario}-2*/checks.json"):
        for check in json.loads(path.read_text()):
            if check["status"] in {"FAILURE", "WARNING"}:
                yield f"{check['status'].lower()}: {check['id']}: {check.get('errorMessage', '')}"
