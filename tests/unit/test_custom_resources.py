"""Custom resources are made from the models of the inventory: one truth, or a defect that says where.

What API servers make of them: `tests/cluster/test_custom_resources.py`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
import yaml
from hypothesis import given
from pydantic import AfterValidator, Field, StringConstraints, field_validator

from images.values.strict import Strict, parse
from netboot.cli.cluster import crds
from netboot.kube.resources import forms, schema
from netboot.kube.resources.cel import NotExpressibleError, pattern
from netboot.kube.resources.definitions import definitions
from netboot.kube.resources.schema import schema_of
from tests.commands import Run
from tests.custom_resources import (
    BY_THE_API_SERVER_ALONE,
    BY_THE_SERVICE_ALONE,
    MACHINES,
    REFUSED,
    TAKEN,
    Item,
    faults,
    items,
)

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "custom-resources.md"


def nodes(schema: dict[str, Any], at: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every part of a schema, with where it is."""
    yield at, schema
    for name, below in schema.get("properties", {}).items():
        yield from nodes(below, f"{at}.{name}")
    for key in ("items", "additionalProperties"):
        if key in schema:
            yield from nodes(schema[key], f"{at}.{key}")


PARTS = [
    part
    for definition in definitions()
    for version in definition["spec"]["versions"]
    for part in nodes(version["schema"]["openAPIV3Schema"], definition["spec"]["names"]["kind"])
]


def test_every_part_has_one_type_and_a_maximum() -> None:
    most = {"string": ("maxLength", "enum"), "array": ("maxItems",), "object": ("maxProperties", "properties")}
    for at, part in PARTS:
        typed = [key for key in ("type", "x-kubernetes-int-or-string") if key in part]
        assert len(typed) == 1, at
        assert not {"$ref", "anyOf", "oneOf", "allOf", "not", "default"} & part.keys(), at
        limits = most.get(part.get("type", "string"), ())
        assert not limits or any(key in part for key in limits), at


def test_every_key_says_what_it_is_for() -> None:
    keys = [(f"{at}.{key}", below) for at, part in PARTS for key, below in part.get("properties", {}).items()]
    assert [at for at, below in keys if not below.get("description") and not at.endswith((".spec",))] == []
    assert [at for at, below in keys if "Not written" in below.get("description", "")] == []


def test_what_an_explanation_says() -> None:
    said = {at: part.get("description") for at, part in PARTS}
    assert said["Machine.spec.match"] == (
        "How a machine is recognised. Any one of them suffices; two machines may not share any."
    )
    assert said["Machine.spec.class"] == "The class whose hardware it has."
    assert said["Machine.spec.identity"] == (
        "The lowest assurance on which it may prove itself. One with a TPM on record never falls below `tpm`. "
        "Default: tpm."
    )


def test_every_row_of_the_tables_is_of_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = set[str]()

    class Asked(dict[str, Any]):
        def __getitem__(self, name: str) -> Any:
            asked.add(name)
            return super().__getitem__(name)

    tables = {name: Asked(getattr(forms, name)) for name in ("FORMS", "FIELDS", "MODELS")}
    for name, table in tables.items():
        monkeypatch.setattr(schema, name, table)
    definitions()
    assert {name for table in tables.values() for name in table} - asked == set()


def odd(value: int) -> int:
    return value


class Unsaid(Strict):
    """A model."""

    key: int


class Unknown(Strict):
    """A model."""

    key: Annotated[int, AfterValidator(odd)]
    """A key."""


class Looked(Strict):
    """A model."""

    key: Annotated[str, StringConstraints(pattern="^(?=a)b$")]
    """A key."""


class Either(Strict):
    """A model."""

    key: int | str
    """A key."""


class Multiple(Strict):
    """A model."""

    key: Annotated[int, Field(multiple_of=3)]
    """A key."""


class Whole(Strict):
    """A model."""

    key: int
    """A key."""

    @field_validator("key")
    @classmethod
    def _judged(cls, value: int) -> int:
        return value


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (Unsaid, "Unsaid.key has no docstring: nobody could be told what it is for"),
        (
            Unknown,
            f"Unknown.key: a validator without a row in netboot.kube.resources.forms: {__name__}.odd",
        ),
        (Looked, "the pattern '^(?=a)b$' is none of RE2"),
        (Either, "Either.key: int | str has more than one type"),
        (Multiple, "Multiple.key: MultipleOf(multiple_of=3) has no counterpart in a schema"),
        (Whole, "a validator of a model without a row in netboot.kube.resources.forms: Whole._judged"),
    ],
)
def test_what_no_schema_can_say_is_refused_by_name(model: type[Strict], words: str) -> None:
    with pytest.raises(NotExpressibleError) as caught:
        schema_of(model)
    assert str(caught.value) == words


