"""Whole scripts as literals; nothing that a client says can change their structure."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from images.values import types
from images.values.kernel_arguments import KernelArgument
from ipxe import values
from ipxe.render import chain_script, prepare, waiting_script
from ipxe.values import Boot, Chain, Waiting, shown

URL = "http://192.0.2.1:8080"
BOOT_ID = "018bcfe5-6800-8fff-bfff-c8dd6b13e782"
BOOT = Boot(
    url=URL,
    machine="gpu-001",
    image="a" * 64,
    kernel="b" * 64,
    initrd="c" * 64,
    origins=(("http://rack1", "http://rack2"), (URL,)),
    kernel_from=URL,
    arguments=("quiet", "console=ttyS0,115200n8"),
    seconds=7,
)


def test_the_chain_script() -> None:
    assert chain_script(Chain(url="http://[2001:db8::1]:8080", seconds=5)).decode() == (
        "#!ipxe\n"
        "# netboot: says who this machine is, fetches its script, and asks again for as long as it takes.\n"
        ":ask\n"
        "isset ${netX/ip} || isset ${netX/ip6} || dhcp || goto wait\n"
        "chain --replace --autofree --timeout 30000 http://[2001:db8::1]:8080/v1/boot"
        "?mac=${netX/mac:hexhyp}&uuid=${uuid}&arch=${buildarch}&platform=${platform}&serial=${serial:uristring} ||\n"
        ":wait\n"
        "echo netboot: no script from http://[2001:db8::1]:8080, asking again in 5 seconds\n"
        "sleep 5 ||\n"
        "dhcp ||\n"
        "goto ask\n"
    )


def test_the_boot_script() -> None:
    assert prepare(BOOT).fill(BOOT_ID).decode() == (
        "#!ipxe\n"
        f"# netboot: machine gpu-001, image {'a' * 64}\n"
        "imgfree ||\n"
        f"echo netboot: gpu-001 boots image aaaaaaaaaaaa, boot {BOOT_ID}\n"
        f"kernel --timeout 60000 --name kernel {URL}/v1/blobs/{'b' * 64}?boot={BOOT_ID}&machine=gpu-001"
        f" initrd=initrd netboot.boot={BOOT_ID} netboot.image={'a' * 64} netboot.report={URL}"
        f" netboot.origins=http://rack1,http://rack2,,{URL} BOOTIF=01-${{netX/mac:hexhyp}} systemd.hostname=gpu-001"
        " quiet console=ttyS0,115200n8 || goto retry\n"
        f"initrd --timeout 60000 --name initrd {URL}/v1/blobs/{'c' * 64}?boot={BOOT_ID}&machine=gpu-001 || goto retry\n"
        "boot ||\n"
        ":retry\n"
        "imgfree ||\n"
        "echo netboot: gpu-001 could not start image aaaaaaaaaaaa, asking again in 7 seconds\n"
        "sleep 7 ||\n"
        f"chain --replace --autofree --timeout 30000 {URL}/boot.ipxe ||\n"
        "goto retry\n"
    )


def test_kernel_and_initrd_from_an_origin_and_from_the_service_where_that_fails() -> None:
    """The boot's id is in no URL of an origin, whose caches keep one copy for all machines."""
    arguments = (
        f"initrd=initrd netboot.boot={BOOT_ID} netboot.image={'a' * 64} netboot.report={URL}"
        f" netboot.origins=http://rack1,http://rack2,,{URL} BOOTIF=01-${{netX/mac:hexhyp}} systemd.hostname=gpu-001"
        " quiet console=ttyS0,115200n8"
    )
    assert prepare(BOOT.model_copy(update={"kernel_from": "http://rack1"})).fill(BOOT_ID).decode() == (
        "#!ipxe\n"
        f"# netboot: machine gpu-001, image {'a' * 64}\n"
        "imgfree ||\n"
        f"echo netboot: gpu-001 boots image aaaaaaaaaaaa, boot {BOOT_ID}\n"
        f"kernel --timeout 60000 --name kernel http://rack1/v1/blobs/{'b' * 64} {arguments} && goto initrd ||\n"
        f"echo netboot: no kernel from http://rack1, asking {URL}\n"
        f"kernel --timeout 60000 --name kernel {URL}/v1/blobs/{'b' * 64}?boot={BOOT_ID}&machine=gpu-001 {arguments}"
        " || goto retry\n"
        ":initrd\n"
        f"initrd --timeout 60000 --name initrd http://rack1/v1/blobs/{'c' * 64} && goto fetched ||\n"
        f"echo netboot: no initrd from http://rack1, asking {URL}\n"
        f"initrd --timeout 60000 --name initrd {URL}/v1/blobs/{'c' * 64}?boot={BOOT_ID}&machine=gpu-001 || goto retry\n"
        ":fetched\n"
        "boot ||\n"
        ":retry\n"
        "imgfree ||\n"
        "echo netboot: gpu-001 could not start image aaaaaaaaaaaa, asking again in 7 seconds\n"
        "sleep 7 ||\n"
        f"chain --replace --autofree --timeout 30000 {URL}/boot.ipxe ||\n"
        "goto retry\n"
    )


