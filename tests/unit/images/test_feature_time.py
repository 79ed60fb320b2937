"""Which time servers chrony is told, and how long the kubelet waits for the clock."""

import configparser
from pathlib import Path

import pytest

from images.artifact.bundle import SiteBundle
from tests.unit.images.test_feature_scripts import FEATURES, Host, host

__all__ = ["host"]
RELOADED = ["systemctl --no-block start chrony.service", "chronyc reload sources"]
NOBODY = "netboot-clock: neither the site nor DHCP names a time server; the clock is as the service's time has it\n"
RIGHT = "netboot-clock: the clock is right by the time server 192.0.2.7 (of DHCP)\n"
AT_ONCE = "chronyc waitsync 1 1 0 1"


def site(host: Host, *servers: str) -> None:
    """What the initrd leaves of the signed bundle."""
    url = "http://192.0.2.1"
    bundle = SiteBundle(site="a", issued=1, minimum_epoch=0, origins=(url,), report=url, time_servers=servers)
    path = host.folder / "run/netboot/site.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bundle.to_bytes())


def lease(host: Host, number: int, servers: str) -> None:
    """As systemd-networkd writes it for a card."""
    path = host.folder / f"run/systemd/netif/leases/{number}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f"# This is private data. Do not parse.\nADDRESS=192.0.2.9\nDNS=192.0.2.3\nNTP={servers}\nMTU=1500\n"
    )


def told(host: Host) -> str:
    """The sources that chrony reads, after one more look; empty: no file."""
    for tool in ("systemctl", "chronyc"):
        host.tool(tool)
    status, _, _ = host.run("time", "time.sh")
    assert status == 0
    path = host.folder / "run/chrony-dhcp/netboot.sources"
    return path.read_text() if path.exists() else ""


def test_where_nobody_names_a_server_chrony_has_none(host: Host) -> None:
    site(host)
    assert told(host) == ""
    assert host.run("time", "time.sh") == (0, "", [])


def test_the_site_comes_before_dhcp_and_dhcp_of_all_cards_counts_where_the_site_is_silent(host: Host) -> None:
    site(host)
    lease(host, 2, "192.0.2.7 192.0.2.5")
    lease(host, 3, "192.0.2.7")
    assert told(host) == "# DHCP\nserver 192.0.2.5 iburst\nserver 192.0.2.7 iburst\n"
    site(host, "ntp1.example", "2001:db8::1")
    assert told(host) == "# site\nserver 2001:db8::1 iburst\nserver ntp1.example iburst\n"


def test_a_machine_without_ipv4_has_its_servers_by_dhcpv6(host: Host) -> None:
    path = host.folder / "run/systemd/netif/links/2"
    path.parent.mkdir(parents=True)
    path.write_text("# This is private data. Do not parse.\nADMIN_STATE=configured\nNTP=2001:db8::123 ntp.example\n")
    assert told(host) == "# DHCP\nserver 2001:db8::123 iburst\nserver ntp.example iburst\n"


def test_chrony_is_started_and_told_when_there_is_something_new_and_only_then(host: Host) -> None:
    lease(host, 2, "192.0.2.7")
    told(host)
    calls = host.run("time", "time.sh")[2]
    assert calls == RELOADED
    lease(host, 2, "")
    assert told(host) == ""
    assert host.run("time", "time.sh")[2] == [*RELOADED, *RELOADED]


def test_a_lease_cannot_say_anything_but_eight_names(host: Host) -> None:
    words = ["192.0.2.1;x", "-x", "$(id)", "a/b", "x\tiburst"] + [f"10.0.0.{number}" for number in range(1, 20)]
    lease(host, 2, " ".join(words))
    lines = told(host).splitlines()
    assert lines[0] == "# DHCP" and len(lines) == 9
    assert [line for line in lines[1:] if not line.startswith("server 10.0.0.")] == []


def test_a_first_lease_that_came_while_the_service_ran_is_looked_for_soon(host: Host) -> None:
    """A path unit sees no change that comes while its service runs."""
    unit = configparser.ConfigParser(comment_prefixes="#")
    unit.read(FEATURES / "time/usr/lib/systemd/system/netboot-time.timer")
    assert dict(unit["Timer"]) == {"onactivesec": "30s", "onunitinactivesec": "5min"}


