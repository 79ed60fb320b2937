"""Images that this run could not build because a mirror does not answer: said loudly at its end, and never passed over.

A test of a recipe whose mirror may be out of reach hands its build to the fixture `unbuilt`:

    made = unbuilt.unless_built("ubuntu-24.04-gpu", lambda: subprocess.run(...))
    if made is None:
        return  # the end of the run says so
"""

import json
import re
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

SAID = pytest.StashKey[list[str]]()
UNANSWERED = re.compile(
    r"the mirror (?P<url>\S+) does not answer for suite (?P<suite>\S+): .+\. "
    r"Check the network, set http_proxy \(or apt's Acquire::http::Proxy\) where a proxy is needed, "
    r"or name another mirror under 'sources' in the recipe"
)
"""The one message with which a build may end instead of an image: whole, as images.build.sources writes it."""


class Unbuilt:
    """What could not be built, in the order in which it was found."""

    def __init__(self, said: list[str], answers: Callable[[str], bool]) -> None:
        self._said, self._answers = said, answers

    def unless_built(self, recipe: str, build: Callable[[], subprocess.CompletedProcess[str]]) -> Any | None:
        """The result of `netboot image build … --output json`; None where a mirror does not answer, which is noted.

        The build's word for it is not enough: a mirror that answers somebody else makes the build run once more, and
        then it counts.
        """
        for last in (False, True):
            done = build()
            if done.returncode == 0:
                return json.loads(done.stdout)
            lines = done.stderr.rpartition("Error: ")[2].splitlines()
            found = [UNANSWERED.fullmatch(line) for line in lines]
            assert lines and all(found), done.stderr
            mute = [match for match in found if match and not self._answers(_address(match))]
            if mute:
                self._said.append(f"{recipe} was NOT BUILT: {mute[0][0]}")
                return None
            assert not last, f"the mirror answers, and the build says that it does not:\n{done.stderr}"
        raise AssertionError


def _address(match: re.Match[str]) -> str:
    suite = match["suite"]
    return f"{match['url'].rstrip('/')}/{suite.lstrip('/') if suite.endswith('/') else f'dists/{suite}/'}InRelease"


def answers(address: str) -> bool:
    """Whether curl gets it: another program than the one under test."""
    argv = ["curl", "-fsSL", "--max-time", "30", "-o", "/dev/null", address]
    return subprocess.run(argv, capture_output=True, check=False).returncode == 0


@pytest.fixture(scope="session")
def unbuilt(request: pytest.FixtureRequest) -> Unbuilt:
    return Unbuilt(request.config.stash.setdefault(SAID, []), answers)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """After everything else that pytest says but its last line, in red; a run without such a recipe says nothing."""
    said = config.stash.get(SAID, [])
    if said:
        terminalreporter.section("IMAGES THAT WERE NOT BUILT", sep="!", red=True, bold=True)
        for line in said:
            terminalreporter.write_line(line, red=True, bold=True)
