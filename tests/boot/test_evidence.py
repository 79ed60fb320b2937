"""A machine with ways in, whose journal and kernel messages are kept elsewhere, and what is known after it crashed."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.boot.data_centre import (
    BOOT_SECONDS,
    LOG_SECONDS,
    PROFILES,
    TRACE_SECONDS,
    BuiltImage,
    DataCentre,
    data_centre,
    entry,
    hardware,
)
from tests.boot.ways_in import (
    JournalReceiver,
    SshAuthority,
    journal_receiver,
    kernel_messages,
    ssh,
    ssh_authority,
)

pytestmark = pytest.mark.boot
MINE = replace(hardware(1), crash_store=True)
UPLOAD_SECONDS = 180.0
"""The node tries again every 30 s."""
REFUSED = "Permission denied (publickey)."
PORT = 6677
ARGUMENTS = "panic=1, netboot.ssh=sre, netboot.netconsole={port}@{address}"
PANIC = "Kernel panic - not syncing: sysrq triggered crash"
CRASH = "nohup sh -c 'sleep 20; echo c >/proc/sysrq-trigger' >/dev/null 2>&1 &"
"""Not before ssh has ended, which takes its time where every instruction is emulated."""


def test_a_machine_is_looked_into_its_journal_is_kept_and_its_crash_is_told(
    built_erofs: BuiltImage, folder: Path
) -> None:
    """One machine, two boots; its root is erofs. Nobody takes its journal at first, and it is up all the same."""
    assert built_erofs.manifest["root_format"] == "erofs"
    with data_centre(folder, built_erofs, origins=True, clock=True) as here:
        assert here.net is not None
        ca, receiver = ssh_authority(folder / "ssh"), journal_receiver(folder / "journal", here.net)
        tell(here, ca, receiver)
        arguments = ARGUMENTS.format(port=PORT, address=here.net.inside)
        profile = PROFILES.replace("pcrs: none", f"pcrs: none, kernel_arguments: [{arguments}]")
        here.site.declare(f"machines:\n- {{{entry(MINE)}}}\n{profile}")
        with kernel_messages(folder, here.net, PORT) as messages, here.switched_on(MINE) as machine:
            first = here.service.wait_for(MINE.name, "Booted", BOOT_SECONDS)
            machine.wait_for_console(r"erofs: \(device loop0\): mounted", BOOT_SECONDS)
            machine.wait_for_console(r"root@\S+:~# ", BOOT_SECONDS)  # `debug: [console-login]`
            told = re.fullmatch(r"ssh host key (SHA256:\S{43}), principals sre", first["detail"])
            assert told, "and no unit has failed: " + first["detail"]
            with receiver.switched_on():
                address = here.latest(MINE.name)["reached"][-1]["peer"]
                operator = who_may_log_in(ca, address, told[1])
                its_console_was_sent(here, address, operator)
                here.wait_for_console(first["boot"], " systemd[1]: ")
                its_journal_is_taken(here, receiver, first["boot"])
                its_clock_is_held(address, operator, here.net.inside)
                crashed = len(machine.console.text)
                assert ssh(address, operator, CRASH).returncode == 0
                machine.wait_for_console(PANIC, BOOT_SECONDS, after=crashed)
                messages.wait_for(r"Linux version \d", LOG_SECONDS)
                messages.wait_for(PANIC, LOG_SECONDS)
                again = next(
                    event
                    for event in here.service.events(MINE.name, BOOT_SECONDS)
                    if event["phase"] == "Booted" and event["boot"] != first["boot"]
                )
            its_crash_is_told(here, first["boot"], again["boot"])
            forgotten = 'left=$(ls /sys/fs/pstore) && test -z "$left"'  # once the service has said that it has it
            here.service.wait_until(
                "the firmware forgets it", lambda: ssh(address, operator, forgotten).returncode == 0, TRACE_SECONDS
            )


def tell(here: DataCentre, ca: SshAuthority, receiver: JournalReceiver) -> None:
    """The site says who may log in and where journals go; both travel in the signed bundle."""
    with here.site.config.open("a") as config:
        config.write(f"ssh: {{authorities: {ca.public}, principals: [sre, storage]}}\n")
        config.write(f"journal: {{url: '{receiver.url}', authorities: {receiver.authority}}}\n")
    here.site.netboot("config", "bundle")
    here.service.start()
    here.service.set_channel("stable", here.built.digest)


def who_may_log_in(ca: SshAuthority, address: str, fingerprint: str) -> Path:
    """Whoever has a certificate of the CA for the profile's principal, now; the host key is the one of the trace."""
    good = ca.key("operator", "-n", "sre", "-V", "-5m:+1h")
    done = ssh(address, good, "id -un; cat /run/netboot-ssh/principals", fingerprint)
    assert (done.returncode, done.stdout) == (0, "root\nsre\n"), done.stderr
    refused = {
        "of a principal that the profile does not name": ca.key("other", "-n", "storage", "-V", "-5m:+1h"),
        "for the account's name": ca.key("named", "-n", "root", "-V", "-5m:+1h"),
        "that has expired": ca.key("late", "-n", "sre", "-V", "-2h:-1h"),
        "without a certificate": ca.key("bare"),
    }
    for what, key in refused.items():
        done = ssh(address, key, "true")
        assert (done.returncode, REFUSED in done.stderr) == (255, True), f"a key {what}: {done.stderr}"
    return good