def clock(host: Host, waitsync: int = 0) -> tuple[int, str, list[str]]:
    """`waitsync`: after how many calls of it the clock is right; the last answer of `clock.sh`, and what it called."""
    right = f"[ $(grep -c waitsync {host.folder}/calls) -gt {waitsync} ]"
    host.tool("chronyc", f'case "$*" in waitsync*) {right} ;; *tracking) echo C0000207,192.0.2.7,2 ;; esac')
    return host.run("time", "clock.sh")


def with_a_server(host: Host) -> None:
    lease(host, 2, "192.0.2.7")
    told(host)
    (host.folder / "calls").unlink()


def test_the_kubelet_waits_for_nothing_where_nobody_names_a_server(host: Host) -> None:
    (host.folder / "conf").unlink(missing_ok=True)
    host.tool("systemctl")
    assert clock(host) == (0, NOBODY, ["systemctl start netboot-time.service"])


def test_a_lease_that_nobody_has_read_yet_is_read_before_the_kubelet_starts(host: Host) -> None:
    sources = host.folder / "run/chrony-dhcp/netboot.sources"
    host.tool("systemctl", f"mkdir -p {sources.parent}; printf '# DHCP\\nserver 192.0.2.7 iburst\\n' >{sources}")
    status, said, calls = clock(host)
    assert (status, said) == (0, RIGHT)
    assert calls == ["systemctl start netboot-time.service", AT_ONCE, "chronyc -n -c tracking"]


def test_where_the_clock_is_right_the_kubelet_waits_for_two_calls_of_chronyc(host: Host) -> None:
    with_a_server(host)
    assert clock(host) == (0, RIGHT, [AT_ONCE, "chronyc -n -c tracking"])


def test_the_kubelet_waits_until_the_clock_is_within_a_second(host: Host) -> None:
    """The join agent set a clock that was years off, say: what chronyd had measured by then is void."""
    with_a_server(host)
    asked = [AT_ONCE, "chronyc burst 4/4", "chronyc waitsync 20 1 0 1", "chronyc burst 4/4"]
    assert clock(host, waitsync=2) == (0, RIGHT, [*asked, "chronyc waitsync 20 1 0 1", "chronyc -n -c tracking"])


def test_after_a_minute_the_unit_fails_and_says_who_was_asked(host: Host) -> None:
    with_a_server(host)
    status, said, calls = clock(host, waitsync=4)
    assert status == 1
    assert said.startswith("netboot-clock: no time server has answered for a minute: ")
    tried = [call for name in (AT_ONCE, *["chronyc waitsync 20 1 0 1"] * 3) for call in (name, "chronyc burst 4/4")]
    assert calls == [*tried, "chronyc -n -c sources"]


def start_limit(unit: str) -> int:
    """Seconds."""
    text = (FEATURES / "time/usr/lib/systemd/system" / unit).read_text()
    return int(text.partition("\nTimeoutStartSec=")[2].partition("\n")[0])


def test_who_waits_for_the_clock_hears_of_it_even_where_looking_for_servers_hangs() -> None:
    """`clock.sh` may have to start the other unit first, and asks chronyd for 61 seconds then."""
    assert start_limit("netboot-clock.service") > start_limit("netboot-time.service") + 61


@pytest.mark.parametrize("server", ["", "a b", "192.0.2.1:123/x", "-x", "ntp\n", "x" * 254, "#", 'a"]'])
def test_a_time_server_is_a_name_or_an_address(server: str) -> None:
    with pytest.raises(ValueError, match="must be the name or the address of a time server, without a port"):
        SiteBundle(
            site="a", issued=1, minimum_epoch=0, origins=("http://a",), report="http://a", time_servers=(server,)
        )


def test_a_bundle_without_time_servers_is_the_one_of_before(tmp_path: Path) -> None:
    """Canonical bytes are compared when a bundle is read: what was signed before must still be in that form."""
    bundle = SiteBundle(site="a", issued=1, minimum_epoch=0, origins=("http://a",), report="http://a")
    assert b"time_servers" not in bundle.to_bytes()
    named = bundle.model_copy(update={"time_servers": ("ntp1",)})
    assert named.to_bytes().endswith(b'"site":"a","time_servers":["ntp1"]}\n')