@pytest.mark.parametrize("text", [r"^(a)\1$", r"^a++$", r"^a\Z$", r"^(?i)a$", "^a{0,1001}$", "^a{1001}$", "a", "^a"])
def test_patterns_that_mean_something_else_to_go_are_refused(text: str) -> None:
    with pytest.raises(NotExpressibleError):
        pattern(text)


@pytest.mark.parametrize("name", TAKEN | BY_THE_API_SERVER_ALONE)
def test_the_service_takes(name: str, tmp_path: Path) -> None:
    assert faults(tmp_path, (TAKEN | BY_THE_API_SERVER_ALONE)[name]) == []


@pytest.mark.parametrize("name", REFUSED | BY_THE_SERVICE_ALONE)
def test_the_service_refuses(name: str, tmp_path: Path) -> None:
    assert faults(tmp_path, (REFUSED | BY_THE_SERVICE_ALONE)[name]) != []


@given(MACHINES)
def test_what_is_tried_on_an_api_server_the_service_takes(tmp_path_factory: pytest.TempPathFactory, item: Item) -> None:
    assert faults(tmp_path_factory.getbasetemp(), item) == []


@pytest.mark.parametrize("name", [*BY_THE_SERVICE_ALONE, *BY_THE_API_SERVER_ALONE])
def test_the_page_names_what_one_of_the_two_sees_alone(name: str) -> None:
    assert f"\n- {name}" in PAGE.read_text()


def test_the_command_prints_the_definitions(run: Run) -> None:
    printed = run("cluster", "crds")
    assert (printed.status, printed.err) == (0, "")
    assert list(yaml.safe_load_all(printed.out)) == definitions()
    assert crds.help is not None and "their objects are the inventory" in crds.help


INVENTORY = """
channels: [{name: stable}]
profiles: [{name: default, channel: stable, pcrs: none, deadlines: {Lost: 15m}}]
maintenance: [{name: nights, start: "22:00", end: "05:00", time_zone: UTC}]
machines:
- {name: gpu-001, match: {macs: [52:54:00:12:34:56], serial: "1e3"}, profile: default, node: {labels: {y: "no"}}}
"""
OBJECTS = """\
---
apiVersion: netboot.dev/v1alpha1
kind: Channel
metadata:
  name: stable
  namespace: netboot
spec: {}
---
apiVersion: netboot.dev/v1alpha1
kind: MaintenanceWindow
metadata:
  name: nights
  namespace: netboot
spec:
  end: "05:00"
  start: "22:00"
  time_zone: UTC
---
apiVersion: netboot.dev/v1alpha1
kind: Profile
metadata:
  name: default
  namespace: netboot
spec:
  channel: stable
  deadlines:
    Lost: "15m"
  pcrs:
    none: []
---
apiVersion: netboot.dev/v1alpha1
kind: Machine
metadata:
  name: gpu-001
  namespace: netboot
spec:
  match:
    macs:
    - "52:54:00:12:34:56"
    serial: "1e3"
  node:
    labels:
      "y": "no"
  profile: default
"""


def test_an_inventory_as_objects(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("init", tmp_path / "site", "--url", "http://192.0.2.1:8080", "--site", "lab").status == 0
    monkeypatch.chdir(tmp_path / "site")
    for file in Path("inventory").iterdir():
        file.unlink()
    Path("inventory/a.yaml").write_text(INVENTORY)
    printed = run("cluster", "inventory")
    assert (printed.out, printed.status, printed.err) == (OBJECTS, 0, "")
    specs = [item.custom_resource["spec"] for item in items(INVENTORY)]
    printed_specs = [each["spec"] for each in map(dict, yaml.safe_load_all(printed.out))]
    assert all(each in specs for each in printed_specs) and len(printed_specs) == len(specs)
    Path("inventory/a.yaml").write_text(INVENTORY.replace("stable, pcrs", "stabel, pcrs"))
    refused = run("cluster", "inventory")
    assert (refused.out, refused.status) == ("", 1)
    assert "no channel is named 'stabel'; did you mean 'stable'?" in refused.err


def test_the_page_s_sample_is_an_inventory() -> None:
    text = PAGE.with_name("inventory.md").read_text().split("```yaml\n")[1].split("```")[0]
    assert {item.key for item in items(text)} >= {"machines", "profiles", "channels", "classes", "racks"}
    assert parse(text, "inventory.yaml").value["machines"]
