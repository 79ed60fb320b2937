"""A whole `netboot serve` for tests: real processes on loopback, stopped and looked after however the test ends.
Whom it runs as: `tests.accounts`.
"""

import contextlib
import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import requests

from lab.service import defects
from lab.work import ROOT
from netboot.config import Config
from netboot.status.supervisor import SupervisorStatus
from netboot.stores.status import StatusFolder
from tests.accounts import by_the_service
from tests.processes import descendants, environment, runs, wait_for
from tests.sites import TOKEN

COMMAND = [sys.executable, "-m", "netboot.cli.main"]


class Service:
    """Started by `start`; `log` is what it wrote to stderr. `path`: a further folder that its Pythons search;
    `packages`: where netboot's are, of whichever version."""

    def __init__(self, config: Config, file: Path, path: str = "", packages: Path = ROOT) -> None:
        self.config, self.file, self.packages = config, file, packages
        self.environment = environment(packages)
        if path:
            self.environment["PYTHONPATH"] += f":{path}"
        self.out = file.parent / "out"
        self.process: subprocess.Popen[bytes] | None = None
        self.prefix: list[str] = []
        """A command that runs the service's own, by whoever runs the tests: it may need root."""
        self.machines = requests.Session()

    @property
    def provisioning(self) -> str:
        return f"http://{self.config.provisioning.listen}"

    @property
    def management(self) -> str:
        return self.config.management.base_url

    @property
    def log(self) -> str:
        return self.out.with_suffix(".log").read_text()

    def start(self) -> None:
        """Until it says that it is ready, and machines can boot, whichever of its boot servers they come to."""
        self.launch()
        wait_for(lambda: self.readyz()["ready"])
        wait_for(lambda: all(requests.get(f"{self.provisioning}/readyz", timeout=60).ok for _ in range(20)))

    def launch(self) -> None:
        """Until all its processes are ready. In a session of its own, as what `lab.processes` starts: to the scheduler
        each session is one (sched(7), autogroups), as a unit is; in that of all tests, what the service does at the
        lowest priority would get next to nothing of a busy machine."""
        with self.out.open("w") as out, self.out.with_suffix(".log").open("a") as log:
            command = [*self.prefix, *self._serve()]
            self.process = subprocess.Popen(
                command,
                stdout=out,
                stderr=log,
                env=self.environment,
                cwd=self.file.parent,
                start_new_session=True,
            )
        wait_for(self._ready, 300.0)  # a dozen and more of them begin at once

    def _serve(self) -> list[str]:
        """Its command, by the account of the service."""
        paths = [Path(path) for path in self.environment["PYTHONPATH"].split(":")]
        return by_the_service([*COMMAND, "serve", "--config", str(self.file)], self.file.parent, self.config, paths)

    def _ready(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.log
        return "ready\n" in self.out.read_text()

    def pids(self) -> set[int]:
        """Every process below the supervisor."""
        assert self.process is not None
        return descendants(self.process.pid)

    def kill(self) -> None:
        """As a power cut does to processes; waits until all have gone."""
        assert self.process is not None
        pids = self.pids()
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        wait_for(lambda: not any(map(runs, pids)))

    def stop(self) -> int:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(140)  # each of three stages may take 40 s; the unit gives it 150

    def readyz(self) -> Any:
        return requests.get(f"{self.management}/readyz", timeout=60).json()

    def status(self) -> SupervisorStatus:
        """What the supervisor says, without asking the management server."""
        status = StatusFolder(self.config.data / "status").read("supervisor", SupervisorStatus)
        assert status is not None
        return status

    def processes(self) -> Any:
        """What the supervisor says of each process, by name."""
        return self.readyz()["details"]["processes"]["processes"]

    def text(self, path: str) -> str:
        return requests.get(f"{self.management}{path}", timeout=60).text

    def api(self, path: str) -> Any:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        return requests.get(f"{self.management}{path}", headers=headers, timeout=60).json()

    def order(self, path: str, **body: Any) -> requests.Response:
        """Ask for something to be done, as an operator: what a command does, without its start."""
        headers = {"Authorization": f"Bearer {TOKEN}"}
        return requests.post(f"{self.management}{path}", headers=headers, json=body, timeout=60)

    def outcome(self, mac: str) -> str:
        """What a machine would get now, from a worker."""
        answer = self.machines.get(f"{self.provisioning}/v1/boot", params={"mac": mac}, timeout=60)
        return answer.headers["Netboot-Outcome"]

    def boot(self, mac: str) -> str:
        """Fetch a machine's script; its boot id."""
        answer = self.machines.get(f"{self.provisioning}/v1/boot", params={"mac": mac}, timeout=60)
        found = re.search(r"netboot\.boot=([0-9a-f-]{36})", answer.text)
        assert found is not None, answer.text
        return found[1]

    def post(self, boot: str, mac: str, phase: str, **more: object) -> int:
        """Post an event; the status."""
        url = f"{self.provisioning}/v1/boots/{boot}/events"
        return self.machines.post(url, data=json.dumps({"mac": mac, "phase": phase, **more}), timeout=60).status_code

    def netboot(self, *arguments: str, input_: str | None = None) -> "subprocess.CompletedProcess[str]":
        """A command of its version against this service."""
        env = {**environment(self.packages), "NETBOOT_CONFIG": str(self.file)}
        return self._ran([*COMMAND, *arguments], env, input_)

    def refused(self) -> "subprocess.CompletedProcess[str]":
        """`netboot serve` that does not start: it ends by itself."""
        return self._ran(self._serve(), self.environment)

    def _ran(
        self, command: list[str], env: dict[str, str], input_: str | None = None
    ) -> "subprocess.CompletedProcess[str]":
        folder = self.file.parent
        return subprocess.run(
            command, env=env, input=input_, capture_output=True, text=True, timeout=180, check=False, cwd=folder
        )


@contextlib.contextmanager
def serving(
    config: Config, file: Path, *prefix: str, service: Service | None = None, path: str = ""
) -> Iterator[Service]:
    """A service that runs while in the block; nothing of it is left after. `prefix`: a command that runs it; `service`:
    one that was made already; `path`: a further folder that its Pythons search."""
    service = service or Service(config, file, path)
    service.prefix = list(prefix)
    try:
        service.start()
        yield service
        if found := defects(service.log):
            raise AssertionError("\n".join(found))
    finally:
        service.machines.close()
        if service.process is not None and service.process.poll() is None:
            service.kill()
