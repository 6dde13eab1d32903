"""The tutorials for people, rooms and agents: what they have one type, pasted into a real shell."""

from __future__ import annotations

import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from tests.docs.following import Reader, compared, fits, session
from tests.docs.pages import pages
from tests.process import Process

HUB = "http://127.0.0.1:8420"
ELSEWHERE = {
    "docs/tutorials/operator.md": "followed by test_operator.py",
    "docs/tutorials/developer.md": "run by test_examples.py",
    "docs/tutorials/bridge.md": "followed by test_bridge.py",
    "docs/tutorials/server.md": "followed by test_server.py",
    "docs/tutorials/inbox.md": "has nothing to paste; tests/browser does what it says",
    "docs/tutorials/rooms-in-the-browser.md": "has nothing to paste; tests/browser does it",
    "docs/tutorials/operation.md": "followed by test_operation.py",
}
# Clients of others, which tests/peers/test_clients_sign_in.py starts.
OTHERS = ("claude ", "codex ")
FOLLOWED = sorted(
    name for name in pages() if name.startswith("docs/tutorials/") and name not in ELSEWHERE
)


class Shell(Reader):
    """One bash for a whole page, so that what a block exports is there for the next."""

    def __init__(self, folder: Path, hub: str) -> None:
        super().__init__(folder, {hub: HUB})
        (self.home / ".claude").mkdir()
        self._bash = subprocess.Popen(
            ["bash", "--norc"],
            cwd=self.home,
            env={**self.environ, "HUB": hub, "COLUMNS": "120"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def paste(self, text: str) -> str:
        """What is printed by commands that were pasted; one that fails, fails."""
        commands = self.real(text).rstrip("\n")
        # Grouped and not in a shell below: what is exported stays.
        self._bash.stdin.write(f'set -o pipefail; {{ {commands}\n}} </dev/null; echo "\x04$?"\n')
        self._bash.stdin.flush()
        printed = ""
        for line in self._bash.stdout:
            before, end, code = line.partition("\x04")
            printed += before
            if end:
                assert code == "0\n", f"{text}: {printed}"
                break
        return compared(self.seen(printed))

    def close(self) -> None:
        self._bash.stdin.close()
        self._bash.wait(60)
        self._bash.stdout.close()


@pytest.mark.long
@pytest.mark.parametrize("name", FOLLOWED)
def test_the_blocks_of_a_tutorial_run_as_they_are_pasted(name, tmp_path):
    with (
        Process(tmp_path / "data") as hub,
        closing(Shell(tmp_path, f"http://127.0.0.1:{hub.port}")) as opened,
    ):
        pasted = 0
        for block in pages()[name].blocks:
            if block.language == "sh" and not block.text.startswith(("folkmoot serve", *OTHERS)):
                opened.paste(block.text)
                pasted += 1
            elif block.language == "console":
                for _, command, shown in session(block):
                    printed = opened.paste(command)
                    told = f"{name}, line {block.line}: {command}\n{printed}"
                    assert not shown or fits(compared(shown), printed), told
                    pasted += 1
        assert pasted
