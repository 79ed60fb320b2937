"""The boot decision as a table; what each outcome tells the machine."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from images.artifact.manifest import Artifact
from images.recipe.inherit import find, load
from ipxe.render import prepare
from netboot.boot.scripts import boot_values
from netboot.boot.waiting import waiting_values
from netboot.lifecycle.decide import Boot, Claim, Decision, Refused, Unavailable, Unknown, decide, decide_machine
from netboot.lifecycle.published import View
from netboot.lifecycle.snapshot import Assignment, ImageFacts, Snapshot
from netboot.machines.classes import Class
from netboot.machines.values import Channel, Inventory, Machine, Profile, Rack

URL = "http://192.0.2.1:8080"
IMAGE = ImageFacts(
    digest="a" * 64,
    name="debian-12-minimal",
    architecture="amd64",
    epoch=1,
    kernel=Artifact(sha256="b" * 64, size=1),
    initrd=Artifact(sha256="c" * 64, size=1),
    kernel_arguments=("quiet",),
    ram_mib=512,
)


def machine(name: str, **fields: object) -> Machine:
    return Machine.model_validate({"name": name, "profile": "default", **fields})


ONE = machine("one", match={"macs": ["52:54:00:00:00:01"], "serial": "CZ1"})
TWO = machine("two", match={"macs": ["52:54:00:00:00:02"]})
OFF = machine("off", match={"macs": ["52:54:00:00:00:03"]}, enabled=False)
ARM = machine("arm", match={"macs": ["52:54:00:00:00:04"]}, architecture="arm64")
BARE = machine("bare", match={"macs": ["52:54:00:00:00:05"]}, profile="bare")
BROKEN = machine("broken", match={"macs": ["52:54:00:00:00:06"]}, profile="broken")

VIEW = View.of(
    Snapshot(
        site="lab",
        published_ms=1,
        inventory=Inventory(
            machines=(ONE, TWO, OFF, ARM, BARE, BROKEN),
            profiles=(
                Profile(name="default", channel="stable", kernel_arguments=("console=ttyS0",)),
                Profile(name="bare", channel="empty"),
                Profile(name="broken", channel="broken"),
            ),
            channels=(Channel(name="stable"), Channel(name="empty"), Channel(name="broken")),
        ),
        channels={"stable": "a" * 64, "empty": None, "broken": "d" * 64},
        unusable={"broken": "its manifest is signed by a key that is not trusted here"},
        images={"a" * 64: IMAGE},
        url=URL,
        origins=("http://cache", URL),
    )
)


def mac(last: int) -> Claim:
    return Claim(mac=f"52:54:00:00:00:0{last}")


TABLE: list[tuple[str, Claim, Decision]] = [
    (
        "known",
        Claim(mac="52:54:00:00:00:01", serial="CZ1", architecture="amd64"),
        Boot(
            machine=ONE,
            profile=VIEW.profiles["default"],
            channel="stable",
            image=IMAGE,
            kernel_arguments=("quiet", "console=ttyS0"),
            origins=(("http://cache", URL),),
            because=(
                "MAC 52:54:00:00:00:01 and serial CZ1 are machine one (inventory)",
                "profile default uses channel stable",
                "channel stable is image debian-12-minimal aaaaaaaaaaaa",
            ),
        ),
    ),
    (
        "known by one, the other field left out",
        Claim(mac="52:54:00:00:00:02", ignored=("serial: a placeholder, which many machines share",)),
        Boot(
            machine=TWO,
            profile=VIEW.profiles["default"],
            channel="stable",
            image=IMAGE,
            kernel_arguments=("quiet", "console=ttyS0"),
            origins=(("http://cache", URL),),
            because=(
                "left out serial: a placeholder, which many machines share",
                "MAC 52:54:00:00:00:02 is machine two (inventory)",
                "profile default uses channel stable",
                "channel stable is image debian-12-minimal aaaaaaaaaaaa",
            ),
        ),
    ),
    (
        "unknown",
        Claim(mac="52:54:00:00:00:09", serial="ZZ9"),
        Unknown(because=("no machine of the inventory has MAC 52:54:00:00:00:09 or serial ZZ9",)),
    ),
    (
        "nothing said",
        Claim(ignored=("mac: not a MAC address",)),
        Unknown(
            because=(
                "left out mac: not a MAC address",
                "the claim names no machine: it has no usable MAC, UUID or serial",
            )
        ),
    ),
    (
        "ambiguous",
        Claim(mac="52:54:00:00:00:02", serial="CZ1"),
        Refused(
            reason="ambiguous",
            machines=("one", "two"),
            because=(
                "MAC 52:54:00:00:00:02 is machine two (inventory)",
                "serial CZ1 is machine one (inventory)",
                "one machine cannot be one and two: correct the inventory, or the part that was moved",
            ),
        ),
    ),
    (
        "disabled",
        mac(3),
        Refused(
            reason="disabled",
            machines=("off",),
            because=(
                "MAC 52:54:00:00:00:03 is machine off (inventory)",
                "machine off is disabled: set `enabled: true` in the inventory to let it boot",
            ),
        ),
    ),
    (
        "another architecture",
        Claim(mac="52:54:00:00:00:01", architecture="arm64"),
        Refused(
            reason="architecture",
            machines=("one",),
            because=(
                "MAC 52:54:00:00:00:01 is machine one (inventory)",
                "its firmware is arm64, the inventory declares one as amd64",
            ),
        ),
    ),
    (
        "image of another architecture",
        mac(4),
        Unavailable(
            reason="image-unusable",
            machines=("arm",),
            because=(
                "MAC 52:54:00:00:00:04 is machine arm (inventory)",
                "profile default uses channel stable",
                "channel stable is image debian-12-minimal aaaaaaaaaaaa",
                "that image is for amd64 and arm is arm64: give its profile a channel of its own architecture",
            ),
        ),
    ),
    (
        "no image",
        mac(5),
        Unavailable(
            reason="no-image",
            machines=("bare",),
            because=(
                "MAC 52:54:00:00:00:05 is machine bare (inventory)",
                "profile bare uses channel empty",
                "channel empty has no image yet: run `netboot channel set empty <image>`",
            ),
        ),
    ),
    (
        "image unusable",
        mac(6),
        Unavailable(
            reason="image-unusable",
            machines=("broken",),
            because=(
                "MAC 52:54:00:00:00:06 is machine broken (inventory)",
                "profile broken uses channel broken",
                "the image of channel broken cannot be used: its manifest is signed by a key that is not trusted here",
            ),
        ),
    ),
]


@pytest.mark.parametrize(("claim", "decision"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_the_decision(claim: Claim, decision: Decision) -> None:
    assert decide(VIEW, claim) == decision


NEXT = IMAGE.model_copy(update={"digest": "e" * 64, "name": "next"})


def rolling(**changed: object) -> View:
    """A rollout has assigned another image to machine one."""
    assigned = {"one": Assignment(image=NEXT.digest, rollout=7)}
    images = {**VIEW.snapshot.images, NEXT.digest: NEXT}
    return View.of(VIEW.snapshot.model_copy(update={"assigned": assigned, "images": images, **changed}))


def test_what_a_rollout_assigned_is_over_the_channel_s_and_the_decision_says_whose_word_it_is() -> None:
    decision = decide(rolling(), mac(1))
    assert isinstance(decision, Boot)
    assert decision.image == NEXT
    assert decision.because == (
        "MAC 52:54:00:00:00:01 is machine one (inventory)",
        "profile default uses channel stable",
        "rollout 7 of channel stable assigned image next eeeeeeeeeeee",
    )
    other = decide(rolling(), mac(2))
    assert isinstance(other, Boot)
    assert other.image == IMAGE


def test_an_assigned_image_that_cannot_be_used_is_not_replaced_by_the_channel_s() -> None:
    unusable = rolling(images={"a" * 64: IMAGE}, unusable_images={NEXT.digest: "its kernel is not there"})
    assert decide(unusable, mac(1)) == Unavailable(
        reason="image-unusable",
        machines=("one",),
        because=(
            "MAC 52:54:00:00:00:01 is machine one (inventory)",
            "profile default uses channel stable",
            "the image eeeeeeeeeeee that rollout 7 of channel stable assigned cannot be used: its kernel is not there",
        ),
    )


def test_a_machine_with_an_assignment_boots_though_its_channel_s_image_cannot_be_used() -> None:
    broken = rolling(channels={"stable": None, "empty": None, "broken": None}, unusable={"stable": "it is damaged"})
    assert isinstance(decide(broken, mac(1)), Boot)
    assert isinstance(decide(broken, mac(2)), Unavailable)


def test_without_an_inventory_nobody_can_tell() -> None:
    assert decide(None, mac(1)) == Unavailable(
        reason="no-inventory",
        because=("no inventory has been published yet; see `netboot config check` and the log of the service",),
    )


def test_a_machine_by_its_name_gets_what_its_claim_gets() -> None:
    claimed, named = decide(VIEW, mac(1)), decide_machine(VIEW, ONE)
    assert isinstance(claimed, Boot)
    assert named == claimed.model_copy(update={"because": ("machine one (inventory)", *claimed.because[1:])})


def without_image(snapshot: Snapshot) -> Snapshot:
    return snapshot.model_copy(update={"images": {}})


def without_channel(snapshot: Snapshot) -> Snapshot:
    return snapshot.model_copy(update={"channels": {}})


@pytest.mark.parametrize("change", [without_image, without_channel])
def test_a_snapshot_with_holes_means_no_image_and_never_an_error(change: Callable[[Snapshot], Snapshot]) -> None:
    decision = decide(View.of(change(VIEW.snapshot)), mac(1))
    assert isinstance(decision, Unavailable)
    assert decision.reason == "no-image"


def test_what_a_booting_machine_is_told() -> None:
    decision = decide(VIEW, mac(1))
    assert isinstance(decision, Boot)
    told = boot_values(decision, VIEW.snapshot, (5, 20))
    assert told.model_dump(exclude={"seconds"}) == {
        "url": URL,
        "machine": "one",
        "image": "a" * 64,
        "kernel": "b" * 64,
        "initrd": "c" * 64,
        "origins": (("http://cache", URL),),
        "kernel_from": URL,
        "arguments": ("quiet", "console=ttyS0"),
        "nonce": False,
    }
    assert boot_values(decision, VIEW.snapshot, (5, 20), nonce=True) == told.model_copy(update={"nonce": True})


def in_a_rack(*of_rack: str, of_class: tuple[str, ...] = (), kernel_from_origins: bool = False) -> View:
    inventory = VIEW.snapshot.inventory.model_copy(
        update={
            "machines": (ONE.model_copy(update={"rack": "r1", "class_name": "hgx"}), TWO),
            "racks": (Rack(name="r1", origins=of_rack), Rack(name="r2", origins=("http://r2",))),
            "classes": (Class(name="hgx", origins=of_class), Class(name="cpu", origins=("http://cpu",))),
        }
    )
    changed = {"inventory": inventory, "kernel_from_origins": kernel_from_origins}
    return View.of(VIEW.snapshot.model_copy(update=changed))


def test_a_rack_comes_before_a_class_and_a_class_before_the_site() -> None:
    view = in_a_rack("http://near", URL, "http://near2", of_class=("http://fast", "http://near"))
    decision = decide(view, mac(1))
    assert isinstance(decision, Boot)
    assert decision.origins == (("http://near", "http://near2"), ("http://fast",), ("http://cache", URL))
    assert decision.because[-2:] == (
        "rack r1 has origins of its own: http://near, http://near2",
        "class hgx has origins of its own: http://fast, http://near",
    )
    told = boot_values(decision, view.snapshot, (5, 20))
    assert told.origins == decision.origins
    line = f" netboot.origins=http://near,http://near2,,http://fast,,http://cache,{URL} "
    assert line in prepare(told).fill("018bcfe5-6800-8fff-bfff-c8dd6b13e782").decode()
    other = decide(view, mac(2))
    assert isinstance(other, Boot)
    assert other.origins == (("http://cache", URL),)


def test_a_snapshot_without_any_of_it_is_written_as_before() -> None:
    words = VIEW.snapshot.model_dump_json()
    assert [name for name in ("rack", "class", "kernel_from_origins") if name in words] == []
    assert "kernel_from_origins" in in_a_rack(kernel_from_origins=True).snapshot.model_dump_json()


def test_an_origin_of_the_site_that_is_a_racks_too_is_the_racks() -> None:
    decision = decide(in_a_rack("http://cache"), mac(1))
    assert isinstance(decision, Boot)
    assert decision.origins == (("http://cache",), (URL,))


@pytest.mark.parametrize(
    ("of_rack", "asked_for", "expected"),
    [
        (("http://near",), True, {"http://near"}),
        (("http://near",), False, {URL}),
        (("http://near", "http://near2"), True, {"http://near", "http://near2"}),
        ((), True, {"http://cache"}),
    ],
)
def test_kernel_and_initrd_come_from_a_first_origin_where_the_site_says_so(
    of_rack: tuple[str, ...], asked_for: bool, expected: set[str]
) -> None:
    """Of those preferred alike each machine has one, so that not all ask the same."""
    view = in_a_rack(*of_rack, kernel_from_origins=asked_for)
    decision = decide(view, mac(1))
    assert isinstance(decision, Boot)
    machines = [decision.machine.model_copy(update={"name": f"gpu-{number:03d}"}) for number in range(20)]
    decisions = [decision.model_copy(update={"machine": machine}) for machine in machines]
    assert {boot_values(one, view.snapshot, (5, 20)).kernel_from for one in decisions} == expected


DOCUMENTED = Path(__file__).parents[2] / "docs/inventory.md"


@pytest.mark.parametrize(
    ("of_class", "of_profile", "line"),
    [
        (("ip=auto6", "panic=7"), (), "console=ttyS0 ip=auto6 panic=7"),
        (("ip=auto6", "console=ttyS1"), ("ip=dhcp",), "panic=5 console=ttyS1 ip=dhcp"),
        ((), ("panic=0",), "console=ttyS0 panic=0"),
    ],
)
def test_arguments_of_the_class_are_between_the_image_s_and_the_profile_s(
    of_class: tuple[str, ...], of_profile: tuple[str, ...], line: str
) -> None:
    inventory = Inventory(
        machines=(machine("one", match={"serial": "CZ1"}, **{"class": "c"}),),
        profiles=(Profile(name="default", channel="stable", kernel_arguments=of_profile),),
        channels=(Channel(name="stable"),),
        classes=(Class(name="c", kernel_arguments=of_class),),
    )
    image = IMAGE.model_copy(update={"kernel_arguments": ("console=ttyS0", "panic=5")})
    snapshot = VIEW.snapshot.model_copy(update={"inventory": inventory, "images": {"a" * 64: image}})
    decision = decide(View.of(snapshot), Claim(serial="CZ1"))
    assert isinstance(decision, Boot)
    assert " ".join(decision.kernel_arguments) == line


SERIAL_OVER_LAN = ("console=tty0", "console=ttyS1,115200n8")


@pytest.mark.parametrize(
    ("profile", "consoles"),
    [((), "console=tty0 console=ttyS0,115200n8 panic=10"), (SERIAL_OVER_LAN, "panic=10 " + " ".join(SERIAL_OVER_LAN))],
    ids=["nothing said", "the documented profile"],
)
def test_the_whole_script_of_a_shipped_recipe(profile: tuple[str, ...], consoles: str) -> None:
    """A console with its speed, by the recipe's own arguments and the profile's, on the line that the kernel gets."""
    documented = re.search(r"kernel_arguments: \[(.*)\]", DOCUMENTED.read_text())
    assert documented is not None and tuple(documented[1].replace('"', "").split(", ")) == SERIAL_OVER_LAN
    image = IMAGE.model_copy(update={"kernel_arguments": load(find("debian-12-cpu")).kernel.arguments})
    inventory = VIEW.snapshot.inventory.model_copy(
        update={"profiles": (Profile(name="default", channel="stable", kernel_arguments=profile),)}
    )
    images = {"a" * 64: image}
    decision = decide(View.of(VIEW.snapshot.model_copy(update={"images": images, "inventory": inventory})), mac(1))
    assert isinstance(decision, Boot)
    boot = "018bcfe5-6800-8fff-bfff-c8dd6b13e782"
    asks = f"?boot={boot}&machine=one"
    assert prepare(boot_values(decision, VIEW.snapshot, (5, 5))).fill(boot).decode() == (
        "#!ipxe\n"
        f"# netboot: machine one, image {'a' * 64}\n"
        "imgfree ||\n"
        f"echo netboot: one boots image aaaaaaaaaaaa, boot {boot}\n"
        f"kernel --timeout 60000 --name kernel {URL}/v1/blobs/{'b' * 64}{asks} initrd=initrd netboot.boot={boot}"
        f" netboot.image={'a' * 64} netboot.report={URL} netboot.origins=http://cache,{URL}"
        f" BOOTIF=01-${{netX/mac:hexhyp}} systemd.hostname=one {consoles} || goto retry\n"
        f"initrd --timeout 60000 --name initrd {URL}/v1/blobs/{'c' * 64}{asks} || goto retry\n"
        "boot ||\n"
        ":retry\n"
        "imgfree ||\n"
        "echo netboot: one could not start image aaaaaaaaaaaa, asking again in 5 seconds\n"
        "sleep 5 ||\n"
        f"chain --replace --autofree --timeout 30000 {URL}/boot.ipxe ||\n"
        "goto retry\n"
    )


def test_waits_after_a_failure_are_spread_over_machines() -> None:
    decision = decide(VIEW, mac(1))
    assert isinstance(decision, Boot)
    waits = set()
    for number in range(400):
        other = decision.model_copy(update={"machine": machine(f"gpu-{number:03}", match={"serial": f"S{number}"})})
        waits.add(boot_values(other, VIEW.snapshot, (5, 20)).seconds)
    assert waits == set(range(5, 21))


@pytest.mark.parametrize(
    ("claim", "headline"),
    [
        (mac(9), "this machine is not in the inventory of site lab"),
        (
            Claim(mac="52:54:00:00:00:02", serial="CZ1"),
            "refused: what this machine says of itself belongs to more than one machine (one, two)",
        ),
        (mac(3), "refused: this machine is disabled (off)"),
        (mac(5), "cannot tell right now what this machine boots"),
    ],
)
def test_what_a_waiting_machine_is_told(claim: Claim, headline: str) -> None:
    decision = decide(VIEW, claim)
    assert not isinstance(decision, Boot)
    told = waiting_values(decision, claim, "lab", URL, 30)
    assert (told.headline, told.url, told.seconds) == (headline, URL, 30)
    assert told.lines == (
        f"MAC {claim.mac}",
        "UUID (none usable)",
        f"serial {claim.serial or '(none usable)'}",
        "architecture (not said)",
        *decision.because,
    )
