"""The real service of a site: started, killed, started again; waited for by its own API; every log kept."""

import contextlib
import json
import os
import pwd
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

import requests

from lab.account import as_the_service, service_account
from lab.errors import DeadlineError, DefectError, LabError
from lab.polling import pause_after
from lab.processes import Child, finish, start
from lab.site import COMMAND, Site
from lab.work import ROOT
from netboot.config import load_config

READY_SECONDS = 180.0
HEARTBEAT_SECONDS = 60.0
"""The watch stream speaks every five seconds."""


@dataclass(slots=True)
class Service:
    """A running service. `logs`: folder of its log, one for each start."""

    site: Site
    logs: Path
    running: Child | None = None
    starts: int = 0
    _token: str = field(default="", repr=False)

    def start(self) -> None:
        """Start it and wait until its API answers. Raises as `wait`."""
        self.spawn()
        self.wait()

    def spawn(self) -> None:
        """Start it."""
        self.starts += 1
        argv = [*COMMAND, "serve", "--config", str(self.site.config)]
        argv = as_the_service(argv, [self.site.folder], [ROOT])
        self._token = (self.site.folder / "secrets" / "operator.token").read_text().split()[0]
        self.running = start("netboot serve", argv, self.logs / f"service-{self.starts}.log", cwd=ROOT)

    def wait(self) -> None:
        """Wait until its API answers.

        Raises:
            EndedError: it ended at once, with its log. DeadlineError: it did not answer in time.
        """
        assert self.running is not None
        self._wait_until_it_answers(self.running)

    def kill(self) -> None:
        """SIGKILL, as a crash; returns when all that it had started has ended too, by itself."""
        assert self.running is not None
        self.running.kill()
        self.running = None

    def stop(self) -> None:
        """SIGTERM, and the end of all that it started."""
        if self.running is not None:
            finish(self.running, grace=20)
            self.running = None

    def api(self, path: str) -> Any:
        """GET a path of the management API.

        Raises:
            LabError: it answered with anything but 200.
        """
        answer = requests.get(f"{self.site.management}{path}", headers=self._headers(), timeout=60)
        if answer.status_code != 200:
            raise LabError(f"GET {path} answered {answer.status_code}: {answer.text}")
        return answer.json()

    def set_channel(self, channel: str, image: str) -> None:
        """`netboot channel set`, through the API like every operator."""
        self.site.netboot("channel", "set", channel, image)

    @property
    def account(self) -> str:
        """Whom it runs as: `nobody (65534)`."""
        account = service_account()
        uid = os.getuid() if account is None else account.uid
        return f"{pwd.getpwuid(uid).pw_name} ({uid})"

    def events(
        self, machine: str, seconds: float, check: Callable[[], None] = lambda: None
    ) -> Iterator[dict[str, Any]]:
        """What happens to a machine, from the beginning and as it happens, also across a restart of the service.

        `check` is called every few seconds and may raise.

        Raises:
            DeadlineError: `seconds` have passed.
        """
        deadline, since, pause = monotonic() + seconds, 0, threading.Event()
        while (left := deadline - monotonic()) > 0:
            url = f"{self.site.management}/v1/boots/watch?since={since}"
            try:
                with requests.get(
                    url, headers=self._headers(), stream=True, timeout=min(HEARTBEAT_SECONDS, left)
                ) as lines:
                    lines.raise_for_status()
                    for line in lines.iter_lines(chunk_size=1):
                        check()
                        event = json.loads(line).get("event")
                        if event is not None:
                            since = event["id"]
                            if event["machine"] == machine:
                                yield event
                        if monotonic() >= deadline:
                            break
            except (requests.RequestException, ValueError):
                pause.wait(0.2)  # it is being started again
        raise DeadlineError(f"waited {seconds:g} s for events of {machine}; see {self.logs}")

    def wait_for(self, machine: str, phase: str, seconds: float, matching: str = "") -> dict[str, Any]:
        """The first event of this phase whose detail matches the regular expression `matching`.

        Raises:
            DeadlineError: it did not happen; the message has the trace so far.
        """
        seen: list[str] = []
        try:
            for event in self.events(machine, seconds):
                seen.append(f"{event['phase']} {event['detail']}")
                if event["phase"] == phase and re.search(matching, event["detail"]):
                    return event
        except DeadlineError:
            pass
        heard = "\n".join(seen) or "nothing"
        raise DeadlineError(
            f"{machine} did not reach {phase} ({matching!r}) within {seconds:g} s; heard of it:\n{heard}"
        )

    def wait_until(self, what: str, holds: Callable[[], bool], seconds: float) -> None:
        """Ask again and again for something of which no event tells."""
        deadline, pause, asked = monotonic() + seconds, threading.Event(), monotonic()
        while not holds():
            if monotonic() >= deadline:
                raise DeadlineError(f"not within {seconds:g} s: {what}; see {self.logs}")
            pause.wait(pause_after(monotonic() - asked, 0.2))
            asked = monotonic()

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}"}

    def _wait_until_it_answers(self, running: Child) -> None:
        """Each server at its own listener: machines may know it by an address that is not ours. Who boots machines is
        ready once something is published, before which operators' orders are answered by 503."""
        config = load_config(self.site.config)
        health = [f"http://{config.provisioning.listen}/readyz", f"{self.site.management}/healthz"]
        if config.join is not None:
            health.append(f"https://{config.join.listen}/readyz")
        authority = str(self.site.folder / "tls" / "ca.crt")
        with requests.Session() as session:
            session.trust_env = False  # a CA bundle of the environment would win over ours

            def answers() -> bool:
                running.check()
                try:
                    return all(session.get(url, timeout=60, verify=authority).status_code == 200 for url in health)
                except requests.RequestException:
                    return False

            self.wait_until("the service answers", answers, READY_SECONDS)


def defects(log: str) -> list[str]:
    """Lines with a traceback: what nobody foresaw and gave words to, whatever the service ran for."""
    return [line for line in log.splitlines() if "Traceback (most recent call last)" in line]


@contextlib.contextmanager
def service(site: Site, logs: Path, *, begin: bool = True) -> Iterator[Service]:
    """The service for the length of a block; unless `begin` it is not started yet.

    Raises:
        EndedError, DeadlineError: it did not start; the message is the end of its log. DefectError: it met something
        that nobody foresaw, though all that was asked of it may have come to pass.
    """
    running = Service(site, logs)
    try:
        if begin:
            running.start()
        yield running
    finally:
        running.stop()
    for log in sorted(logs.glob("service-*.log")):
        if found := defects(log.read_text(encoding="utf-8")):
            raise DefectError(f"the service met what nobody foresaw, see {log}:\n" + "\n".join(found))
