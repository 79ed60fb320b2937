"""What DHCP servers are told: whole configurations as literals, and what is refused before it would be one."""

from ipaddress import IPv4Address, IPv4Network
from pathlib import Path, PurePosixPath

import pytest

from netboot.dhcp import binaries, dnsmasq, generic, isc, kea
from netboot.dhcp.plan import Host, Net, Plan
from tests.commands import Run
from tests.unit.test_config import LEAST, faults

NETS = (
    Net(
        IPv4Network("192.0.2.0/24"),
        IPv4Address("192.0.2.100"),
        IPv4Address("192.0.2.199"),
        IPv4Address("192.0.2.254"),
        (IPv4Address("192.0.2.53"), IPv4Address("192.0.2.54")),
    ),
    Net(IPv4Network("198.51.100.0/25"), IPv4Address("198.51.100.10"), IPv4Address("198.51.100.99")),
)
HOSTS = (Host("gpu-001", "52:54:00:00:00:01", IPv4Address("192.0.2.11")),)
PART = Plan("http://192.0.2.1:8080", IPv4Address("192.0.2.1"))
WHOLE = Plan("http://192.0.2.1:8080", IPv4Address("192.0.2.1"), NETS, HOSTS)

DNSMASQ = """\
# Made by `netboot dhcp config --for dnsmasq`; docs/dhcp.md.
dhcp-match=set:ipxe,175
dhcp-userclass=set:ipxe,iPXE
dhcp-match=set:bios,option:client-arch,0
dhcp-match=set:x64,option:client-arch,7
dhcp-match=set:x64,option:client-arch,9
dhcp-match=set:arm64,option:client-arch,11
dhcp-match=set:x64-http,option:client-arch,16
dhcp-match=set:arm64-http,option:client-arch,19
dhcp-boot=tag:ipxe,http://192.0.2.1:8080/boot.ipxe
dhcp-boot=tag:!ipxe,tag:bios,undionly.kpxe,,192.0.2.1
dhcp-boot=tag:!ipxe,tag:x64,snponly.efi,,192.0.2.1
dhcp-boot=tag:!ipxe,tag:arm64,ipxe-arm64.efi,,192.0.2.1
dhcp-boot=tag:!ipxe,tag:x64-http,http://192.0.2.1:8080/ipxe/snponly.efi
dhcp-option-force=tag:!ipxe,tag:x64-http,60,HTTPClient
dhcp-boot=tag:!ipxe,tag:arm64-http,http://192.0.2.1:8080/ipxe/ipxe-arm64.efi
dhcp-option-force=tag:!ipxe,tag:arm64-http,60,HTTPClient
"""
DNSMASQ_NETS = """\
dhcp-range=set:net0,192.0.2.100,192.0.2.199,255.255.255.0,1h
dhcp-option=tag:net0,option:router,192.0.2.254
dhcp-option=tag:net0,option:dns-server,192.0.2.53,192.0.2.54
# gpu-001
dhcp-host=52:54:00:00:00:01,192.0.2.11
dhcp-range=set:net1,198.51.100.10,198.51.100.99,255.255.255.128,1h
dhcp-option=tag:net1,option:router
"""
PROXY = """\
dhcp-range=203.0.113.0,proxy,255.255.255.0
# Where another server gives the addresses: PXE alone, for UEFI HTTP Boot heeds no proxy of dnsmasq's.
pxe-service=tag:!ipxe,x86PC,"netboot",undionly.kpxe,192.0.2.1
pxe-service=tag:ipxe,x86PC,"netboot",http://192.0.2.1:8080/boot.ipxe
pxe-service=tag:!ipxe,X86-64_EFI,"netboot",snponly.efi,192.0.2.1
pxe-service=tag:ipxe,X86-64_EFI,"netboot",http://192.0.2.1:8080/boot.ipxe
pxe-service=tag:!ipxe,BC_EFI,"netboot",snponly.efi,192.0.2.1
pxe-service=tag:ipxe,BC_EFI,"netboot",http://192.0.2.1:8080/boot.ipxe
pxe-service=tag:!ipxe,ARM64_EFI,"netboot",ipxe-arm64.efi,192.0.2.1
pxe-service=tag:ipxe,ARM64_EFI,"netboot",http://192.0.2.1:8080/boot.ipxe
"""
MADE = "# Made by `netboot dhcp config --for isc`; docs/dhcp.md.\n"
NOT_WHOLE = "# No whole configuration, for there is no `dhcp.subnets`: include it in that of your dhcpd.\n"
ISC = """\
option netboot-arch code 93 = unsigned integer 16;
option netboot-ipxe code 175 = string;
if exists netboot-ipxe or substring(option user-class, 0, 4) = "iPXE" {
  filename "http://192.0.2.1:8080/boot.ipxe";
} elsif option netboot-arch = 00:00 {
  next-server 192.0.2.1;
  filename "undionly.kpxe";
} elsif option netboot-arch = 00:07 or option netboot-arch = 00:09 {
  next-server 192.0.2.1;
  filename "snponly.efi";
} elsif option netboot-arch = 00:0b {
  next-server 192.0.2.1;
  filename "ipxe-arm64.efi";
} elsif option netboot-arch = 00:10 {
  option vendor-class-identifier "HTTPClient";
  filename "http://192.0.2.1:8080/ipxe/snponly.efi";
} elsif option netboot-arch = 00:13 {
  option vendor-class-identifier "HTTPClient";
  filename "http://192.0.2.1:8080/ipxe/ipxe-arm64.efi";
}
"""
ISC_NETS = """\
authoritative;
subnet 192.0.2.0 netmask 255.255.255.0 {
  range 192.0.2.100 192.0.2.199;
  option routers 192.0.2.254;
  option domain-name-servers 192.0.2.53, 192.0.2.54;
}
# gpu-001
host netboot-525400000001 { hardware ethernet 52:54:00:00:00:01; fixed-address 192.0.2.11; }
subnet 198.51.100.0 netmask 255.255.255.128 {
  range 198.51.100.10 198.51.100.99;
}
"""
KEA_CLASSES = """\
    "client-classes": [
      {
        "name": "netboot-ipxe",
        "test": "option[175].exists or substring(option[77].hex,0,4) == 'iPXE'",
        "boot-file-name": "http://192.0.2.1:8080/boot.ipxe"
      },
      {
        "name": "netboot-bios",
        "test": "(option[93].hex == 0x0000) and not member('netboot-ipxe')",
        "boot-file-name": "undionly.kpxe",
        "next-server": "192.0.2.1"
      },
      {
        "name": "netboot-x64",
        "test": "(option[93].hex == 0x0007 or option[93].hex == 0x0009) and not member('netboot-ipxe')",
        "boot-file-name": "snponly.efi",
        "next-server": "192.0.2.1"
      },
      {
        "name": "netboot-arm64",
        "test": "(option[93].hex == 0x000b) and not member('netboot-ipxe')",
        "boot-file-name": "ipxe-arm64.efi",
        "next-server": "192.0.2.1"
      },
      {
        "name": "netboot-x64-http",
        "test": "(option[93].hex == 0x0010) and not member('netboot-ipxe')",
        "boot-file-name": "http://192.0.2.1:8080/ipxe/snponly.efi",
        "option-data": [
          {
            "name": "vendor-class-identifier",
            "data": "HTTPClient",
            "always-send": true
          }
        ]
      },
      {
        "name": "netboot-arm64-http",
        "test": "(option[93].hex == 0x0013) and not member('netboot-ipxe')",
        "boot-file-name": "http://192.0.2.1:8080/ipxe/ipxe-arm64.efi",
        "option-data": [
          {
            "name": "vendor-class-identifier",
            "data": "HTTPClient",
            "always-send": true
          }
        ]
      }
    ]"""
