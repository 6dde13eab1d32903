"""The tutorial of the bridge, followed by two people with real bridges at a real hub."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.docs.following import compared, fits, on_terminal, session, with_programs
from tests.docs.pages import pages
from tests.process import Process, environment

HUB = "http://127.0.0.1:8420"
FINGERPRINT = re.compile(r"(?:[0-9a-f]{4} ){7}[0-9a-f]{4}")
ASKED = re.compile(r"^(Passphrase|Repeat for confirmation):\n", re.MULTILINE)
"""What is asked on the terminal where no variable has the answer."""
PASSPHRASE = "five words picked at random"
FOLKMOOT = "#!{python}\nfrom folkmoot.cli import main\nmain()\n"


class Desk:
    """A person's computer: a home folder with credentials, and a terminal."""

    def __init__(self, home: Path, hub: str) -> None:
        self.home, self._hub = home, hub
        path = with_programs(home / "programs", folkmoot=FOLKMOOT)
        self._environ = environment(
            HOME=str(home), XDG_CONFIG_HOME="", XDG_STATE_HOME="",
            PATH=path, FOLKMOOT_PASSPHRASE=PASSPHRASE,
            PYTHONPATH=os.pathsep.join(sys.path),
        )  # fmt: skip

    def type(self, command: str) -> str:
        """Run a command, and answer what the reader of the page would see."""
        printed = on_terminal(command, self.home, self._environ)
        return printed.replace(self._hub, HUB).replace(str(self.home), "/home/ada")


@pytest.mark.long
@pytest.mark.requirement("bridge.first-key")
def test_the_tutorial_of_the_bridge_can_be_followed_to_the_letter(tmp_path):
    page = pages()["docs/tutorials/bridge.md"]
    seen: dict[str, str] = {}
    followed = 0
    with Process(tmp_path / "data") as hub:
        url = f"http://127.0.0.1:{hub.port}"
        desks = {name: Desk(tmp_path / name, url) for name in ("ada", "bob", "laptop")}
        for name in ("ada", "bob"):
            desks[name].type(f"folkmoot register {name} --url {url}")
        for block in page.blocks:
            if block.language != "console":
                continue
            for who, command, shown in session(block):
                if who == "laptop":
                    take_along(desks["ada"].home, desks["laptop"].home)
                real = FINGERPRINT.sub(lambda found: seen[found[0]], command)
                may_fail = " || true" if '"error"' in shown else ""
                printed = desks[who].type(f"{real}{may_fail}")
                wanted = ASKED.sub("", shown)
                told = FINGERPRINT.findall(printed)
                for example in FINGERPRINT.findall(wanted):
                    if example not in seen:
                        seen[example] = next(it for it in told if it not in seen.values())
                wanted = FINGERPRINT.sub(lambda found: seen[found[0]], wanted)
                about = f"line {block.line}: {command}\n{printed}"
                assert fits(compared(wanted), compared(printed)), about
                followed += 1
    assert followed >= 10


def take_along(ada: Path, laptop: Path) -> None:
    """Copy what the page says to copy to another computer."""
    shutil.copytree(ada / ".config", laptop / ".config")
    (laptop / ".config" / "folkmoot" / "device-keys.json").unlink()
    shutil.copy(ada / "ada.key", laptop)
