"""Our stage between dracut's network and dracut's switch: which link it takes, and what it leaves to the root."""

from pathlib import Path

import pytest

from images.build.dracut import FOLDER
from tests.tools.images.boot_stage import Stage

pytestmark = pytest.mark.tools
MAC, OTHER = "52:54:00:12:34:56", "52:54:00:12:34:57"
FUNCTIONS = (FOLDER / "stage.sh").read_text().partition("\nstart() {")[2].rpartition("\ncase $1 in")[0]


@pytest.fixture
def tmp_net(stage: Stage) -> Path:
    """In the place of /tmp, where dracut has its notes; two cards, the second is the one that booted."""
    for name, mac in (("ens1", OTHER), ("ens2", MAC)):
        card(stage, name, mac)
        (stage.folder / f"net.{name}.did-setup").touch()
        (stage.folder / f"net.{mac}.did-setup").touch()
    return stage.folder


def card(stage: Stage, name: str, mac: str, kind: str = "1") -> Path:
    path = stage.folder / "class" / name
    (path / "device").mkdir(parents=True)
    (path / "address").write_text(f"{mac}\n")
    (path / "type").write_text(f"{kind}\n")
    (path / "operstate").write_text("up\n")
    return path


def up(stage: Stage, **variables: str) -> tuple[list[str], dict[str, str]]:
    """What `network_is_up` says, and the units that it leaves."""
    functions = f"start() {{{FUNCTIONS}".replace("/tmp/", f"{stage.folder}/").replace("/etc/", f"{stage.folder}/etc/")
    settings = "DRIVERS='' CONFIGURED='' NAMESERVERS='' BOND='' VLAN=''"
    script = f"{functions}\n{settings}\nip() {{ echo '1: x inet 192.0.2.7/24 x'; }}\n"
    script += 'network_is_up || echo "failed: $REASON"\necho "MAC=$MAC"\n'
    places = {"NET": f"{stage.folder}/class", "NETWORKD": f"{stage.folder}/units"}
    done = stage.sh(script, **places, **variables)
    assert done.returncode == 0, done.stderr
    units = Path(stage.folder / "units")
    return done.stdout.splitlines(), {path.name: path.read_text() for path in units.glob("*")}


def test_the_card_that_booted_with_its_lease(stage: Stage, tmp_net: Path) -> None:
    (tmp_net / "dhclient.ens2.lease").write_text("lease {\n  fixed-address 192.0.2.7;\n}\n")
    (tmp_net / "etc").mkdir()
    (tmp_net / "etc/resolv.conf").write_text("#empty\nnameserver 192.0.2.1\n")
    said, units = up(stage)
    assert said == ["netboot: ens2 is up: 192.0.2.7/24", f"MAC={MAC}"]
    assert units["10-netboot.network"].startswith(f"[Match]\nPermanentMACAddress={MAC}\n")
    assert "ClientIdentifier=mac\n" in units["10-netboot.network"]
    assert (stage.run_folder / "resolv.conf").read_text() == "nameserver 192.0.2.1\n"


def test_without_a_lease_systemd_networkd_leaves_it_alone(stage: Stage, tmp_net: Path) -> None:
    assert up(stage)[1]["10-netboot.network"] == "[Match]\nName=ens2\n[Link]\nUnmanaged=yes\n"


def test_infiniband_has_no_mac_for_the_service(stage: Stage) -> None:
    card(stage, "ib0", "80:00:02:08:fe:80:00:00:00:00:00:00:f4:52:14:03:00:7b:cb:a1", "32")
    (stage.folder / "net.ib0.did-setup").touch()
    (stage.folder / "dhclient.ib0.lease").write_text("fixed-address 192.0.2.7;\n")
    said, units = up(stage, MAC="")
    assert said[-1] == "MAC="
    assert units["10-netboot.network"] == "[Match]\nName=ib0\n[Link]\nUnmanaged=yes\n"


def test_a_bond_of_dracuts_stays_as_it_is(stage: Stage, tmp_net: Path) -> None:
    for path in tmp_net.glob("net.*"):
        path.unlink()
    bond = stage.folder / "class/bond0"
    (bond / "bonding").mkdir(parents=True)
    (bond / "address").write_text(f"{MAC}\n")
    (bond / "type").write_text("1\n")
    for name in ("ens1", "ens2"):
        (bond / f"lower_{name}").symlink_to(f"../{name}")
    (tmp_net / "net.bond0.did-setup").touch()
    (tmp_net / "dhclient.bond0.lease").write_text("fixed-address 192.0.2.7;\n")
    units = up(stage)[1]
    assert units["10-netboot-cards.network"] == (f"[Match]\nPermanentMACAddress={OTHER} {MAC}\n[Link]\nUnmanaged=yes\n")
    assert units["10-netboot.network"].startswith("[Match]\nName=bond0\n[Network]\n")
    assert units["10-netboot-links.link"].startswith("[Match]\nOriginalName=bond0 bond0\n")


def test_no_link_is_a_failure_with_the_cards(stage: Stage) -> None:
    card(stage, "ens1", OTHER)
    assert up(stage)[0][0] == (f"failed: no network: dracut has set up no link (ens1 {OTHER} link up)")
