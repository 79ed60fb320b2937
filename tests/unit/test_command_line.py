"""The kernel's command line: no script has one whose end would be cut off, and whoever waits for that is told why."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from images.values.kernel_arguments import CONSOLES
from ipxe import values
from ipxe.command_line import LONGEST, CommandLine
from ipxe.render import prepare
from ipxe.values import Boot
from netboot.lifecycle.decide import Boot as Boots
from netboot.lifecycle.decide import Refused, Unavailable, decide_machine
from netboot.lifecycle.published import View
from netboot.machines.classes import Class
from netboot.machines.values import Inventory, Profile, Rack
from tests.commands import Run
from tests.unit.test_decide import IMAGE, ONE, TWO, VIEW
from tests.unit.test_ipxe import BOOT, BOOT_ID, URL

LINE = CommandLine(URL, "gpu-001", "a" * 64, (("http://rack1", "http://rack2"), (URL,)), ("quiet",))


def lines_of(script: str) -> list[str]:
    """Each command line of a script as a kernel gets it on UEFI from an Ethernet card: the image's name comes first."""
    found = re.findall(r"^kernel --timeout 60000 --name (kernel) \S+ (.*?) (?:\|\||&&) .*$", script, re.MULTILINE)
    assert found
    return [f"{name} {line}".replace("${netX/mac:hexhyp}", "52-54-00-12-34-56") for name, line in found]


def test_the_line_and_its_length() -> None:
    assert " ".join(LINE.words(BOOT_ID, nonce=True)) == (
        f"initrd=initrd initrd=nonce netboot.boot={BOOT_ID} netboot.image={'a' * 64} netboot.report={URL} "
        f"netboot.origins=http://rack1,http://rack2,,{URL} BOOTIF=01-${{netX/mac:hexhyp}} "
        "systemd.hostname=gpu-001 quiet"
    )
    assert LINE.length == 323
    assert LINE.too_long({"profile x": ("quiet",)}) == ()


arguments = st.lists(st.integers(1, 200).map(lambda size: "a" * size), max_size=20).map(tuple)
origins = st.lists(st.integers(1, 280).map(lambda size: f"http://{'h' * size}"), min_size=1, max_size=8).map(tuple)


@given(arguments, st.lists(origins, min_size=1, max_size=3).map(tuple), st.booleans(), st.booleans())
def test_no_script_has_a_line_that_would_be_cut(
    said: tuple[str, ...], groups: tuple[tuple[str, ...], ...], nonce: bool, from_origin: bool
) -> None:
    """Whatever is declared: a script whose lines all reach the kernel, or none."""
    kernel_from = groups[0][0] if from_origin else URL
    fields = BOOT.model_dump() | {"arguments": said, "origins": groups, "nonce": nonce, "kernel_from": kernel_from}
    line = CommandLine(URL, "gpu-001", "a" * 64, groups, said)
    try:
        script = prepare(Boot.model_validate(fields)).fill(BOOT_ID).decode()
    except ValueError:
        assert line.length > LONGEST
        return
    counted = line.length - (0 if nonce else len(" initrd=nonce"))
    assert {len(one) for one in lines_of(script)} == {counted}
    assert counted <= 2046


def with_arguments(size: int) -> str:
    """A script whose line has so many bytes more than one that says `quiet`."""
    words = tuple("a" * min(150, size - at) for at in range(0, size, 151))
    fields = {"arguments": ("quiet", *words), "nonce": True}
    return prepare(Boot.model_validate(BOOT.model_dump() | fields)).fill(BOOT_ID).decode()


def test_the_longest_line_and_one_byte_more() -> None:
    (line,) = lines_of(with_arguments(2046 - 323 - 1))
    assert len(line) == 2046
    with pytest.raises(ValueError) as refused:
        with_arguments(2046 - 323)
    assert str(refused.value) == (
        "its kernel's command line would have 2047 bytes, and 2046 reach every kernel: the end would be "
        "cut off; of them netboot.origins 64; the service sets the others; shorten it by 1: fewer or shorter origins "
        "(of rack, class, site), fewer or shorter kernel_arguments"
    )


def long(letter: str, count: int) -> tuple[str, ...]:
    return tuple(f"{letter}{number:02d}={'x' * 96}" for number in range(count))


def view(of_profile: tuple[str, ...], of_class: tuple[str, ...] = (), of_rack: tuple[str, ...] = ()) -> View:
    """Machine `one` has a class and a rack, `two` neither; `of_profile`: of the profile of both."""
    inventory = Inventory(
        machines=(ONE.model_copy(update={"class_name": "hgx", "rack": "r1"}), TWO),
        profiles=(Profile(name="default", channel="stable", kernel_arguments=of_profile),),
        channels=VIEW.snapshot.inventory.channels,
        classes=(Class(name="hgx", kernel_arguments=of_class),),
        racks=(Rack(name="r1", origins=of_rack),),
    )
    return View.of(VIEW.snapshot.model_copy(update={"inventory": inventory}))