def its_console_was_sent(here: DataCentre, address: str, operator: Path) -> None:
    """While the boot was not over, by a unit without privileges that has not failed: what systemd said last."""
    said = ""

    def whole() -> bool:  # it may be written just now
        nonlocal said
        said = ssh(address, operator, "cat /run/netboot/console.json").stdout
        return said.endswith("}")

    here.service.wait_until("its console is whole", whole, LOG_SECONDS)
    body = json.loads(said)
    text = body.pop("text")
    assert (body["mac"], body["machine"], sorted(body)) == (MINE.mac, MINE.name, ["mac", "machine", "uptime_ms"])
    assert re.search(rf"\] {MINE.name} systemd\[1\]: (Start|Finished|Reached target)", text), text
    assert len(text) <= 4096
    state = "systemctl show --property=Result,NRestarts,ExecMainStatus --value netboot-console.service"
    assert sorted(ssh(address, operator, state).stdout.split()) == ["0", "0", "success"]


def its_journal_is_taken(here: DataCentre, receiver: JournalReceiver, boot: str) -> None:
    """From the beginning of the boot: what was written while nobody took it is there too."""
    early, kernel = f"netboot.boot={boot}", "_TRANSPORT=kernel"
    here.service.wait_until("its journal is taken", lambda: early in receiver.taken(kernel), UPLOAD_SECONDS)
    key, unit = "netboot-ssh: ssh host key SHA256:", "_SYSTEMD_UNIT=netboot-ssh.service"
    here.service.wait_until("what came later is taken", lambda: key in receiver.taken(unit), UPLOAD_SECONDS)


def its_clock_is_held(address: str, operator: Path, server: str) -> None:
    """By chrony, from the server that DHCP named (option 42)."""
    waited = ssh(address, operator, "chronyc waitsync 60 1 0 1 >/dev/null; chronyc -n -c tracking")
    assert waited.stdout.split(",")[1] == server, waited
    assert ssh(address, operator, "cat /run/chrony-dhcp/*").stdout == f"# DHCP\nserver {server} iburst\n"


def its_crash_is_told(here: DataCentre, first: str, again: str) -> None:
    """`netboot boot show` of the boot that crashed, and of the one that found it."""
    found = f"boot {again} found the end of its log, as "
    shown = here.site.netboot
    here.service.wait_until("the crash is told", lambda: found in shown("boot", "show", first), TRACE_SECONDS)
    out = shown("boot", "show", first)
    assert re.search(rf"\n  \S*\[ *\d+\.\d+\] {PANIC}\n", out), out
    crashed = f"the kernel of boot {first} crashed at"
    here.service.wait_until("its finder names it", lambda: crashed in shown("boot", "show", again), TRACE_SECONDS)