KEA = f"""\
{{
  "Dhcp4": {{
    "interfaces-config": {{
      "interfaces": [
        "*"
      ]
    }},
    "lease-database": {{
      "type": "memfile"
    }},
    "valid-lifetime": 3600,
{KEA_CLASSES},
    "subnet4": [
      {{
        "id": 3221225984,
        "subnet": "192.0.2.0/24",
        "pools": [
          {{
            "pool": "192.0.2.100 - 192.0.2.199"
          }}
        ],
        "option-data": [
          {{
            "name": "routers",
            "data": "192.0.2.254"
          }},
          {{
            "name": "domain-name-servers",
            "data": "192.0.2.53, 192.0.2.54"
          }}
        ],
        "reservations": [
          {{
            "hw-address": "52:54:00:00:00:01",
            "ip-address": "192.0.2.11",
            "user-context": {{
              "machine": "gpu-001"
            }}
          }}
        ]
      }},
      {{
        "id": 3325256704,
        "subnet": "198.51.100.0/25",
        "pools": [
          {{
            "pool": "198.51.100.10 - 198.51.100.99"
          }}
        ]
      }}
    ]
  }}
}}
"""
GENERIC = """\
client                 recognised by                    option 60   option 66, next-server  option 67, boot file
iPXE, first of all     option 175, or option 77 = iPXE  -           -                       http://192.0.2.1:8080/boot.ipxe
BIOS, PXE              option 93 = 0                    -           192.0.2.1               undionly.kpxe
UEFI x64, PXE          option 93 = 7 or 9               -           192.0.2.1               snponly.efi
UEFI arm64, PXE        option 93 = 11                   -           192.0.2.1               ipxe-arm64.efi
UEFI x64, HTTP Boot    option 93 = 16                   HTTPClient  -                       http://192.0.2.1:8080/ipxe/snponly.efi
UEFI arm64, HTTP Boot  option 93 = 19                   HTTPClient  -                       http://192.0.2.1:8080/ipxe/ipxe-arm64.efi
"""
SITE = """\
machines:
- {name: gpu-001, profile: c, match: {macs: ['52:54:00:00:00:01']}, node: {addresses: ['2001:db8::1', 192.0.2.11]}}
- {name: gpu-002, profile: c, match: {macs: ['52:54:00:00:00:02']}, node: {addresses: [203.0.113.9]}}
- {name: gpu-003, profile: c, match: {serial: S3}, node: {addresses: [192.0.2.12]}}
- {name: gpu-004, profile: c, match: {macs: ['52:54:00:00:00:04']}}
profiles: [{name: c, channel: stable}]
channels: [{name: stable}]
"""
SUBNETS = """\
dhcp:
  subnets:
  - subnet: 192.0.2.0/24
    range: [192.0.2.100, 192.0.2.199]
    router: 192.0.2.254
    name_servers: [192.0.2.53, 192.0.2.54]
  - {subnet: 198.51.100.0/25, range: [198.51.100.10, 198.51.100.99]}
"""


