"""A client that a stranger's generator makes from the document walks a fleet, and is told no in words."""

import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from netboot.lifecycle.roles import Role
from netboot.web.app import api_document
from tests.browser.world import LATE, World
from tests.sites import TOKEN
from tests.sockets.api import given

SETTINGS = {
    "post_hooks": [],
    "content_type_overrides": {
        "text/csv": "application/octet-stream",
        "application/x-ndjson": "application/octet-stream",
    },
}
"""Of the generator: it knows no kinds of content but these, and formats nothing."""


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the package `fleet_client`, which can be imported."""
    folder = tmp_path_factory.mktemp("generated")
    (folder / "openapi.json").write_text(json.dumps(api_document()))
    (folder / "settings.yaml").write_text(json.dumps(SETTINGS))
    arguments = ["--path", "openapi.json", "--config", "settings.yaml", "--meta", "none", "--fail-on-warning"]
    program = [sys.executable, "-m", "openapi_python_client", "generate", "--output-path", "fleet_client"]
    made = subprocess.run([*program, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stdout + made.stderr
    sys.path.insert(0, str(folder))
    yield folder
    sys.path.remove(str(folder))


class Generated:
    """Its functions by their names in the document, with a token, in this process."""

    def __init__(self, world: World, token: str) -> None:
        package = importlib.import_module("fleet_client")
        transport = httpx.WSGITransport(app=world.api.client.application)
        self.client = package.AuthenticatedClient(
            "http://netboot", token=token, raise_on_unexpected_status=True, httpx_args={"transport": transport}
        )

    def ask(self, operation: str, *path: object, **more: Any) -> Any:
        """Whatever it makes of the answer; `body`: what the model of that name is made from."""
        tag = next(
            each["tags"][0]
            for one in api_document()["paths"].values()
            for each in one.values()
            if each["operationId"] == operation
        )
        if "body" in more:
            model, values = more["body"]
            more["body"] = getattr(importlib.import_module("fleet_client.models"), model).from_dict(values)
        function = importlib.import_module(f"fleet_client.api.{tag}.{operation}").sync
        return function(*path, client=self.client, **more)


def test_it_walks_a_fleet_and_acts(tmp_path: Path, generated: Path) -> None:
    world = World(tmp_path)
    assert generated.is_dir()
    ours = Generated(world, TOKEN)
    fleet = ours.ask("fleet_summary")
    late = next(each for each in fleet.first if each.name == LATE)
    assert (fleet.machines, late.reason) == (50, "Stuck")
    shown = ours.ask("machines_get", late.name)
    assert (late.condition, late.reason) in [(one.type_.value, one.reason.value) for one in shown.conditions]
    boot = ours.ask("boots_get", shown.boots[0].boot)
    assert (boot.machine, boot.boot) == (LATE, late.boot)
    assert {each.name for each in ours.ask("machines_list").machines} == set(world.names)
    held = ours.ask("intents_hold", late.name, body=("PuttingOn", {"reason": "its disk"}))
    assert (held.did, [each.mark.value for each in held.intents]) == ("put-on", ["Held"])
    assert [each.machine for each in ours.ask("intents_list").intents] == [LATE]
    record = ours.ask("audits_list").audit[0]
    assert (record.act, record.machine, record.reason) == ("hold", LATE, "its disk")


def test_it_is_told_no_in_words(tmp_path: Path, generated: Path) -> None:
    world = World(tmp_path)
    assert generated.is_dir()
    looking = Generated(world, given(world.api, "wall", Role.VIEWER))
    refused = looking.ask("intents_unhold", LATE, body=("Unholding", {"reason": "well"}))
    assert (refused.status, refused.code) == (403, "not-allowed")
    unknown = looking.ask("machines_get", "gpu-9999")
    assert (unknown.status, unknown.code, unknown.remedy) == (404, "no-such-machine", "see `netboot machine list`")
