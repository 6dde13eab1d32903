"""The tutorial of the bridge, followed by two people with real bridges at a real hub."""

from __future__ import annotations

import re
import shutil

import pytest

from tests.docs.following import Reader, compared, fits, session
from tests.docs.pages import pages
from tests.process import Process

HUB = "http://127.0.0.1:8420"
FINGERPRINT = re.compile(r"(?:[0-9a-f]{4} ){7}[0-9a-f]{4}")
# What is asked on the terminal where no variable has the answer.
ASKED = re.compile(r"^(Passphrase|Repeat for confirmation):\n", re.MULTILINE)
PASSPHRASE = "five words picked at random"


@pytest.mark.long
@pytest.mark.requirement("bridge.first-key")
def test_the_tutorial_of_the_bridge_can_be_followed_to_the_letter(tmp_path):
    page = pages()["docs/tutorials/bridge.md"]
    seen: dict[str, str] = {}
    followed = 0
    with Process(tmp_path / "data") as hub:
        url = f"http://127.0.0.1:{hub.port}"
        desks = {name: Reader(tmp_path / name, {url: HUB}) for name in ("ada", "bob", "laptop")}
        for desk in desks.values():
            desk.environ["FOLKMOOT_PASSPHRASE"] = PASSPHRASE
        for name in ("ada", "bob"):
            desks[name].type(f"folkmoot register {name} --url {url}")
        for block in page.blocks:
            if block.language != "console":
                continue
            for who, command, shown in session(block):
                if who == "laptop":
                    # What the page says to copy to another computer.
                    ada, laptop = desks["ada"].home, desks["laptop"].home
                    shutil.copytree(ada / ".config", laptop / ".config")
                    (laptop / ".config" / "folkmoot" / "device-keys.json").unlink()
                    shutil.copy(ada / "ada.key", laptop)
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
