"""The page on several nodes, and the files beside it: settings, commands and programs exist."""

from __future__ import annotations

import re
import shlex
import shutil
import tomllib
from itertools import chain
from typing import Any

import pytest
import yaml

from folkmoot import __version__
from folkmoot.settings import FIELDS, OTHER_VARIABLES, load
from tests.docs.following import check_unit
from tests.docs.pages import ROOT, pages
from tests.docs.test_examples import check_folkmoot

PAGE = "docs/operations/cluster.md"
FOLDER = ROOT / "examples" / "cluster"
FILES = sorted(path.name for path in FOLDER.iterdir())
PORT = 8420
READY = "/health/ready"
SETTING = re.compile(r"[a-z]+\.[a-z_]+")
NOT_SETTINGS = re.compile(r".+\.(toml|cfg|yaml|md|service|key|db)")


def text_of(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def documents(name: str) -> list[Any]:
    return list(yaml.safe_load_all(text_of(name)))


@pytest.mark.parametrize("name", FILES)
def test_every_file_is_named_on_the_page(name):
    assert f"../../examples/cluster/{name}" in pages()[PAGE].links


@pytest.mark.parametrize("name", FILES)
def test_the_variables_of_a_file_exist(name):
    known = {field.variable for field in FIELDS.values()} | set(OTHER_VARIABLES)
    assert set(re.findall(r"\bFOLKMOOT_[A-Z_]+", text_of(name))) <= known


def test_the_settings_and_variables_of_the_page_exist():
    known = {field.variable for field in FIELDS.values()} | set(FIELDS)
    said = pages()[PAGE].code
    variables = {word for word in said if word.startswith("FOLKMOOT_")}
    settings = {
        word.split(" = ")[0]
        for word in said
        if SETTING.fullmatch(word.split(" = ")[0]) and not NOT_SETTINGS.fullmatch(word)
    }
    assert variables | settings <= known
    assert {"store.url", "bus.url", "cluster.address", "cluster.lease_seconds"} <= settings


def toml_texts() -> list[str]:
    shown = [block.text for block in pages()[PAGE].blocks if block.language == "toml"]
    (settings,) = (each for each in documents("kubernetes.yaml") if each["kind"] == "ConfigMap")
    return [*shown, text_of("config.toml"), settings["data"]["config.toml"]]


@pytest.mark.parametrize("text", toml_texts())
def test_a_settings_file_is_valid(text, tmp_path):
    assert tomllib.loads(text)
    file = tmp_path / "config.toml"
    file.write_text(text, encoding="utf-8")
    file.chmod(0o600)
    loaded = load(str(file), options={}, environ={"FOLKMOOT_CLUSTER_ADDRESS": "http://node1:8420"})
    assert loaded.settings.public_url or loaded.gateway.backends


def test_the_programs_that_the_files_start_exist():
    (unit,) = re.findall(
        r"^ExecStart=\S*/folkmoot (.*)$", text_of("folkmoot.service"), re.MULTILINE
    )
    (image,) = re.findall(r"^CMD (\[.*\])$", text_of("Dockerfile"), re.MULTILINE)
    container = stateful_set()["spec"]["template"]["spec"]["containers"][0]
    for words in (shlex.split(f"folkmoot {unit}"), yaml.safe_load(image), container["args"]):
        assert words[:2] == ["folkmoot", "serve"]
        check_folkmoot(words[1:], " ".join(words))


def test_the_image_has_the_wheel_that_is_made_and_what_nodes_need():
    assert f"/tmp/folkmoot-{__version__}-py3-none-any.whl[postgres]" in text_of("Dockerfile")
    assert f"folkmoot-{__version__}-py3-none-any.whl[postgres]" in pages()[PAGE].text


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not here")
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path):
    check_unit(text_of("folkmoot.service"), tmp_path)


def stateful_set() -> Any:
    (found,) = (each for each in documents("kubernetes.yaml") if each["kind"] == "StatefulSet")
    return found


def test_what_the_parts_of_the_kubernetes_file_say_of_each_other_fits():
    by_kind = [(each["kind"], each["metadata"]["name"]) for each in documents("kubernetes.yaml")]
    spec = stateful_set()["spec"]
    assert ("Service", spec["serviceName"]) in by_kind
    pod = spec["template"]["spec"]
    container = pod["containers"][0]
    assert container["readinessProbe"]["httpGet"]["path"] == READY
    labels = spec["template"]["metadata"]["labels"]
    for each in documents("kubernetes.yaml"):
        assert each.get("spec", {}).get("selector") in (None, labels, {"matchLabels": labels})
    variables = {each["name"]: each.get("value") for each in container["env"]}
    address = f"http://$(POD_NAME).{spec['serviceName']}:{PORT}"
    assert variables["FOLKMOOT_CLUSTER_ADDRESS"] == address
    mounted = {each["name"] for each in container["volumeMounts"]}
    assert mounted == {each["name"] for each in pod["volumes"]}


def test_what_the_parts_of_the_compose_file_say_of_each_other_fits():
    (compose,) = documents("compose.yaml")
    services = compose["services"]
    nodes = [name for name in services if name.startswith("node")]
    assert len(nodes) == 3
    for name in nodes:
        given = services[name]["environment"]
        assert given["FOLKMOOT_CLUSTER_ADDRESS"] == f"http://{name}:{PORT}"
        assert {"FOLKMOOT_MASTER_KEY", "FOLKMOOT_STORE_URL", "FOLKMOOT_BUS_URL"} <= set(given)
        assert set(services[name]["depends_on"]) <= set(services)
    volumes = chain.from_iterable(each.get("volumes", ()) for each in services.values())
    named = {one.split(":")[0] for one in volumes if not one.startswith("./")}
    assert named == set(compose["volumes"])
    balanced = re.findall(r"^    server (\S+) (\S+)$", text_of("haproxy.cfg"), re.MULTILINE)
    assert balanced == [(name, f"{name}:{PORT}") for name in nodes]
    assert READY in text_of("haproxy.cfg")