def site(folder: Path, more: str = SUBNETS, url: str = "http://192.0.2.1:8080") -> Path:
    (folder / "inventory").mkdir()
    (folder / "inventory/site.yaml").write_text(SITE)
    (folder / "netboot.yaml").write_text(f"site: lab\nprovisioning: {{url: '{url}'}}\n{more}")
    return folder / "netboot.yaml"


@pytest.mark.parametrize(
    ("server", "part", "whole"),
    [
        ("dnsmasq", DNSMASQ, DNSMASQ + DNSMASQ_NETS),
        ("isc", MADE + NOT_WHOLE + ISC, MADE + ISC + ISC_NETS),
        ("kea", f'{{\n  "Dhcp4": {{\n{KEA_CLASSES}\n  }}\n}}\n', KEA),
        ("generic", GENERIC, GENERIC),
    ],
)
def test_the_configuration_of_each_server(tmp_path: Path, run: Run, server: str, part: str, whole: str) -> None:
    """Of a site without subnets the part that boots; of one with subnets all of it, and whose address is known."""
    render = {"dnsmasq": dnsmasq.render, "isc": isc.render, "kea": kea.render, "generic": generic.render}[server]
    assert render(PART) == part
    assert render(WHOLE) == whole
    config = site(tmp_path)
    assert run("dhcp", "config", "--config", config, "--for", server) == (0, whole, "")


@pytest.mark.parametrize(
    ("server", "said"),
    [
        ("kea", "client classes alone; put them into that of your Kea"),
        ("isc", "who is told what alone; include it in that of your dhcpd"),
        ("dnsmasq", ""),
        ("generic", ""),
    ],
)
def test_what_is_no_whole_configuration_is_said_to_be_none(tmp_path: Path, run: Run, server: str, said: str) -> None:
    """Beside what is printed, which stays what that server reads."""
    done = run("dhcp", "config", "--config", site(tmp_path, ""), "--for", server)
    assert done.err == (said and f"no `dhcp.subnets`: this is no whole configuration, but {said}\n")


def test_beside_a_server_that_gives_addresses() -> None:
    plan = Plan(PART.url, PART.tftp, (Net(IPv4Network("203.0.113.0/24")),), HOSTS)
    assert dnsmasq.render(plan) == DNSMASQ + PROXY
    assert isc.render(plan) == MADE + ISC + "subnet 203.0.113.0 netmask 255.255.255.0 {\n}\n"


