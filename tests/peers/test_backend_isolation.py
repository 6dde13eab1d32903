"""Backends that run as another user or in a sandbox: what is the hub's is not theirs to read."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from mcp import Client

from folkmoot.core import errors as e
from folkmoot.relay.upstream import isolation
from folkmoot.relay.upstream.isolation import isolated
from folkmoot.settings.backends import BackendSpec, SecretReference
from tests.mcp_harness import until
from tests.peers.gateway import fronted, guest, token_of

PYTHON = shutil.which("python3", path="/usr/local/bin:/usr/bin:/bin") or ""
SOMEONE = "nobody"
PROBE = r"""
import json, os, socket, sys

def tried(act):
    try:
        return act()
    except OSError as error:
        return error.strerror

def look(path):
    if os.path.isdir(path):
        return tried(lambda: sorted(os.listdir(path)))
    return tried(lambda: open(path, "rb").read(64).decode("latin-1"))

def write(path):
    return tried(lambda: open(path, "w").write("written") and "written")

def dial(port):
    return tried(lambda: socket.create_connection(("127.0.0.1", port), 5) and "reached")

def who(_):
    return [os.getuid(), os.getgid(), os.getgroups(), os.getcwd(), dict(os.environ)]

DOES = {"look": look, "write": write, "dial": dial, "who": who}
for line in sys.stdin:
    asked = json.loads(line)
    method, params = asked.get("method"), asked.get("params", {})
    if method == "initialize":
        told = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "probe", "version": "1"}}
    elif method == "tools/list":
        told = {"tools": [{"name": n, "inputSchema": {"type": "object"}} for n in DOES]}
    elif method == "tools/call":
        said = json.dumps(DOES[params["name"]](params["arguments"].get("about")))
        told = {"content": [{"type": "text", "text": said}]}
    else:
        told = None
    if "id" not in asked:
        continue
    answer = {"error": {"code": -32601, "message": "Method not found"}}
    answer = answer if told is None else {"result": told}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}), flush=True)
