"""Installing as the page says: the wheel, pip, uv, the first run of `make serve`, the unit."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from folkmoot import __version__
from tests.docs.pages import ROOT, pages

PAGE = "docs/operations/installing.md"
WHEEL = f"folkmoot-{__version__}-py3-none-any.whl"
NO_INDEX = (
    "No matching distribution",
    "Could not find a version",
    "No solution found",
    "Failed to",
)


def shell(command: str, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-euc", command],
        cwd=cwd,
        # What is installed is hardly used, and to compile it takes half of the time.
        env={**os.environ, "PIP_NO_COMPILE": "1", **environ},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this project."""
    folder = tmp_path_factory.mktemp("dist")
    done = subprocess.run(
        [sys.executable, "-m", "flit_core.wheel", "--outdir", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder / WHEEL


def installed(done: subprocess.CompletedProcess[str]) -> None:
    """Skip where no package index can be had; otherwise it must have worked."""
    if done.returncode and any(words in done.stderr for words in NO_INDEX):
        pytest.skip(f"no package index: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_page_names_the_wheel_that_is_made(wheel: Path) -> None:
    assert wheel.is_file()
    text = pages()[PAGE].text
    assert set(re.findall(r"folkmoot-\d\S*?\.whl", text)) == {WHEEL}


@pytest.mark.long
@pytest.mark.timeout(900)
def test_pip_installs_the_wheel_as_the_page_says(wheel: Path, tmp_path: Path) -> None:
    (block,) = (b.text for b in pages()[PAGE].blocks if "pip install" in b.text)
    shutil.copy(wheel, tmp_path)
    commands = block.replace("/opt/folkmoot", str(tmp_path / "opt")).replace(
        "python3 -m venv", f"{sys.executable} -m venv"
    )
    done = shell(commands, tmp_path)
    installed(done)
    assert done.stdout.splitlines()[-1] == f"folkmoot {__version__}"
    # And over itself, as an upgrade does.
    pip = tmp_path / "opt/bin/pip"
    installed(shell(f"{pip} install --upgrade --force-reinstall --no-deps ./{WHEEL}", tmp_path))
    check = shell(f"{tmp_path}/opt/bin/folkmoot doctor --data new", tmp_path)
    assert "No problems found" in check.stdout, check.stdout + check.stderr


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "command",
    [
        f"uvx --from ./{WHEEL} folkmoot --version",
        f"uv tool install ./{WHEEL} && $HOME/.local/bin/folkmoot --version",
        f"pipx install ./{WHEEL} && $HOME/.local/bin/folkmoot --version",
    ],
    ids=["uvx", "uv tool", "pipx"],
)
def test_the_other_ways_of_the_page_work(command: str, wheel: Path, tmp_path: Path) -> None:
    program = command.split()[0]
    assert command.partition(" &&")[0].removesuffix(" --version") in pages()[PAGE].text
    if shutil.which(program) is None:
        pytest.skip(f"there is no {program} here")
    shutil.copy(wheel, tmp_path)
    cache = os.environ.get("UV_CACHE_DIR", str(Path("~/.cache/uv").expanduser()))
    done = shell(
        command, tmp_path, HOME=str(tmp_path), UV_CACHE_DIR=cache, UV_PYTHON=sys.executable
    )
    installed(done)
    assert done.stdout.splitlines()[-1] == f"folkmoot {__version__}"


def unit() -> str:
    (text,) = (block.text for block in pages()[PAGE].blocks if block.language == "ini")
    return text


def test_the_unit_fits_what_the_page_installs() -> None:
    command = re.search(r"^ExecStart=(\S+) serve --data (\S+)", unit(), re.MULTILINE)
    assert command is not None
    assert f"{command[1]} --version" in pages()[PAGE].text
    assert f"WorkingDirectory={command[2]}\n" in unit()
    assert f"--home-dir {command[2]}" in pages()[PAGE].text


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not here")
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path) -> None:
    # The program and the user need not be here.
    text = unit().replace("/opt/folkmoot/bin/folkmoot", "/bin/true").replace("User=folkmoot\n", "")
    (tmp_path / "folkmoot.service").write_text(text)
    done = shell("systemd-analyze verify ./folkmoot.service", tmp_path)
    told = [line for line in (done.stdout + done.stderr).splitlines() if "folkmoot.service" in line]
    assert told == []
    assert done.returncode == 0, done.stderr


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("installer", ["pip", "uv"])
def test_the_first_run_of_make_serve_shows_what_it_installs(installer: str, tmp_path: Path) -> None:
    uv = shutil.which("uv") or ""
    if installer == "uv" and not uv:
        pytest.skip("there is no uv here")
    clone = tmp_path / "clone"
    clone.mkdir()
    for name in ("Makefile", "pyproject.toml", "constraints.txt", "README.md", "LICENSE", "src"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, clone / name)
    chosen = f"PYTHON={sys.executable} UV={uv if installer == 'uv' else ''}"
    done = shell(f"make --no-print-directory .venv/run.stamp {chosen}", clone)
    installed(done)
    told = (done.stdout + done.stderr).splitlines()
    begin = f"Installing the packages of constraints.txt into .venv with {installer}."
    assert told[0].startswith(begin)
    assert sum("msgspec" in line for line in told) >= 1
    again = shell(f"make --no-print-directory .venv/run.stamp {chosen}", clone)
    assert "Installing" not in again.stdout