@pytest.mark.parametrize(
    ("addresses", "ranges"),
    [
        (["192.0.2.150"], ["100 149", "151 199"]),
        (["192.0.2.199", "192.0.2.100", "192.0.2.101", "192.0.2.11"], ["102 198"]),
        ([f"192.0.2.{number}" for number in range(100, 200)], []),
    ],
)
def test_dhcpd_gives_a_machine_s_own_address_to_nobody_else(addresses: list[str], ranges: list[str]) -> None:
    """Its fixed addresses are no leases; those of dnsmasq and of Kea are kept from others by the server itself."""
    hosts = tuple(Host(f"m{n}", f"52:54:00:00:01:{n:02x}", IPv4Address(each)) for n, each in enumerate(addresses))
    text = isc.render(Plan(PART.url, PART.tftp, NETS[:1], hosts))
    found = [line.strip() for line in text.splitlines() if line.startswith("  range")]
    assert found == ["range 192.0.2.{} 192.0.2.{};".format(*each.split()) for each in ranges]


def test_an_address_that_cannot_be_a_machine_s(tmp_path: Path, run: Run) -> None:
    config = site(tmp_path)
    for address in ("192.0.2.0", "192.0.2.255", "192.0.2.254"):
        (tmp_path / "inventory/site.yaml").write_text(SITE.replace("192.0.2.11", address))
        assert run("dhcp", "config", "--config", config, "--for", "kea") == (
            1,
            "",
            (
                f"Error: machine gpu-001 has the address {address}, which is the router of 192.0.2.0/24, or its first "
                "or last address: change node.addresses in the inventory, or dhcp.subnets in the configuration\n"
            ),
        )


def test_dnsmasq_as_the_tftp_server_names_no_other(tmp_path: Path, run: Run) -> None:
    text = dnsmasq.render(Plan(PART.url, None), PurePosixPath("/srv/tftp"))
    assert text == DNSMASQ.replace(",,192.0.2.1\n", "\n") + "enable-tftp\ntftp-root=/srv/tftp\n"
    config = site(tmp_path, "", "http://netboot.example:8080")
    done = run("dhcp", "config", "--config", config, "--for", "dnsmasq", "--tftp-root", "/srv/tftp")
    assert done == (0, text.replace("192.0.2.1:8080", "netboot.example:8080"), "")


def test_what_nobody_can_know_is_asked_for(tmp_path: Path, run: Run) -> None:
    config = site(tmp_path, "", "http://netboot.example:8080")
    assert run("dhcp", "config", "--config", config, "--for", "kea") == (
        1,
        "",
        (
            "Error: the host of http://netboot.example:8080 is no IPv4 address: say with dhcp.tftp, in the "
            "configuration, which IPv4 address firmware fetches iPXE from by TFTP\n"
        ),
    )
    config.write_text(config.read_text() + "dhcp: {tftp: 192.0.2.9}\n")
    assert '"next-server": "192.0.2.9"' in run("dhcp", "config", "--config", config, "--for", "kea").out


@pytest.mark.parametrize("root", ["srv", "/srv/a,b", "/srv/a\nport=53", "/srv/a b", "/srv/$(id)", '/srv/"'])
def test_a_folder_that_could_be_another_line(tmp_path: Path, run: Run, root: str) -> None:
    done = run("dhcp", "config", "--config", site(tmp_path), "--for", "dnsmasq", "--tftp-root", root)
    assert (done.status, done.out) == (2, "")
    assert "--tftp-root: give an absolute path of letters, digits" in done.err
    done = run("dhcp", "config", "--config", tmp_path / "netboot.yaml", "--for", "kea", "--tftp-root", "/srv/tftp")
    assert (done.status, "--tftp-root is of dnsmasq alone" in done.err) == (2, True)


def test_names_and_urls_that_could_be_another_line_are_no_configuration(tmp_path: Path, run: Run) -> None:
    config = site(tmp_path)
    (tmp_path / "inventory/site.yaml").write_text(SITE.replace("gpu-001", '"a\\ndhcp-script=/x"'))
    assert run("dhcp", "config", "--config", config, "--for", "dnsmasq").out == ""
    (tmp_path / "inventory/site.yaml").write_text(SITE)
    for url in ("http://a,b", 'http://a";', "http://a\\nb", "http://a b", "http://u@a"):
        config.write_text(f'site: lab\nprovisioning: {{url: "{url.replace(chr(34), chr(92) + chr(34))}"}}\n')
        assert run("dhcp", "config", "--config", config, "--for", "dnsmasq").out == ""


