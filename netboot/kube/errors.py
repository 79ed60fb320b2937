"""What the apiserver's refusals become. All are `ClusterUnavailableError`s: the caller cannot go on, and may try again.

ClusterUnavailableError
├── TooMuchError               a page of a list was too much to ask for: of such length that the rest was not read, or
│                              not there in time
└── ClusterRefusedError        it answered: our account, a right, a policy or the request itself is not accepted
"""

import json
import re
from collections.abc import Callable
from typing import Literal

from netboot.join.errors import ClusterUnavailableError, InvalidError

Manifests = Literal["", "inventory", "enrolments", "keys"]
"""Which give an account its rights, by their folder in `deploy`; "": those of a cluster that machines join."""


class ClusterRefusedError(ClusterUnavailableError):
    """The apiserver answered, and refuses; the words name the right, policy or account, and what to apply."""


class TooMuchError(ClusterUnavailableError):
    """An answer, or an event, is longer than is read, or did not come in time; a list can be had in smaller pages."""


class KubeconfigError(ClusterUnavailableError):
    """The kubeconfig cannot be read or used; the words say why. A corrected file is picked up."""


class StatusError(Exception):
    """An answer that is no success, for the adapters, who know what theirs mean. Never leaves this package.

    `reason` and `message` are those of the apiserver's Status object, "" where it sent none.
    """

    def __init__(self, status: int, body: bytes) -> None:
        self.status = status
        self.reason, self.message = _status(body)
        super().__init__(f"{status} {self.reason}: {self.message}")


def in_words(error: StatusError, kubeconfig: str, *, manifests: Manifests = "") -> ClusterUnavailableError:
    """What an unexpected status means to somebody who runs the service. `manifests`: which give the account its
    rights."""
    message = error.message or f"status {error.status}"
    option, rights = (f" --{manifests}", f"deploy/{manifests}") if manifests else ("", "deploy/kubernetes")
    if error.status == 401:
        return ClusterRefusedError(
            f"the apiserver does not accept the account of {kubeconfig}: it may have expired; "
            f"make a new one with `netboot cluster kubeconfigs{option}`"
        )
    if error.status == 403:
        return ClusterRefusedError(
            f"the account of {kubeconfig} lacks a right: {message}; "
            f"the rights are in {rights}: `netboot cluster manifests{option} | kubectl apply -f -`"
        )
    if error.status == 429 or error.status >= 500:
        return ClusterUnavailableError(f"the apiserver is overloaded or failing ({error.status}): {message}")
    return ClusterRefusedError(f"the apiserver refused a request of ours ({error.status} {error.reason}): {message}")


_NO_RIGHT = re.compile(r'[^"]*("[^"]*" )?is forbidden: User "')
"""`forbiddenMessage` of k8s.io/apiserver/pkg/endpoints/handlers/responsewriters: what no admission says."""


REFUSALS = range(400, 500)
"""Statuses of which some are about one object alone."""


def refusal(error: StatusError, in_words: Callable[[StatusError], ClusterUnavailableError]) -> Exception:
    """What a refused write becomes: InvalidError where others may be taken, with the apiserver's own words."""
    return InvalidError(f"{error.status} {error.reason}: {error.message}") if _of_object(error) else in_words(error)


def _of_object(error: StatusError) -> bool:
    """Whether it is this object, or this content, that is not taken, by its form or by a policy, and others may be:
    neither our account, nor a right that it lacks, nor a server that is slow, away, or none of Kubernetes'."""
    if not error.reason or not 400 <= error.status < 500 or error.status in (408, 429):
        return False
    if error.status == 401:  # a policy may deny by it, with words of its own
        return error.message not in ("", "Unauthorized")
    return error.status != 403 or _NO_RIGHT.match(error.message) is None


def _status(body: bytes) -> tuple[str, str]:
    try:
        read = json.loads(body)
    except ValueError:
        return "", ""
    if not isinstance(read, dict):
        return "", ""
    return str(read.get("reason") or ""), str(read.get("message") or "")[:500]
