"""Enrolment, tokens and backup against `netboot serve`, whole: real processes, the real command line."""

import shlex
from pathlib import Path

from images.store.store import Store
from netboot.config import load_config
from netboot.join.register import Register
from netboot.stores.enrolment import SqliteEnrolments
from netboot.stores.live import LiveView
from tests.processes import wait_for
from tests.sites import TOKEN, add_image, free_ports
from tests.sockets.join_site import make_whole_site
from tests.sockets.service import Service, serving

A = "a1" * 32


def netboot(service: Service, *arguments: str, status: int = 0, input_: str | None = None) -> str:
    done = service.netboot(*arguments, input_=input_)
    assert done.returncode == status, done.stderr
    return done.stdout if status == 0 else done.stderr


def test_an_operators_day(tmp_path: Path) -> None:
    [nobody] = free_ports(1)
    config = load_config(make_whole_site(tmp_path / "site", nobody, workers=1))
    Store(config.store).set_channel("stable", add_image(config))
    config.management.token_file.write_text(f"# alice\n{TOKEN}\n")
    backup = tmp_path / "b.tar.gz"
    with serving(config, tmp_path / "site" / "netboot.yaml") as service:
        netboot(service, "machine", "enroll", "gpu-001", "--reason", "new rack")
        join = Register(  # as the process of join sees the same files
            SqliteEnrolments(config.data / "enrolment.db"),
            lambda: LiveView(config.data / "snapshot.json").view().snapshot.inventory,
        )
        assert join.of("gpu-001").window == "enrol"
        assert join.propose("gpu-001", A, "", join.of("gpu-001").window_until_ms - 1).state == "pending"
        assert "pending" in netboot(service, "machine", "enrolments", "--state", "pending")
        netboot(service, "machine", "approve", "gpu-001", input_="y\n")
        assert join.of("gpu-001").state == "approved"
        assert "approved, first-use" in netboot(service, "machine", "show", "gpu-001")
        assert "no PCR policy" in netboot(service, "explain", "gpu-001")
        netboot(service, "backup", str(backup))
        said = netboot(service, "restore", str(backup), "--force", status=1)
        assert f"already serves {config.data}" in said
        netboot(service, "machine", "retire", "gpu-001", "--reason", "sold")
        assert join.of("gpu-001").state == "retired"
        said = netboot(service, "token", "list", status=5)
        assert said.startswith(f"Error: the apiserver 127.0.0.1:{nobody} cannot be reached: ")
        audited = [line for line in service.log.splitlines() if " msg=audit " in line]
        said_of = [dict(part.split("=", 1) for part in shlex.split(line)) for line in audited]
        assert [(each["act"], each["operator"], each["machine"]) for each in said_of] == [
            ("enroll", "alice", "gpu-001"),
            ("approve", "alice", "gpu-001"),
            ("retire", "alice", "gpu-001"),
        ]
        assert len({each["request_id"] for each in said_of}) == 3
        assert TOKEN not in service.log
        assert service.stop() == 0
        netboot(service, "restore", str(backup), "--force")
        service.start()
        wait_for(lambda: join.of("gpu-001").state == "approved")
        assert "approved" in netboot(service, "machine", "show", "gpu-001")
        assert service.stop() == 0