def test_subnets_that_cannot_be(tmp_path: Path) -> None:
    one = "dhcp: {subnets: [{subnet: 192.0.2.0/24, %s}]}\n"
    inside = "netboot.yaml:3: dhcp.subnets[0]: range must lie in 192.0.2.0/24, and have neither its first nor its last"
    assert faults(tmp_path, LEAST + one % "range: [192.0.2.9, 192.0.2.8]") == [
        "netboot.yaml:3: dhcp.subnets[0]: range must be [first, last] with first not above last"
    ]
    for outside in ("192.0.2.8, 198.51.100.1", "192.0.2.0, 192.0.2.9", "192.0.2.200, 192.0.2.255"):
        assert faults(tmp_path, LEAST + one % f"range: [{outside}]") == [f"{inside} address"]
    assert faults(tmp_path, LEAST + one % "router: 198.51.100.1") == [
        "netboot.yaml:3: dhcp.subnets[0]: router must be an address of 192.0.2.0/24"
    ]
    assert faults(tmp_path, LEAST + "dhcp: {subnets: [{subnet: 192.0.2.0/24}, {subnet: 192.0.2.128/25}]}\n") == [
        "netboot.yaml:3: dhcp: subnets 192.0.2.0/24 and 192.0.2.128/25 overlap: an address belongs to one of them"
    ]


def test_a_folder_for_tftp(tmp_path: Path, run: Run) -> None:
    """Binaries of the machine's own package, found through links, replaced whole; nothing else is touched."""
    have, to = tmp_path / "have", tmp_path / "srv/tftp"
    have.mkdir()
    (tmp_path / "elsewhere.efi").write_bytes(b"full")
    config = site(tmp_path, "# {}\n")
    config.write_text("site: lab\nprovisioning: {url: 'http://192.0.2.1:8080', ipxe: have}\n")
    arguments = ("dhcp", "tftp-folder", "--config", config, to)
    assert run(*arguments) == (
        1,
        "",
        (
            f"Error: {have} has none of undionly.kpxe, snponly.efi, ipxe.efi, ipxe-arm64.efi: `apt-get install ipxe`, "
            "or set provisioning.ipxe\n"
        ),
    )
    (have / "snponly.efi").write_bytes(b"small")
    (have / "ipxe.efi").symlink_to(tmp_path / "elsewhere.efi")
    said = f"not in {have}, and not needed unless machines ask for it: undionly.kpxe, ipxe-arm64.efi\n"
    for _ in range(2):
        assert run(*arguments) == (0, f"{to}/snponly.efi\n{to}/ipxe.efi\n", said)
    (to / "other").write_bytes(b"")
    run(*arguments)
    assert {path.name: path.read_bytes() for path in to.iterdir()} == {
        "snponly.efi": b"small",
        "ipxe.efi": b"full",
        "other": b"",
    }
    assert not (to / "ipxe.efi").is_symlink()
    refused = run("dhcp", "tftp-folder", "--config", config, to / "other")
    remedy = "Remedy: name a folder that is there as FOLDER"
    assert refused == (1, "", f"Error: {to}/other is no folder\n{remedy}\n")
    words = "Error: cannot make /proc/x: the file system there takes no folders\n"
    no_folder = run("dhcp", "tftp-folder", "--config", config, "/proc/x")
    assert no_folder == (1, "", f"{words}Remedy: name a folder of a disk, like /srv/tftp\n")
    below = run("dhcp", "tftp-folder", "--config", config, to / "other/tftp")
    assert below == refused


def test_a_folder_that_cannot_be_looked_into_has_no_binaries(tmp_path: Path) -> None:
    """Here because of its name, elsewhere because of its mode, of which root, who runs the tests, would see nothing."""
    (tmp_path / "snponly.efi").write_bytes(b"some")
    assert binaries.standing(tmp_path) == (tmp_path / "snponly.efi",)
    hidden = tmp_path / ("x" * 300)
    assert (binaries.standing(hidden), binaries.read(hidden)) == ((), {})
    assert "cannot be read in" in binaries.lacking(hidden, arm64=False)