def test_a_machine_whose_line_is_too_long_waits_and_says_why_and_no_other_does() -> None:
    """What a profile says in the place of its class's is counted once."""
    near = tuple(f"http://cache-{number}.rack-1.example:8080" for number in range(8))
    one = view((*long("p", 6), "quiet"), (*long("c", 9), "p00=1", "quiet"), near)
    decision = decide_machine(one, one.snapshot.inventory.machines[0])
    sizes = "arguments of class hgx 908, arguments of profile default 611, netboot.origins 331"
    assert decision == Refused(
        reason="command-line",
        machines=("one",),
        because=(
            "machine one (inventory)",
            "profile default uses channel stable",
            "channel stable is image debian-12-minimal aaaaaaaaaaaa",
            f"rack r1 has origins of its own: {', '.join(near)}",
            "its kernel's command line would have 2137 bytes, and 2046 reach every kernel: the end would be cut off",
            f"of them {sizes}; the service sets the others",
            "shorten it by 91: fewer or shorter origins (of rack, class, site), fewer or shorter kernel_arguments",
        ),
    )
    assert all(len(values.shown(words)) == len(words) for words in decision.because[-3:])
    assert isinstance(decide_machine(one, TWO), Boots)


@given(arguments, arguments, arguments)
def test_whoever_boots_gets_a_script(
    of_image: tuple[str, ...], of_profile: tuple[str, ...], of_class: tuple[str, ...]
) -> None:
    one = view(of_profile, of_class)
    image = IMAGE.model_copy(update={"kernel_arguments": of_image})
    one = View.of(one.snapshot.model_copy(update={"images": {image.digest: image}}))
    decision = decide_machine(one, one.snapshot.inventory.machines[0])
    assert not isinstance(decision, Unavailable)
    cut = one.cut(one.snapshot.inventory.machines[0], image)
    assert (decision.outcome, bool(cut)) in {("boot", False), ("refused", True)}
    if isinstance(decision, Boots):
        URLS.validate_python(decision.origins)
        fields = {"machine": "one", "origins": decision.origins, "arguments": decision.kernel_arguments}
        prepare(Boot.model_validate(BOOT.model_dump() | fields))


URLS: TypeAdapter[tuple[tuple[str, ...], ...]] = TypeAdapter(tuple[tuple[values.Url, ...], ...])


def test_the_consoles_that_nobody_says_are_counted() -> None:
    machine = TWO.model_copy(update={"name": "m"})
    consoles = len(" ".join(("", *CONSOLES["amd64"])))
    bare = CommandLine(URL, "m", "0" * 64, (("http://cache", URL),)).length
    room = LONGEST - bare - consoles
    fits = tuple("a" * min(150, room - 1 - at) for at in range(0, room - 1, 151))
    assert len(" ".join(("", *fits))) == room
    assert view(fits).cut(machine, None) == ()
    assert (
        view((*fits[:-1], fits[-1] + "a"))
        .cut(machine, None)[0]
        .startswith("its kernel's command line would have 2047 bytes")
    )


WORDY = "  channel: stable\n  pcrs: none\n  kernel_arguments:\n" + "".join(f"  - {word}\n" for word in long("p", 18))
"""The rest of a profile with more arguments than a kernel takes."""


@pytest.fixture
def site(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new site, in which the test is."""
    assert run("init", tmp_path / "site", "--url", URL, "--site", "lab").status == 0
    monkeypatch.chdir(tmp_path / "site")
    return tmp_path / "site"


def test_config_check_says_it_of_those_machines_alone(site: Path, run: Run) -> None:
    """In one sentence for all that are alike; without an image, as in a pipeline that checks an edit."""
    Path("inventory/machines.yaml").write_text(
        f"profiles:\n- name: wordy\n{WORDY}machines:\n"
        "- {name: fine, profile: default, pcrs: none, match: {serial: S1}}\n"
        "- {name: gpu-001, profile: wordy, match: {serial: S2}}\n"
        "- {name: gpu-002, profile: wordy, match: {serial: S3}}\n"
    )
    found = run("config", "check")
    assert (found.status, found.out) == (1, "")
    assert found.err == (
        f"{site}/inventory/machines.yaml:26: machines[1].profile: machine gpu-001, and 1 more of its "
        "profile, class and rack will not boot: its kernel's command line would have 2144 bytes, and 2046 reach every "
        "kernel: the end would be cut off; of them arguments of profile wordy 1817, netboot.origins 37; the service "
        "sets the others; shorten it by 98: fewer or shorter origins (of rack, class, site), fewer or shorter "
        "kernel_arguments\n"
    )


def test_a_machine_of_the_same_name_as_a_profile_is_told_by_its_own_line(site: Path, run: Run) -> None:
    Path("inventory/machines.yaml").write_text(
        f"machines:\n- {{name: storage, profile: storage, match: {{serial: S1}}}}\nprofiles:\n- name: storage\n{WORDY}"
    )
    place = f"{site}/inventory/machines.yaml:2: machines[0].profile: machine storage will not boot: "
    assert run("config", "check").err.startswith(place)
