"""Following a page: commands on a terminal, and whether they print what the page shows."""

from __future__ import annotations

import fcntl
import os
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyte

from tests.docs.pages import Block
from tests.process import environment, ran

# A terminal on which nothing is wrapped and nothing scrolls away.
COLUMNS, ROWS = 400, 1_000
# What is different each time, and what it is compared as.
VARYING = {
    "CODE": re.compile(r"\b[A-Z0-9]{4}-[A-Z0-9]{4}-[A-Z0-9]{4}\b"),
    "TIME": re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?Z?)?"),
    "sk_…": re.compile(r"\bsk_[0-9a-f]{64}"),
    "gi_…": re.compile(r"\bgi_\S{8,}"),
    "N TIME": re.compile(r"^\d+ TIME", re.MULTILINE),
}


def compared(text: str) -> str:
    """A text in which what varies is always the same."""
    for name, pattern in VARYING.items():
        text = pattern.sub(name, text)
    return text


def fits(shown: str, printed: str) -> bool:
    """Whether what was printed is what the page shows, where `…` stands for anything."""
    pattern = ".*".join(map(re.escape, shown.rstrip("\n").split("…")))
    return re.fullmatch(pattern, printed.strip("\n"), re.DOTALL) is not None


def session(block: Block, prompt: str = r"\$ ") -> Iterator[tuple[str, str, str]]:
    """The commands of a block: whose prompt it is, the command, what the page shows behind it."""
    starts = [*re.finditer(rf"^(\w*){prompt}(.*)\n?", block.text, re.MULTILINE)]
    ends = [found.start() for found in starts[1:]] + [len(block.text)]
    for found, end in zip(starts, ends, strict=True):
        yield found[1], found[2], block.text[found.end() : end]


def on_terminal(
    script: str, folder: Path, environ: Mapping[str, str], *, agree: bool = False
) -> str:
    """What a script of bash shows on a terminal; one that fails, fails.

    With `agree` someone sits there who says yes when asked.
    """
    leader, follower = os.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    shell = subprocess.Popen(
        ["bash", "-euc", script],
        cwd=folder,
        env={**environ, "TERM": "xterm", "COLUMNS": str(COLUMNS)},
        stdin=follower if agree else subprocess.DEVNULL,
        stdout=follower,
        stderr=follower,
    )
    os.close(follower)
    shown = b""
    while True:
        try:
            read = os.read(leader, 65536)
        except OSError:
            # Linux tells the end of the last writer as an error.
            break
        if not read:
            break
        shown += read
        if agree and shown.endswith(b"[y/N]: "):
            os.write(leader, b"y\n")
    os.close(leader)
    screen = pyte.Screen(COLUMNS, ROWS)
    pyte.ByteStream(screen).feed(shown)
    rows = (screen.buffer[row] for row in range(screen.cursor.y + 1))
    lines = ("".join(row[at].data for at in range(max(row, default=-1) + 1)) for row in rows)
    printed = "\n".join(line.rstrip() for line in lines).rstrip("\n")
    assert shell.wait(60) == 0, f"{script}\n{printed}"
    return printed


FOLKMOOT = """#!{python}
import os
from folkmoot.cli import credentials, main
# The reader's hub is on its usual port; this one is where it found a place.
credentials.LOCAL_HUB = os.environ.get("HUB", credentials.LOCAL_HUB)
main()
"""


class Reader:
    """Someone who does what a page says, with a home folder and programs of their own."""

    def __init__(self, folder: Path, shown: Mapping[str, str], **programs: str) -> None:
        """`shown`: what a page calls otherwise; `{python}` of a program is this Python."""
        self.home = folder / "home"
        self.home.mkdir(parents=True)
        self.shown = {str(self.home): "/home/ada", **shown}
        own = folder / "programs"
        own.mkdir()
        for name, text in {"folkmoot": FOLKMOOT, **programs}.items():
            (own / name).write_text(text.format(python=sys.executable), encoding="utf-8")
            (own / name).chmod(0o700)
        self.environ = environment(
            HOME=str(self.home),
            XDG_CONFIG_HOME="",
            XDG_STATE_HOME="",
            PATH=f"{own}{os.pathsep}{os.environ['PATH']}",
            PYTHONPATH=os.pathsep.join(sys.path),
        )

    def real(self, text: str) -> str:
        """What a page says, with the names that things have here."""
        for here, there in self.shown.items():
            text = text.replace(there, here)
        return text

    def seen(self, printed: str) -> str:
        """What is printed as the page's reader would see it."""
        for here, there in self.shown.items():
            printed = printed.replace(here, there)
        return printed

    def type(self, script: str, **options: Any) -> str:
        """Run commands, and answer what the reader of the page would see."""
        folder = options.pop("folder", self.home)
        return self.seen(on_terminal(self.real(script), folder, self.environ, **options))


def check_unit(unit: str, folder: Path) -> None:
    """Have systemd look at a unit; its program and its user need not be here."""
    unit = unit.replace("/opt/folkmoot/bin/folkmoot", "/bin/true").replace("User=folkmoot\n", "")
    (folder / "folkmoot.service").write_text(unit)
    done = ran("systemd-analyze", "verify", "./folkmoot.service", cwd=folder)
    told = (done.stdout + done.stderr).splitlines()
    assert [line for line in told if "folkmoot.service" in line] == []
    assert done.returncode == 0, done.stderr
