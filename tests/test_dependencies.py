"""What the package needs of others: declared, and nothing more; and what it uses of their insides.

Of two packages members are used that they do not document. When an update changes one of those, a
test here says what to do.
"""

from __future__ import annotations

import inspect
import re
import sys
import tomllib
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import picows
import pytest
from uvicorn import server
from uvicorn.protocols.http import flow_control, httptools_impl

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "folkmoot"
# Extras for working on the project.
FOR_WORK = {"build", "browser", "dev", "servers"}
IMPORT = re.compile(r"^ *(?:from|import) +([\w.]+)(?= import| as|,|$)", re.MULTILINE)
# Modules that have another name than their package.
PACKAGES = {"nacl": "pynacl", "opentelemetry": "opentelemetry-sdk"}
# Packages that add to a module of another.
BESIDE = {"opentelemetry-exporter-otlp-proto-http"}


def declared() -> dict[str, str]:
    """The packages that Folkmoot and its extras need, with their bounds."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    rows = [*project["dependencies"]]
    for extra, packages in project["optional-dependencies"].items():
        rows += [] if extra in FOR_WORK else packages
    found = (re.match(r"([\w-]+)(.*)", row) for row in rows)
    return {each[1]: each[2] for each in found if each is not None}


def imported() -> dict[str, set[str]]:
    """The modules of others that are imported, with the files that do."""
    found: dict[str, set[str]] = {}
    for path in SOURCE.rglob("*.py"):
        for name in IMPORT.findall(path.read_text()):
            if name.split(".")[0] not in {*sys.stdlib_module_names, "folkmoot"}:
                found.setdefault(name, set()).add(path.relative_to(SOURCE).as_posix())
    return found


def test_whatever_is_imported_is_declared_and_the_other_way_round():
    tops = {name.split(".")[0] for name in imported()}
    used = {PACKAGES.get(name, name.replace("_", "-")) for name in tops}
    # pytest is that of whoever tests with the plugin.
    assert used - {"pytest"} == set(declared()) - BESIDE


class Inside(NamedTuple):
    """A class of another package whose insides are used."""

    package: str
    name: str
    # The only file that does.
    used_in: str
    # What its source hashes to in the version that it was used in.
    mark: str


PROTOCOL = "transports/protocol.py"
PARSER = "transports/websocket/picowsport.py"
INSIDES = [
    Inside("uvicorn", "HttpToolsProtocol", PROTOCOL, "7803929290cb172a"),
    Inside("uvicorn", "RequestResponseCycle", PROTOCOL, "ca92fd2c885a2885"),
    Inside("uvicorn", "FlowControl", PROTOCOL, "c65dd06c78e3ca65"),
    Inside("uvicorn", "ServerState", PROTOCOL, "149b61fbc85f713e"),
    Inside("picows", "WSProtocol", PARSER, "44340ecec516807f"),
    Inside("picows", "MemoryBuffer", PARSER, "424843597176ec97"),
]


def source_of(inside: Inside) -> str:
    if inside.package == "uvicorn":
        [found] = [
            getattr(module, inside.name)
            for module in (httptools_impl, flow_control, server)
            if getattr(module, inside.name, object).__module__ == module.__name__
        ]
        return inspect.getsource(found)
    text = Path(picows.__file__).with_name("picows.pyx").read_text()
    found = re.search(rf"^cdef class {inside.name}\b.*?(?=^\S|\Z)", text, re.MULTILINE | re.DOTALL)
    assert found is not None, f"picows has no class {inside.name} any more: see {inside.used_in}"
    return found[0]


@pytest.mark.parametrize("inside", INSIDES, ids=lambda inside: inside.name)
def test_what_is_used_of_the_insides_of_a_package_is_as_it_was(inside):
    mark = blake2b(source_of(inside).encode(), digest_size=8).hexdigest()
    assert mark == inside.mark, (
        f"{inside.package} {version(inside.package)} changed {inside.name}, whose insides are used "
        f"in src/folkmoot/{inside.used_in}. Read what changed, and check that file against it. "
        f"Then write {mark!r} here, and the bounds of {inside.package} into pyproject.toml."
    )


@pytest.mark.parametrize("package", sorted({inside.package for inside in INSIDES}))
def test_a_package_whose_insides_are_used_is_bounded(package):
    lowest, most = re.fullmatch(r">=([\d.]+),<([\d.]+)", declared()[package]).groups()  # type: ignore[union-attr]
    major, minor, *_ = map(int, lowest.split("."))
    assert most == f"{major}.{minor + 1}"


def test_insides_are_used_in_one_file_each():
    uses = {
        PROTOCOL: re.compile(r"^ *(?:from|import) uvicorn\b", re.MULTILINE),
        PARSER: re.compile(r"picows\.picows\b|from picows import picows\b|WSProtocol"),
        "": re.compile(r"__self__"),
    }
    found = {where: set[str]() for where in uses}
    for path in SOURCE.rglob("*.py"):
        text = path.read_text()
        for where, use in uses.items():
            if use.search(text):
                found[where].add(path.relative_to(SOURCE).as_posix())
    assert found == {PROTOCOL: {PROTOCOL}, PARSER: {PARSER}, "": set()}
