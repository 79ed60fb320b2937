"""Errors of join. Each has its row in `netboot.failures`; the agent is told their words, for they were written for it.

JoinError
├── NoSuchTokenError         no machine's Lease names this token
├── UnknownMachineError        no machine is pinned to this EK, or fits these hints
├── RefusedError               known, and not allowed: the words say which rule
│   ├── PendingError           enrolled on first use; an operator has not approved it yet
│   ├── NotShownError          an approval names another EK than there is (any more)
│   └── HeldError              another key holds this boot's credential
├── StaleError                 state expired, or sealed elsewhere: begin again with hello
├── ClusterUnavailableError    (CannotTellError) the apiserver does not answer, or is not fit to be used
│   ├── ElectionRefusedError   the Lease that says who leads is not there, or not for this account
│   └── NotLeadingError        another replica leads, or that cannot be told: this one changes nothing
├── CordonedError              (CannotTellError) somebody's cordon is not a hold of the machine yet
└── NodeKeptError              (CannotTellError) somebody's finalizers keep a Node that is deleted
"""

from collections.abc import Sequence

from netboot.lifecycle.cordons import Cordon
from netboot.lifecycle.errors import CannotTellError, LifecycleError


class JoinError(LifecycleError):
    """Anything that join answers with words of its own."""


class UnknownMachineError(JoinError):
    """No machine is pinned to this endorsement key, or fits these hints."""


class NoSuchTokenError(JoinError):
    """No machine's Lease names this token."""


class RefusedError(JoinError):
    """Known, and not allowed; the words say which rule and what to do."""


class PendingError(RefusedError):
    """Enrolled on first use; no token before an operator approves it."""


class NotShownError(RefusedError):
    """What an operator approves is not what was shown to them, or not any more; nothing was changed."""

    def __init__(self, machine: str, ek: str) -> None:
        super().__init__(f"the enrolment of {machine} is not what was shown: its EK is {ek} now; look again")


class HeldError(RefusedError):
    """Another key holds the credential of this boot."""


class StaleError(JoinError):
    """The sealed state is expired, or of a key that is not in use: begin again with hello."""


class ClusterUnavailableError(CannotTellError):
    """The apiserver does not answer, or is not fit to be used; trying again is right."""


class ElectionRefusedError(ClusterUnavailableError):
    """The Lease by which replicas elect who leads is not there, or not for this account; the words say what to do."""


class NotLeadingError(ClusterUnavailableError):
    """This replica does not lead at this moment, so it changes nothing; whoever does sees to it."""


class CordonedError(CannotTellError):
    """The Node that is to be deleted is cordoned, and its machine is not held for that yet."""

    def __init__(self, machine: str, cordon: Cordon) -> None:
        super().__init__(
            f"the Node {cordon.node} is cordoned, and goes when {machine} is held for that, which the service sees to "
            f"within seconds; where it does not, `kubectl uncordon {cordon.node}` lets the machine join"
        )
        self.cordon = cordon


class NodeKeptError(CannotTellError):
    """A Node was deleted, and is there until somebody takes its finalizers off."""

    def __init__(self, node: str, finalizers: Sequence[str]) -> None:
        nothing = '{"metadata":{"finalizers":null}}'
        super().__init__(
            f"the Node {node} is deleted, and stays until its finalizers are taken off ({', '.join(finalizers)}): by "
            f"whoever put them there, or `kubectl patch node {node} --type=merge -p '{nothing}'`"
        )


class InvalidError(Exception):
    """A write that the apiserver does not take of this object, however often it is tried; the words are its own."""


class ConflictError(Exception):
    """A write lost against another one: read again and decide again. Never leaves join."""
