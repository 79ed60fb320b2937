"""One list of reserved kernel arguments: recipes, manifests, profiles, scripts and the shell that reads them agree."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from images.values.faults import first_fault
from images.values.kernel_arguments import PREFIX, RESERVED, ProfileArgument, RecipeArgument, command_line, replaced
from ipxe.render import prepare
from ipxe.values import Boot

IMAGES = Path(__file__).parents[2] / "images"
RECIPE: TypeAdapter[str] = TypeAdapter(RecipeArgument)
PROFILE: TypeAdapter[str] = TypeAdapter(ProfileArgument)
OF_THE_SERVICE = {name for name, reserved in RESERVED.items() if not reserved.by_profile}
OF_PROFILES = RESERVED.keys() - OF_THE_SERVICE
OF_THE_NETWORK = {"ip", "bond", "vlan", "nameserver"}


def refusal(adapter: TypeAdapter[Any], argument: str) -> str:
    with pytest.raises(ValidationError) as caught:
        adapter.validate_python(argument)
    return str(first_fault(caught.value))


@pytest.mark.parametrize("name", sorted(OF_THE_SERVICE))
@pytest.mark.parametrize("adapter", [RECIPE, PROFILE], ids=["recipe", "profile"])
@pytest.mark.parametrize("value", ["", "=", "=x", "=a=b"])
def test_nobody_sets_what_the_service_sets(name: str, adapter: TypeAdapter[str], value: str) -> None:
    assert refusal(adapter, name + value) == f"{name!r} is set by the service for every boot; leave it out"


@pytest.mark.parametrize("name", sorted(OF_PROFILES))
def test_what_differs_from_machine_to_machine_is_for_a_profile(name: str) -> None:
    assert PROFILE.validate_python(f"{name}=x") == f"{name}=x"
    assert (
        refusal(RECIPE, f"{name}=x") == f"{name!r} is for a profile or a class of the inventory; a recipe cannot set it"
    )


@pytest.mark.parametrize("adapter", [RECIPE, PROFILE], ids=["recipe", "profile"])
def test_a_name_of_ours_that_nobody_reads_is_a_slip(adapter: TypeAdapter[str]) -> None:
    assert refusal(adapter, "netboot.disk=wipe") == (
        "'netboot.disk' is read by nobody; of the names in netboot.… a profile may set "
        "netboot.active, netboot.debug, netboot.disks, netboot.netconsole, netboot.sriov, netboot.ssh, "
        "netboot.store_mib, netboot.nic_driver"
    )


@pytest.mark.parametrize("adapter", [RECIPE, PROFILE], ids=["recipe", "profile"])
@pytest.mark.parametrize(
    "argument", ["quiet", "console=ttyS0,115200n8", "initrdmem=1", "BOOTIFACE=x", "systemd.unit=x"]
)
def test_all_else_is_free(adapter: TypeAdapter[str], argument: str) -> None:
    assert adapter.validate_python(argument) == argument


@pytest.mark.parametrize("nonce", [False, True])
def test_a_script_sets_those_of_the_service_and_no_other(nonce: bool) -> None:
    digest, url = "a" * 64, "http://192.0.2.1"
    boot = Boot(
        url=url,
        machine="m",
        image=digest,
        kernel=digest,
        initrd=digest,
        origins=((url,),),
        kernel_from=url,
        seconds=9,
        nonce=nonce,
    )
    text = prepare(boot).fill("01890a5d-ac96-874b-9e3c-5b3f1c2d4e5f").decode()
    (line,) = (line for line in text.splitlines() if line.startswith("kernel "))
    words = line.partition("?boot=")[2].partition(" || ")[0].split()[1:]
    assert {word.partition("=")[0] for word in words} == OF_THE_SERVICE


SPEED = "console=tty0 console=ttyS0,115200n8"


@pytest.mark.parametrize(
    ("image", "profile", "line"),
    [
        ("", "", SPEED),
        ("panic=30", "", f"{SPEED} panic=30"),
        ("panic=30 quiet", "panic=0", f"{SPEED} quiet panic=0"),
        ("panic=30 console=hvc0", "", "panic=30 console=hvc0"),
        ("console=tty0 console=ttyS0 panic=30", "console=ttyS1,57600", "panic=30 console=ttyS1,57600"),
        ("", "console=tty0 console=ttyS1,115200n8", "console=tty0 console=ttyS1,115200n8"),
        (
            "intel-iommu=off systemd.mask=a systemd.mask=b",
            "intel_iommu=on console=ttyS0",
            ("systemd.mask=a systemd.mask=b intel_iommu=on console=ttyS0"),
        ),
        ("systemd.mask=a systemd.mask=b", "systemd.mask=c quiet", f"{SPEED} systemd.mask=c quiet"),
        (
            "",
            "hugepagesz=1G hugepages=4 hugepagesz=2M hugepages=4",
            (f"{SPEED} hugepagesz=1G hugepages=4 hugepagesz=2M hugepages=4"),
        ),
    ],
)
def test_the_profile_replaces_by_name_and_a_console_is_there(image: str, profile: str, line: str) -> None:
    assert " ".join(command_line(image.split(), profile.split(), "amd64")) == line


def test_an_arm64_machine_has_the_console_of_its_kind() -> None:
    assert command_line(["panic=30"], [], "arm64") == ("console=tty0", "console=ttyAMA0", "panic=30")


WORDS = st.lists(st.from_regex(r"[ab_-]{1,2}(=[xy])?", fullmatch=True), max_size=6)


@given(WORDS, WORDS)
def test_who_says_a_name_says_all_of_it(old: list[str], new: list[str]) -> None:
    """The new ones are there as they were said, after those of other names, which are as they were."""
    both = replaced(old, new)
    assert both[len(both) - len(new) :] == tuple(new)
    names = {word.partition("=")[0].replace("-", "_") for word in new}
    assert both[: len(both) - len(new)] == tuple(
        word for word in old if word.partition("=")[0].replace("-", "_") not in names
    )


def read_by(files: list[Path]) -> set[str]:
    """The names of ours that shell looks for: `netboot.x=` in a `case`, or in a regular expression."""
    found = set()
    for file in files:
        text = file.read_text().replace("\\.", ".")
        found |= set(re.findall(rf"({re.escape(PREFIX)}[a-z_]+|BOOTIF|systemd\.hostname)=", text))
        for names in re.findall(r"^ *([\w.| ]+)\) read_network_argument ", text, re.MULTILINE):
            found |= set(names.split(" | "))
    return found


def test_the_shell_and_the_active_tests_read_nothing_else() -> None:
    initrd = read_by(list((IMAGES / "node/initrd").iterdir()))
    assert initrd == OF_THE_SERVICE - {"initrd"} | {"netboot.debug", "netboot.nic_driver", *OF_THE_NETWORK}
    features = read_by([*IMAGES.glob("recipes/**/*.sh"), *IMAGES.glob("node/*/usr/lib/netboot/*")])
    active = read_by(list(IMAGES.glob("node/health/active/*.py")))
    assert active == {"netboot.active"}
    assert initrd | features | active | {"initrd"} == set(RESERVED)
