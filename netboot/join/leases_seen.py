"""By which Leases an apiserver's admission judges registrations of nodes: as they are, or as they once were."""

from typing import Literal, NamedTuple

LEASES_REMEDY = "restart that kube-apiserver; where there are several, each of them"


class LeasesSeen(NamedTuple):
    """What an apiserver's admission has of a Lease that was written a moment ago.

    current: as it is; older: as it was at `said`; unknown: nothing, and `said` so; unjudged: it does not apply the
    policy that would tell.
    """

    found: Literal["current", "older", "unknown", "unjudged"]
    said: str = ""


def leases_words(seen: LeasesSeen) -> str:
    """For an operator."""
    if seen.found == "current":
        return "the apiserver judges registrations by the Leases as they are"
    if seen.found == "unjudged":
        return (
            "the apiserver does not apply netboot-leases, which is there and bound, so it is not known what it denies: "
            "its admission plugin ValidatingAdmissionPolicy is off, or it no longer hears of policies"
        )
    judges = f"judges registrations by those of {seen.said}"
    knows = f"does not know one that is there ({seen.said})"
    return (
        "the apiserver no longer hears of Leases, so the taints that a machine's new one names are not enforced: it "
        f"{judges if seen.found == 'older' else knows}"
    )
