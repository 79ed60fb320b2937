"""kubectl, as the operator of the cluster uses it; and the lab's Pod, which proves that a Ready node works: by itself,
or of a Deployment, which makes another one when it is evicted."""

import json
import threading
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from lab.errors import DeadlineError, EndedError
from lab.kube.oci import HELLO
from lab.processes import run

SECONDS = 180.0
POD = "hello"
DEPLOYMENT = f"deployment/{POD}"
UNCHECKED = "netboot.dev/unchecked"
_CONTAINER = {
    "name": POD,
    "image": HELLO,
    "imagePullPolicy": "Never",
    "env": [{"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
}
_SPEC = {"terminationGracePeriodSeconds": 1, "containers": [_CONTAINER]}
_POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": POD}}
_LABELS = {"app": POD}
_DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": POD},
    "spec": {
        "selector": {"matchLabels": _LABELS},
        "template": {"metadata": {"labels": _LABELS}, "spec": _SPEC},
    },
}


@dataclass(frozen=True, slots=True)
class Kubectl:
    """kubectl with one account. `folder` is for its files."""

    program: Path
    account: Path
    folder: Path

    def __call__(self, *arguments: str, seconds: float = SECONDS) -> str:
        """Run it to its end; what it printed.

        Raises:
            EndedError: it failed, with what it said.
        """
        cache = ["--cache-dir", str(self.folder / "kubectl-cache")]
        return run([str(self.program), "--kubeconfig", str(self.account), *cache, *arguments], seconds=seconds)

    def get(self, *arguments: str) -> Any:
        """An object, or a list of them, as it is in the API; None: there is none."""
        document = self("get", *arguments, "--ignore-not-found", "-o", "json")
        return json.loads(document) if document.strip() else None

    def apply(self, name: str, document: Any) -> None:
        """Apply an object, kept as `<name>.json`."""
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps(document, indent=1))
        self("apply", "-f", str(path))

    def wait_until_running(self, what: str, seconds: float) -> None:
        """Wait until `pod/<name>` is Ready, or `deployment/<name>` has all its Pods.

        Raises:
            DeadlineError: with what `kubectl describe` says of the Pods that there are.
        """
        ready = "Available" if what.startswith("deployment/") else "Ready"
        try:
            self("wait", what, f"--for=condition={ready}", f"--timeout={seconds:.0f}s", seconds=seconds + SECONDS)
        except EndedError as error:
            raise DeadlineError(f"{error}\n{self('describe', 'pods')}") from None

    def wait_for_log(self, what: str, seconds: float) -> str:
        """What `pod/<name>`, or a Pod of `deployment/<name>`, has printed, once it has printed anything; through the
        apiserver and the kubelet.

        Raises:
            DeadlineError: nothing came; the message is the last error.
        """
        deadline, pause, last = monotonic() + seconds, threading.Event(), "it printed nothing"
        while monotonic() < deadline:
            try:
                log = self("logs", what)
            except EndedError as error:
                last = str(error)
            else:
                if log.strip():
                    return log
            pause.wait(0.5)
        raise DeadlineError(f"no log of {what} within {seconds:g} s: {last}")


def start_hello(kubectl: Kubectl, *, of_host: bool = False) -> None:
    """Ask for the lab's Pod on any node that takes it. `of_host`: it sees the node's processes, and may do what root
    may there."""
    container = _CONTAINER | ({"securityContext": {"privileged": True, "runAsUser": 0}} if of_host else {})
    kubectl.apply(POD, _POD | {"spec": _SPEC | {"containers": [container], "hostPID": of_host}})


def deploy_hello(kubectl: Kubectl) -> None:
    """Ask for a Deployment of one such Pod."""
    kubectl.apply(POD, _DEPLOYMENT)


def hear_hello(kubectl: Kubectl, seconds: float, what: str = f"pod/{POD}") -> str:
    """What the lab's Pod prints from inside; `what`: it, or DEPLOYMENT.

    Raises:
        DeadlineError: it does not run, or its log cannot be read.
    """
    kubectl.wait_until_running(what, seconds)
    return kubectl.wait_for_log(what, seconds).strip()