def test_the_boot_script_of_a_machine_whose_boot_window_is_open() -> None:
    """A UEFI kernel loads the files that `initrd=` names, in that order; BIOS passes all that were fetched."""
    assert prepare(BOOT.model_copy(update={"nonce": True})).fill(BOOT_ID).decode() == (
        "#!ipxe\n"
        f"# netboot: machine gpu-001, image {'a' * 64}\n"
        "imgfree ||\n"
        f"echo netboot: gpu-001 boots image aaaaaaaaaaaa, boot {BOOT_ID}\n"
        f"kernel --timeout 60000 --name kernel {URL}/v1/blobs/{'b' * 64}?boot={BOOT_ID}&machine=gpu-001"
        f" initrd=initrd initrd=nonce netboot.boot={BOOT_ID} netboot.image={'a' * 64} netboot.report={URL}"
        f" netboot.origins=http://rack1,http://rack2,,{URL} BOOTIF=01-${{netX/mac:hexhyp}} systemd.hostname=gpu-001"
        " quiet console=ttyS0,115200n8 || goto retry\n"
        f"initrd --timeout 60000 --name initrd {URL}/v1/blobs/{'c' * 64}?boot={BOOT_ID}&machine=gpu-001 || goto retry\n"
        f"initrd --timeout 60000 --name nonce {URL}/v1/boots/{BOOT_ID}/nonce"
        "?machine=gpu-001&mac=${netX/mac:hexhyp} || goto retry\n"
        "boot ||\n"
        ":retry\n"
        "imgfree ||\n"
        "echo netboot: gpu-001 could not start image aaaaaaaaaaaa, asking again in 7 seconds\n"
        "sleep 7 ||\n"
        f"chain --replace --autofree --timeout 30000 {URL}/boot.ipxe ||\n"
        "goto retry\n"
    )


def test_the_waiting_script() -> None:
    values = Waiting(
        url=URL,
        headline="refused: what this machine says of itself belongs to more than one machine (one, two)",
        lines=("MAC 52:54:00:00:00:02", "channel empty has no image yet: run `netboot channel set empty <image>`"),
        seconds=30,
    )
    assert waiting_script(values).decode() == (
        "#!ipxe\n"
        "imgfree ||\n"
        "echo netboot: refused: what this machine says of itself belongs to more than one machine (one, two)\n"
        "echo netboot: - MAC 52:54:00:00:00:02\n"
        "echo netboot: - channel empty has no image yet: run `netboot channel set empty <image>`\n"
        ":wait\n"
        "echo netboot: asking again in 30 seconds\n"
        "sleep 30 ||\n"
        f"chain --replace --autofree --timeout 30000 {URL}/boot.ipxe ||\n"
        "goto wait\n"
    )


def every_script() -> list[str]:
    waiting = Waiting(url=URL, headline="x", lines=("y",), seconds=1)
    with_nonce = prepare(BOOT.model_copy(update={"nonce": True})).fill(BOOT_ID)
    scripts = [
        chain_script(Chain(url=URL, seconds=1)),
        prepare(BOOT).fill(BOOT_ID),
        with_nonce,
        waiting_script(waiting),
    ]
    return [script.decode() for script in scripts]


@pytest.mark.parametrize("script", every_script())
def test_no_script_ends_or_falls_through_to_the_next_boot_device(script: str) -> None:
    """iPXE leaves a script at the first line that fails, and at its end (src/image/script.c)."""
    lines = script.splitlines()
    labels = {line[1:] for line in lines if line.startswith(":")}
    assert lines[-1].removeprefix("goto ") in labels
    for line in lines[1:-1]:
        cannot_fail = line.startswith(("#", ":", "echo netboot: "))
        assert cannot_fail or line.endswith((" ||", *(f" || goto {label}" for label in labels))), line
        assert not re.search(r"\b(exit|shell|sanboot|autoboot|config|login|reboot|poweroff)\b", line)


