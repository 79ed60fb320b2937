"""The kernel command line is written by anybody: what passes, what is refused, and in which words."""

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from images.values.types import HttpUrl
from tests.tools.images.boot_stage import Stage

pytestmark = pytest.mark.tools

BOOT = "netboot.boot=01890a5d-ac96-874b-9e3c-5b3f1c2d4e5f"
IMAGE = f"netboot.image={'a1' * 32}"
REPORT = "netboot.report=http://10.0.2.2:8080"
ORIGINS = "netboot.origins=http://10.0.2.2:8080,http://[fd00::1]:81/x/,http://origin.example"
GOOD = f"{BOOT} {IMAGE} {REPORT} {ORIGINS} BOOTIF=01-52-54-00-AB-cd-ef systemd.hostname=node-1.rack-2"
SHOW = 'echo "$BOOT|$IMAGE|$REPORT|$(echo $ORIGINS)|$MAC|$NAME|$DEBUG"'


def read(stage: Stage, line: str) -> str:
    (stage.folder / "cmdline").write_bytes(line.encode() + b"\n")
    return stage.sh(f'read_command_line cmdline && {SHOW} || echo "$REASON"').stdout.removesuffix("\n")


def test_a_whole_command_line(stage: Stage) -> None:
    assert read(stage, f"console=ttyS0 panic=30 {GOOD} quiet * /etc/*") == (
        f"01890a5d-ac96-874b-9e3c-5b3f1c2d4e5f|{'a1' * 32}|http://10.0.2.2:8080|"
        "http://10.0.2.2:8080 http://[fd00::1]:81/x http://origin.example|52:54:00:ab:cd:ef|node-1.rack-2|"
    )


def test_what_may_lack(stage: Stage) -> None:
    line = f"{BOOT} {IMAGE} {REPORT}/ netboot.origins=http://a netboot.debug=shell"
    assert (
        read(stage, line) == f"01890a5d-ac96-874b-9e3c-5b3f1c2d4e5f|{'a1' * 32}|http://10.0.2.2:8080|http://a|||shell"
    )


@pytest.mark.parametrize(
    ("good", "bad", "name", "shown"),
    [
        (BOOT, "", "netboot.boot", ""),
        (BOOT, "netboot.boot=../../etc", "netboot.boot", "../../etc"),
        (BOOT, BOOT + "0", "netboot.boot", "01890a5d-ac96-874b-9e3c-5b3f1c2d4e5f0"),
        (IMAGE, "netboot.image=" + "A1" * 32, "netboot.image", "A1" * 32),
        (IMAGE, "netboot.image=$(reboot)", "netboot.image", "$(reboot)"),
        (REPORT, "netboot.report=ftp://x", "netboot.report", "ftp://x"),
        (REPORT, "netboot.report=http://user@host", "netboot.report", "http://user@host"),
        (ORIGINS, "netboot.origins=", "netboot.origins", ""),
        (ORIGINS, "netboot.origins=http://a,http://b;reboot", "netboot.origins", "http://b;reboot"),
        ("BOOTIF=01-52-54-00-AB-cd-ef", "BOOTIF=01-52-54-00", "BOOTIF", "52:54:00"),
        ("node-1.rack-2", "Node_1", "systemd.hostname", "Node_1"),
        ("node-1.rack-2", 'a"b', "systemd.hostname", 'a"b'),
    ],
)
def test_a_bad_value_is_refused_by_name(stage: Stage, good: str, bad: str, name: str, shown: str) -> None:
    assert (
        read(stage, GOOD.replace(good, bad)) == f"the kernel's command line has no usable {name} (it says: '{shown}')"
    )