"""

needs_python = pytest.mark.skipif(not PYTHON, reason="the system has no python3 that all may run")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root starts programs as others")


def bwrap_fault() -> str:
    """Why no sandbox can be made here; empty when one can."""
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed"
    trying = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "true"]
    ran = subprocess.run(trying, capture_output=True, timeout=30, check=False)
    return "" if ran.returncode == 0 else f"bwrap cannot run here: {ran.stderr.decode()[:200]}"


NO_BWRAP = bwrap_fault()
needs_bwrap = pytest.mark.skipif(bool(NO_BWRAP), reason=NO_BWRAP or "it works")


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that everyone may enter, unlike those of pytest."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "plain.txt").write_text("for everyone")
        (folder / "plain.txt").chmod(0o644)
        yield folder


def probe(**more: Any) -> BackendSpec:
    return BackendSpec(
        name="probe",
        namespace="probe",
        command=(PYTHON, "-I", "-S", "-c", PROBE),
        everyone=True,
        connect_seconds=30,
        **more,
    )


async def said(client: Client, tool: str, about: Any = None) -> Any:
    return json.loads((await client.call_tool(f"probe_{tool}", {"about": about})).content[0].text)


def files_of(folder: Path) -> list[Path]:
    return [folder / "master.key", folder / "folkmoot.db", folder / "folkmoot.db-wal"]


@needs_root
@needs_python
async def test_a_backend_that_runs_as_another_user_cannot_read_the_key_and_the_database(
    place, monkeypatch
):
    monkeypatch.setenv("PROBE_TOKEN", "for the probe")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/root/.config")
    spec = probe(user=SOMEONE, env={"TOKEN": SecretReference(env="PROBE_TOKEN")})
    async with fronted(place / "hub", spec) as there:
        assert all(file.exists() for file in files_of(place / "hub")[:2])
        async with guest(there, await token_of(there, "ann")) as client:
            for file in files_of(place / "hub"):
                assert await said(client, "look", str(file)) == "Permission denied"
            assert await said(client, "look", str(place / "hub")) == "Permission denied"
            assert await said(client, "look", str(place / "plain.txt")) == "for everyone"
            user, group, groups, _, env = await said(client, "who")
    who = pwd.getpwnam(SOMEONE)
    assert (user, group) == (who.pw_uid, who.pw_gid)
    assert sorted(groups) == sorted(os.getgrouplist(SOMEONE, who.pw_gid))
    assert (env["HOME"], env["USER"], env["TOKEN"]) == (who.pw_dir, SOMEONE, "for the probe")
    assert not {"PROBE_TOKEN", "XDG_CONFIG_HOME"} & env.keys()


@needs_bwrap
@needs_python
async def test_a_backend_in_a_sandbox_sees_nothing_of_the_hub_and_what_it_is_given(place):
    shared, kept = place / "shared", place / "kept"
    shared.mkdir()
    kept.mkdir()
    spec = probe(
        sandbox="bwrap",
        folders=(str(place), *python_folders()),
        writable_folders=(str(kept),),
        network=False,
    )
    async with fronted(place / "hub", spec) as there:
        assert all(file.exists() for file in files_of(place / "hub")[:2])
        async with guest(there, await token_of(there, "ann")) as client:
            # The folder around the hub's own is shown, and that is empty in it.
            assert await said(client, "look", str(place / "hub")) == []
            for file in files_of(place / "hub"):
                assert await said(client, "look", str(file)) == "No such file or directory"
            assert await said(client, "look", str(place / "plain.txt")) == "for everyone"
            for hidden in ("/etc/shadow", "/root/.profile", "/var/log"):
                assert await said(client, "look", hidden) == "No such file or directory"
            # A temporary folder of its own, a read-only system, and what it may write.
            assert await said(client, "write", "/tmp/mine") == "written"
            for closed in ("/usr/bin/mine", str(shared / "mine")):
                assert await said(client, "write", closed) == "Read-only file system"
            assert await said(client, "write", str(kept / "mine")) == "written"
            assert await said(client, "dial", urlsplit(there.url).port) != "reached"
            _, _, _, cwd, env = await said(client, "who")
            assert (cwd, env["HOME"]) == ("/tmp", "/tmp")
    assert (kept / "mine").read_text() == "written"
    assert not Path("/tmp/mine").exists()


@needs_bwrap
@needs_python
@pytest.mark.requirement("gateway.sandboxed-secrets")
async def test_a_sandbox_shows_no_folder_with_a_secret_file_of_the_hub(place):
    shown = place / "shown"
    shown.mkdir()
    # Of another server, and not there yet.
    token = shown / "deep" / "token"
    other = BackendSpec(
        name="other", namespace="other", url="http://127.0.0.1:9/mcp",
        headers={"Authorization": SecretReference(file=str(token))},
    )  # fmt: skip
    spec = probe(sandbox="bwrap", folders=(str(shown), *python_folders()))
    async with fronted(place / "hub", spec, other, reached=False) as there:

        def why() -> str:
            views = there.hub.behind.fleet.views()
            return next(view.why for view in views if view.namespace == "probe")

        await until(lambda: "cannot show" in why())
        assert f"cannot show {shown}: the hub's own file {token} is there" in why()


@needs_bwrap
@needs_python
async def test_a_sandbox_has_the_network_unless_it_is_taken(place):
    spec = probe(sandbox="bwrap", folders=tuple(python_folders()))
    async with (
        fronted(place / "hub", spec) as there,
        guest(there, await token_of(there, "ann")) as client,
    ):
        assert await said(client, "dial", urlsplit(there.url).port) == "reached"
        assert await said(client, "look", str(place / "plain.txt")) == "No such file or directory"


def python_folders() -> list[str]:
    """Where the system's Python is, if not among what a sandbox shows anyway."""
    real = Path(PYTHON).resolve()
    return [] if real.is_relative_to("/usr") else [str(real.parent.parent)]


def test_a_backend_that_cannot_be_isolated_is_not_started_and_says_why(place, monkeypatch):
    def told(**more: Any) -> str:
        spec = BackendSpec(name="x", namespace="xyz", **{"command": ("true",), **more})
        with pytest.raises(e.ServerUnreachable) as caught:
            isolated(spec, {"PATH": "/usr/bin:/bin"}, [str(place)])
        return caught.value.message

    assert told(user="no-such-user") == "The user no-such-user does not exist."
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    assert told(user="root").startswith("It cannot be run as root: only a hub that runs as root")
    monkeypatch.setattr(isolation.shutil, "which", lambda *_, **__: None)
    assert "bwrap is not found; install it" in told(sandbox="bwrap")
    monkeypatch.setattr(
        isolation.shutil, "which", lambda name, **_: f"/somewhere/{name}" if name else None
    )
    assert told(sandbox="bwrap", folders=("/no/such",)) == (
        "Its sandbox cannot show /no/such: there is no such folder."
    )
    assert told(sandbox="bwrap", folders=(str(place),)) == (
        f"Its sandbox cannot show {place}: the hub's own files are there."
    )
    link = place / "link"
    link.symlink_to(place / "plain.txt")
    assert "the hub's own files are there" in told(sandbox="bwrap", folders=(str(link),))
    assert told(sandbox="bwrap", command=("server",)) == (
        "server cannot be started: its sandbox does not show /somewhere/server; add the folder it "
        "needs to folders."
    )
