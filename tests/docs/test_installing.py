"""Installing as the page says: the wheel, pip, uv, the first run of `make serve`, the unit."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from subprocess import CompletedProcess
from zipfile import ZipFile

import pytest

from docs.pages import site
from folkmoot import __version__
from tests.docs.following import check_unit
from tests.docs.pages import ROOT, pages
from tests.process import ran

PAGE = "docs/operations/installing.md"
WHEEL = f"folkmoot-{__version__}-py3-none-any.whl"
# What Python 3.11.0 brings.
OLDEST_PIP = "22.3"
NO_INDEX = (
    "No matching distribution",
    "Could not find a version",
    "No solution found",
    "Failed to",
)


def shell(
    command: str, cwd: Path, base: Mapping[str, str] = os.environ, **environ: str
) -> CompletedProcess[str]:
    # What is installed is hardly used, and to compile it takes half of the time.
    return ran("bash", "-euc", command, cwd=cwd, env={**base, "PIP_NO_COMPILE": "1", **environ})


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this project, as `make wheel` builds it once the pages are made."""
    folder = tmp_path_factory.mktemp("dist")
    done = ran(sys.executable, "-m", "flit_core.wheel", "--outdir", folder, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return folder / WHEEL


def installed(done: CompletedProcess[str]) -> None:
    """Skip where no package index can be had; otherwise it must have worked."""
    if done.returncode and any(words in done.stderr for words in NO_INDEX):
        pytest.skip(f"no package index: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_page_names_the_wheel_that_is_made(wheel):
    assert wheel.is_file()
    assert set(re.findall(r"folkmoot-\d\S*?\.whl", pages()[PAGE].text)) == {WHEEL}


def copied(clone: Path) -> Path:
    """What a new clone has that an installation needs, and nothing that was built in this one."""
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy(path, clone)
    built = shutil.ignore_patterns(Path(site.PATH).name, "__pycache__", "node_modules")
    for name in ("app", "benchmarks", "docs", "examples", "src", "tests"):
        shutil.copytree(ROOT / name, clone / name, ignore=built)
    return clone


@pytest.mark.long
@pytest.mark.parametrize("source", [".", "./dist/*.tar.gz"], ids=["clone", "sdist"])
def test_a_wheel_that_pip_builds_has_the_documentation(source, tmp_path):
    clone = copied(tmp_path)
    done = shell(
        f"{sys.executable} -c 'from docs import packing; packing.build_sdist(\"dist\")' && "
        f"{sys.executable} -m venv .venv && "
        f".venv/bin/pip wheel --no-deps --wheel-dir made {source}",
        clone,
    )
    installed(done)
    assert site.PATH.removeprefix("src/") in ZipFile(clone / "made" / WHEEL).namelist()


@pytest.mark.long
@pytest.mark.timeout(900)
def test_pip_installs_the_wheel_as_the_page_says(wheel, tmp_path):
    newest, tested = (b.text for b in pages()[PAGE].blocks if "pip install" in b.text)
    shutil.copy(wheel, tmp_path)
    shutil.copy(ROOT / "constraints.txt", tmp_path)

    def as_written(block: str) -> CompletedProcess[str]:
        commands = block.replace("/opt/folkmoot", str(tmp_path / "opt"))
        done = shell(commands.replace("python3 -m venv", f"{sys.executable} -m venv"), tmp_path)
        installed(done)
        return done

    assert as_written(newest).stdout.splitlines()[-1] == f"folkmoot {__version__}"
    # With the tested versions, over itself as an upgrade does.
    assert as_written(tested).stdout.splitlines()[-1] == "No broken requirements found."
    check = shell(f"{tmp_path}/opt/bin/folkmoot doctor --data new", tmp_path)
    assert "No problems found" in check.stdout, check.stdout + check.stderr


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_example_of_testing_with_tapes_runs_in_a_new_environment(wheel, tmp_path):
    page = pages()["docs/testing-with-tapes.md"]
    install, run = (block.text for block in page.blocks[:4] if block.language == "sh")
    server, test = (block.text for block in page.blocks[:4] if block.language == "python")
    shutil.copy(wheel, tmp_path)
    (tmp_path / "weather_server.py").write_text(server)
    (tmp_path / "test_weather.py").write_text(test)
    assert all(f"`{name}`" in page.text for name in ("weather_server.py", "test_weather.py"))
    installed(shell(install.replace("python3 -m", f"{sys.executable} -m"), tmp_path))
    for times in range(2):
        done = shell(run, tmp_path)
        assert "1 passed" in done.stdout, done.stdout + done.stderr
        assert (tmp_path / "tapes/weather.jsonl").is_file()
        if not times:
            # From now on the tape answers.
            (tmp_path / "weather_server.py").unlink()


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
def test_the_other_ways_of_the_page_work(command, wheel, tmp_path):
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


def test_the_unit_fits_what_the_page_installs():
    command = re.search(r"^ExecStart=(\S+) serve --data (\S+)", unit(), re.MULTILINE)
    assert f"{command[1]} --version" in pages()[PAGE].text
    assert f"WorkingDirectory={command[2]}\n" in unit()
    assert f"--home-dir {command[2]}" in pages()[PAGE].text


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not here")
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path):
    check_unit(unit(), tmp_path)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("installer", ["pip", "uv"])
def test_a_clone_installs_its_lock_files_with_nothing_configured(installer, tmp_path):
    uv = shutil.which("uv") or ""
    if installer == "uv" and not uv:
        pytest.skip("there is no uv here")
    clone, home = tmp_path / "clone", tmp_path / "home"
    home.mkdir()
    clone.mkdir()
    copied(clone)
    bare = {"PATH": "/usr/bin:/bin", "HOME": str(home), "PIP_CONFIG_FILE": os.devnull}
    # Whom a network trusts is no setting of pip's, and only pip calls it so.
    if trusted := os.environ.get("PIP_CERT") or os.environ.get("SSL_CERT_FILE"):
        bare |= {"REQUESTS_CA_BUNDLE": trusted, "SSL_CERT_FILE": trusted}
    if installer == "pip":
        old = f".venv/bin/pip install --isolated pip=={OLDEST_PIP}"
        installed(shell(f"{sys.executable} -m venv .venv && {old}", clone, bare))
    chosen = f"PYTHON={sys.executable} UV={uv if installer == 'uv' else ''}"
    for lock, stamp in zip(("constraints.txt", "constraints-dev.txt"), ("run", "dev"), strict=True):
        make = f"make --no-print-directory .venv/{stamp}.stamp {chosen}"
        done = shell(make, clone, bare)
        installed(done)
        told = (done.stdout + done.stderr).splitlines()
        assert told[0].startswith(f"Installing the packages of {lock} into .venv with {installer}.")
        assert sum("msgspec" in line for line in told) >= (stamp == "run")
        assert "Installing" not in shell(make, clone, bare).stdout
        assert (clone / site.PATH).is_file()
    if installer == "pip":
        assert f"pip {OLDEST_PIP}" in shell(".venv/bin/pip --version", clone, bare).stdout
