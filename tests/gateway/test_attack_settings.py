"""Files of settings that are not what they seem."""

from __future__ import annotations

import os
import threading

import pytest

from folkmoot.core import errors as e
from folkmoot.settings import files, load


def test_a_pipe_that_nobody_writes_to_holds_nobody_up(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "PIPE_SECONDS", 0.05)
    config, imported = tmp_path / "config.toml", tmp_path / "servers.json"
    os.mkfifo(imported)
    config.write_text(f'[gateway]\nmcp_servers = ["{imported}"]\n')
    with pytest.raises(e.SettingsError, match="nobody writes to the pipe"):
        load(config, environ={})
    with pytest.raises(e.SettingsError, match="nobody writes to the pipe"):
        load(imported, environ={})


def test_a_pipe_that_a_command_writes_to_is_read_like_a_file(tmp_path):
    config = tmp_path / "config.toml"
    os.mkfifo(config)
    writing = threading.Thread(target=config.write_text, args=('host = "127.0.0.9"\n',))
    writing.start()
    assert load(config, environ={}).settings.host == "127.0.0.9"
    writing.join()
