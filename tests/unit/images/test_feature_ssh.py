"""Who may log in by ssh: what the script writes for sshd, and that the kernel's command line only chooses."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from images.artifact.bundle import SiteBundle

FEATURE = Path(__file__).parents[3] / "images/recipes/features/ssh"
CA = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + "A" * 43
OTHER = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + "B" * 43
NOBODY = "netboot-ssh: nobody could log in, so there is no ssh server:"


@dataclass(frozen=True)
class Machine:
    """A machine in a folder: /run, /etc and the command line."""

    folder: Path

    def site(self, *authorities: str, principals: tuple[str, ...] = ("sre", "storage")) -> None:
        """What the initrd leaves of the signed bundle."""
        url, named = "http://192.0.2.1", principals if authorities else ()
        facts = {"site": "a", "issued": 1, "minimum_epoch": 0, "origins": (url,), "report": url}
        bundle = SiteBundle.model_validate(
            {**facts, "ssh_authorities": authorities, "ssh_principals": named, "time_servers": ("ntp1",)}
        )
        (self.folder / "run/netboot/site.json").write_bytes(bundle.to_bytes())

    def image(self, name: str, text: str) -> None:
        """A file of the image's own."""
        (self.folder / "etc/ssh" / name).write_text(text)

    def start(self, asked: str) -> tuple[int, str]:
        """Exit status, and what it said, with the real ssh-keygen."""
        (self.folder / "cmdline").write_text(f"ro netboot.ssh=of.another.layer {asked} quiet\n")
        env = {f"NETBOOT_{name.upper()}": str(self.folder / name) for name in ("run", "etc", "cmdline")}
        argv = ["sh", str(FEATURE / "usr/lib/netboot/ssh.sh")]
        path = {"PATH": os.environ["PATH"]}
        done = subprocess.run(argv, env=env | path, cwd=self.folder, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def written(self, name: str) -> str:
        """What sshd reads."""
        return (self.folder / "run/netboot-ssh" / name).read_text()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    for name in ("run/netboot", "etc/ssh"):
        (tmp_path / name).mkdir(parents=True)
    return Machine(tmp_path)


def test_the_profile_chooses_among_the_principals_of_the_site(machine: Machine) -> None:
    machine.site(CA, OTHER)
    status, said = machine.start("netboot.ssh=storage")
    assert (status, machine.written("principals")) == (0, "storage\n")
    assert machine.written("user-ca.pub") == f"{CA}\n{OTHER}\n"
    key = machine.folder / "run/netboot-ssh/ssh_host_ed25519_key"
    shown = subprocess.run(["ssh-keygen", "-l", "-f", str(key)], capture_output=True, text=True, check=True).stdout
    told = f"ssh host key {shown.split()[1]}, principals storage\n"
    assert said == f"netboot-ssh: {told}"
    assert (machine.folder / "run/netboot/tell").read_text() == told
    assert key.stat().st_mode & 0o777 == 0o600


def test_a_unit_that_is_started_again_keeps_the_key(machine: Machine) -> None:
    machine.site(CA)
    assert machine.start("netboot.ssh=sre") == machine.start("netboot.ssh=sre")


def test_the_command_line_lets_nobody_in_whom_neither_site_nor_image_knows(machine: Machine) -> None:
    """Whoever can write it may hold a certificate for another principal of the same CA."""
    machine.site(CA)
    status, said = machine.start("netboot.ssh=git,s.e,*,sre")
    assert (status, machine.written("principals")) == (0, "sre\n")
    left_out = "is no principal of this site or image, and is left out"
    assert said.splitlines()[:3] == [f"netboot-ssh: {name} {left_out}" for name in ("git", "s.e", "*")]


def test_the_command_line_moves_nothing_on_a_console(machine: Machine) -> None:
    machine.site(CA)
    _, said = machine.start("netboot.ssh=\x1b[2Jgit,sre\x07")
    assert (machine.written("principals"), "\x1b" in said, "\x07" in said) == ("sre\n", False, False)


def test_the_image_may_bring_authority_and_principals_of_its_own(machine: Machine) -> None:
    machine.site()
    machine.image("user-ca.pub", f"# of the lab\n{OTHER} a comment\n\n")
    machine.image("user-principals", "lab\n")
    assert machine.start("netboot.ssh=lab")[0] == 0
    assert (machine.written("principals"), machine.written("user-ca.pub")) == ("lab\n", f"{OTHER} a comment\n")
    machine.site(CA)
    machine.start("netboot.ssh=lab,sre")
    assert machine.written("principals") == "lab\nsre\n"
    assert machine.written("user-ca.pub") == f"{CA}\n{OTHER} a comment\n"


@pytest.mark.parametrize(
    ("authorities", "asked", "counts"),
    [
        ((), "netboot.ssh=sre", "0 authorities, 0 principals"),
        ((CA,), "netboot.ssh=git", "1 authorities, 0 principals"),
        ((CA,), "netboot.ssh=", "1 authorities, 0 principals"),
    ],
)
def test_where_nobody_could_log_in_there_is_no_server(
    machine: Machine, authorities: tuple[str, ...], asked: str, counts: str
) -> None:
    machine.site(*authorities)
    status, said = machine.start(asked)
    assert (status, said.splitlines()[-1]) == (1, f"{NOBODY} {counts}")
    assert not (machine.folder / "run/netboot/tell").exists()


def test_the_server_starts_only_where_a_profile_says_so_and_knows_no_other_way_in() -> None:
    """ssh.service needs the other unit, which fails where nobody could log in."""
    only = "ConditionKernelCommandLine=netboot.ssh"
    units = FEATURE / "usr/lib/systemd/system"
    server = (units / "ssh.service.d/10-netboot.conf").read_text().splitlines()
    assert {only, "Requires=netboot-ssh.service", "After=netboot-ssh.service"} <= set(server)
    assert only in (units / "netboot-ssh.service").read_text().splitlines()
    settings = (FEATURE / "etc/ssh/sshd_config.d/10-netboot.conf").read_text().splitlines()
    assert {
        "TrustedUserCAKeys /run/netboot-ssh/user-ca.pub",
        "AuthorizedPrincipalsFile /run/netboot-ssh/principals",
        "AuthorizedKeysFile none",
        "AuthenticationMethods publickey",
        "PasswordAuthentication no",
        "KbdInteractiveAuthentication no",
        "HostbasedAuthentication no",
        "AllowUsers root",
    } <= set(settings)