@pytest.mark.parametrize(
    ("text", "expression", "matches"),
    [
        ("", "[a-z]*", True),
        ("-f", "-[a-z]", True),
        ("!", "!", True),
        ("a b", "a b|c", True),
        ("c", "a b|c", True),
        ("*", "[*]", True),
        ("ab", "a", False),
        ("ba", "a", False),
        ("", "a", False),
        ("a\nb", "a", False),
        ("b\na", "a", False),
        ("a b", "a", False),
        ("abc", "ab|b", False),
    ],
)
def test_a_text_matches_as_a_whole_or_not_at_all(stage: Stage, text: str, expression: str, matches: bool) -> None:
    assert stage.sh('matches "$TEXT" "$EXPRESSION" && echo yes', TEXT=text, EXPRESSION=expression).stdout == (
        "yes\n" if matches else ""
    )


def test_origins_with_tls_are_left_out_with_words(stage: Stage) -> None:
    line = GOOD.replace("http://10.0.2.2:8080,", "https://10.0.2.2,")
    assert "|http://[fd00::1]:81/x http://origin.example|" in read(stage, line)
    assert read(stage, GOOD.replace(ORIGINS, "netboot.origins=https://a,https://b")) == (
        "the kernel's command line has no netboot.origins with plain HTTP"
    )


def test_a_refused_name_does_not_get_into_an_event(stage: Stage) -> None:
    (stage.folder / "cmdline").write_text(GOOD.replace("node-1.rack-2", 'x","phase":"Booted') + "\n")
    stage.sh('read_command_line cmdline; report Failed "$REASON"')
    (event,) = (stage.run_folder / "events").glob("*.json")
    assert '"machine":null' in event.read_text()


URL = TypeAdapter(HttpUrl)
WORDS = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=20)
URLS = st.one_of(
    WORDS,
    WORDS.map("http://".__add__),
    st.from_regex(
        re.compile(r"https?://(\[[0-9a-f:]+\]|[A-Za-z0-9.-]+)(:[0-9]{1,6})?(/[A-Za-z0-9._~/%?-]*)?"), fullmatch=True
    ),
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(URLS.filter(lambda url: "'" not in url), min_size=1, max_size=40))
@example(["http://[::1]", "http://a:123456", "http://a/%41", "http://", "http://a?b", "-e", "http://a\\n"])
def test_the_shell_and_the_bundle_agree_on_what_a_url_is(stage: Stage, urls: list[str]) -> None:
    script = "".join(f"is_url '{url}' && echo yes || echo no\n" for url in urls)
    assert stage.sh(script).stdout.split() == ["yes" if accepted(url) else "no" for url in urls]


def accepted(url: str) -> bool:
    try:
        URL.validate_python(url)
    except ValidationError:
        return False
    return True


def test_modules_load_in_order_and_a_failure_is_said(stage: Stage) -> None:
    library = stage.folder / "library"
    library.mkdir()
    (library / "modules.order").write_text("b.ko\na.ko\n")
    insmod = 'insmod() { m=${1##*/}; echo "$m" >>loaded; [ "$m" != b.ko ] || { echo no device; return 1; }; }'
    script = f"LIB={library}\n{insmod}\nload_modules"
    assert stage.sh(script).stdout == "netboot: module b.ko: no device\n"
    assert Path(stage.folder / "loaded").read_text() == "b.ko\na.ko\n"


@pytest.mark.parametrize(
    ("said", "loaded"),
    [
        ({}, "a.ko\n"),
        ({"VLAN": "vlan5"}, "a.ko\n8021q.ko\n"),
        ({"BOND": "bond0"}, "a.ko\nbonding.ko max_bonds=0\n"),
    ],
)
def test_bonding_and_vlans_are_loaded_where_they_are_wanted(stage: Stage, said: dict[str, str], loaded: str) -> None:
    library = stage.folder / "library"
    library.mkdir()
    (library / "modules.order").write_text("a.ko\nbonding.ko\n8021q.ko\n")
    insmod = 'insmod() { file=${1##*/}; shift; echo "$file" "$@" >>loaded; }'
    stage.sh(f"LIB={library}\n{insmod}\nload_modules", **said)
    assert Path(stage.folder / "loaded").read_text() == loaded
