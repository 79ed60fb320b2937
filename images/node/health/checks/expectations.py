"""Whether what the class should have is known here: without it there are facts, and nothing is judged by them."""

from ..machine import Machine
from ..result import Check, Result, listed


def look(machine: Machine) -> Result:
    """Of the inventory's `health`, as it reached this machine."""
    expected = machine.expected
    facts = {"source": expected.source, "keys": expected.keys}
    if expected.not_understood:
        return Result(
            "warn",
            f"this image does not know what is expected by {listed(list(expected.not_understood))}: not checked",
            "build the image with the service's version of netboot",
            {**facts, "not_understood": list(expected.not_understood)},
        )
    if expected.source == "nobody":
        return Result(
            "unknown",
            "the service could not be asked what this machine should have: facts only, nothing is judged by them",
            "see the network and the service; it is asked again with the next run",
            facts,
        )
    if not expected.keys:
        return Result("absent", "the inventory says nothing of what this machine should have: facts only", facts=facts)
    kept = ", as the service said earlier in this boot; it does not answer now" if expected.source == "kept" else ""
    return Result("pass", f"{len(expected.keys)} expectations{kept}", facts=facts)


CHECK = Check("expectations", "minor", 30, look)
