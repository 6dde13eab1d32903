"""Checks that the built pages are the build of these sources.

python app/check.py             compares the recorded hash of the sources, and builds where it can
python app/check.py --record    records it, after a build

With APP_REQUIRED=1, which CI sets, it is an error when nothing can be built.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

APP = Path(__file__).resolve().parent
REPOSITORY = APP.parent
BUILT = REPOSITORY / "src" / "folkmoot" / "web" / "built"
RECORD = BUILT / "sources.sha256"
PAGES = (
    BUILT / "inbox.html",
    BUILT / "web.html",
    BUILT / "console.html",
    BUILT / "tokens.css",
    BUILT / "icon.svg",
    REPOSITORY / "tests/browser/host.html",
)
TYPES = APP / "src" / "api" / "schema.ts"
"""Made from the hub's own code; nothing of it is left in a build."""
SOURCES = ("build.js", "package.json", "package-lock.json", "tsconfig.json", "src", "test/host")


def sources_hash() -> str:
    """One hash over every file that a build reads, by name."""
    found = [
        path
        for name in SOURCES
        for path in ([APP / name] if (APP / name).is_file() else (APP / name).rglob("*"))
        if path.is_file() and path != TYPES
    ]
    total = hashlib.sha256()
    for path in sorted(found, key=lambda path: path.relative_to(APP).as_posix()):
        content = path.read_bytes().replace(b"\r\n", b"\n")
        name = path.relative_to(APP).as_posix()
        total.update(f"{name} {hashlib.sha256(content).hexdigest()}\n".encode())
    return total.hexdigest()


def changed_by_building() -> list[str]:
    """The pages that a build makes otherwise than they are."""
    with tempfile.TemporaryDirectory() as folder:
        node = shutil.which("node") or "node"
        done = subprocess.run(  # noqa: S603
            [node, "build.js", folder], cwd=APP, stderr=subprocess.PIPE, text=True, check=False
        )
        if done.returncode:
            told = (line for line in done.stderr.splitlines() if "Error" in line)
            why = next(told, done.stderr).strip()
            raise SystemExit(f"{why}\napp/ cannot be built with these packages: run make app.")
        names = [page.relative_to(REPOSITORY) for page in PAGES]
        return [
            str(name)
            for name in names
            if (Path(folder) / name).read_bytes() != (REPOSITORY / name).read_bytes()
        ]


def main() -> None:
    """Compare or record; a difference ends with exit code 1."""
    if sys.argv[1:] == ["--record"]:
        RECORD.write_text(f"{sources_hash()}\n")
        return
    if RECORD.read_text().strip() != sources_hash():
        raise SystemExit("The built pages are not those of app/: run make app and commit them.")
    if shutil.which("node") and (APP / "node_modules").exists():
        if different := changed_by_building():
            raise SystemExit(f"A build gives other pages: {', '.join(different)}. Run make app.")
    elif os.environ.get("APP_REQUIRED"):
        raise SystemExit("app/ cannot be built here: it needs Node.js, and 'make app' once.")
    else:
        sys.stdout.write("Left out: building app/ to compare (needs Node.js, and 'make app').\n")


if __name__ == "__main__":
    main()