@pytest.mark.parametrize("script", every_script())
def test_every_way_round_waits(script: str) -> None:
    lines = script.splitlines()
    back = next(line for line in reversed(lines) if line.startswith("goto ")).removeprefix("goto ")
    assert any(line.startswith("sleep ") for line in lines[lines.index(f":{back}") :])


def test_a_script_rendered_ahead_gets_the_boot_s_id_in_every_place() -> None:
    prepared, other = prepare(BOOT), BOOT_ID.replace("0", "1")
    assert prepared.fill(BOOT_ID).count(BOOT_ID.encode()) == 4
    assert prepared.fill(other) == prepared.fill(BOOT_ID).replace(BOOT_ID.encode(), other.encode())


HOSTILE = [
    *(
        "",
        " ",
        "a b",
        "a\nb",
        "a\r",
        "a\\",
        "${x}",
        "a||b",
        "a&&b",
        "a;b",
        "#a",
        "a#b",
        '"',
        "'",
        "`",
        "é",
        "\0",
        "a\tb",
    ),
    *("{{ x }}", "{% x %}", "a" * 301),
]


@pytest.mark.parametrize(
    "field", ["url", "machine", "image", "kernel", "initrd", "origins", "kernel_from", "arguments"]
)
@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_hostile_passes_into_a_boot_script(field: str, text: str) -> None:
    value = {"origins": ((text,),), "arguments": (text,)}.get(field, text)
    with pytest.raises(ValidationError):
        Boot.model_validate({**BOOT.model_dump(), field: value})


@pytest.mark.parametrize("seconds", [0, -1, 3601])
def test_waits_have_bounds(seconds: int) -> None:
    with pytest.raises(ValidationError):
        Chain(url=URL, seconds=seconds)


@given(st.text(max_size=400))
def test_shown_is_one_safe_line_of_a_console(text: str) -> None:
    line = shown(text)
    assert re.fullmatch(r"[A-Za-z0-9 .,:/()@_+='`<>?-]{0,200}", line)
    assert line == shown(line) == line.strip()


def test_shown_keeps_what_can_be_shown() -> None:
    assert shown("serial VMware-56 4d/8a (inventory)") == "serial VMware-56 4d/8a (inventory)"
    assert shown("a\nb;c#d$e{f}\\") == "a?b?c?d?e?f??"
    assert shown("x" * 300) == "x" * 200


@given(st.lists(st.text(max_size=300), min_size=4, max_size=4), st.text(max_size=100))
def test_whatever_a_client_says_the_structure_stays(said: list[str], headline: str) -> None:
    script = waiting_script(Waiting(url=URL, headline=headline, lines=tuple(said), seconds=30)).decode("ascii")
    lines = script.split("\n")
    assert lines[:2] == ["#!ipxe", "imgfree ||"]
    assert all(line.startswith("echo netboot:") for line in lines[2:7])
    assert lines[7:] == [
        ":wait",
        "echo netboot: asking again in 30 seconds",
        "sleep 30 ||",
        f"chain --replace --autofree --timeout 30000 {URL}/boot.ipxe ||",
        "goto wait",
        "",
    ]
    assert not re.search(r"\$|\{|\\|;|#(?!!ipxe)|[^\n -~]", script)
    assert all("||" not in line and "&&" not in line for line in lines[2:7])


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [(values.Name, types.Name), (values.Digest, types.Sha256), (values.Argument, KernelArgument)],
)
def test_what_a_script_takes_is_what_inventory_and_images_may_say(ours: Any, theirs: Any) -> None:
    """Scripts are a library of their own, so the patterns stand twice: were they to differ, a machine got no script."""
    inner = TypeAdapter(ours).json_schema()["pattern"].removeprefix("^").removesuffix("$")
    assert TypeAdapter(theirs).json_schema()["pattern"] == f"^({inner})$"


def test_a_script_takes_every_url_of_the_configuration() -> None:
    assert TypeAdapter(values.Url).json_schema() == TypeAdapter(types.HttpUrl).json_schema()
