"""Whatever the file and the environment hold: settings, or one `SettingsError`."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from folkmoot.core import errors as e
from folkmoot.settings import (
    FIELDS,
    OTHER_VARIABLES,
    Loaded,
    load,
)

NAMES = sorted({part for path in FIELDS for part in (path, path.rpartition(".")[2])} | {"log"})
VALUES = [
    "1", "-1", "0.5", "inf", "nan", "true", '"x"', '""', "'http://h'", "[]", '["a", 1]', "{}",
    "{ level = 1 }", "1979-05-27", "07:32:00", "0xffffffffffffffffff", '"\\u0000"', '"""\n"""',
]  # fmt: skip
STATEMENT = st.one_of(
    st.builds("{} = {}".format, st.sampled_from(NAMES), st.sampled_from(VALUES)),
    st.sampled_from(["[log]", "[http]", "[[http]]", "[http.x]", "[nope]", "#", "", '["a\\n"]']),
    st.text(max_size=20),
)  # fmt: skip
TEXT = st.lists(STATEMENT, max_size=8).map("\n".join)
CONTENT = st.binary(max_size=60) | TEXT.map(lambda text: text.encode("utf-8", "surrogatepass"))
VARIABLE = st.sampled_from(
    sorted({field.variable for field in FIELDS.values()} | set(OTHER_VARIABLES))
) | st.text(max_size=10).map("FOLKMOOT_{}".format)
ENVIRONMENT = st.dictionaries(VARIABLE, st.text(max_size=20), max_size=4)


@settings(deadline=None)
@given(CONTENT, ENVIRONMENT)
@example(b"a=[\n" * 2000, {})
@example(b".".join([b"a"] * 1000) + b"=1", {})
def test_any_file_and_environment_give_settings_or_a_settings_error(content, environ):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "folkmoot.toml"
        file.write_bytes(content)
        check(str(file), environ)
        check(None, {**environ, "FOLKMOOT_DATA": folder})


@given(ENVIRONMENT)
def test_any_environment_alone_gives_settings_or_a_settings_error(environ):
    check(None, environ)


def check(config: str | None, environ: dict[str, str]) -> None:
    try:
        result: Loaded | e.SettingsError = load(config, environ=environ)
    except e.SettingsError as error:
        result = error
    if isinstance(result, e.SettingsError):
        assert result.message
        assert result.data["problems"] == result.message.split("\n")
    else:
        assert set(result.origins) == set(FIELDS)
        assert result.settings.data_folder.is_absolute()
