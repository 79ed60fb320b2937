"""What a test run says of the images that it could not build."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.plugins.unbuilt import Unbuilt

ROOT = Path(__file__).parents[2]
NO_MIRROR = (
    "mirrors      failed\n"
    "Error: the mirror http://mirror.invalid/ubuntu does not answer for suite noble: its name cannot be resolved. "
    "Check the network, set http_proxy (or apt's Acquire::http::Proxy) where a proxy is needed, "
    "or name another mirror under 'sources' in the recipe\n"
)


def ended(status: int, out: str = "", err: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.CompletedProcess([], status, out, err)


def nobody(address: str) -> bool:
    assert address == "http://mirror.invalid/ubuntu/dists/noble/InRelease"
    return False


def test_what_was_built_is_handed_on_and_nothing_is_said() -> None:
    said: list[str] = []
    assert Unbuilt(said, nobody).unless_built("x", lambda: ended(0, '{"image": "1"}')) == {"image": "1"}
    assert said == []


def test_a_mirror_that_does_not_answer_is_noted() -> None:
    said: list[str] = []
    assert Unbuilt(said, nobody).unless_built("ubuntu-24.04-dpu", lambda: ended(1, err=NO_MIRROR)) is None
    assert said == [f"ubuntu-24.04-dpu was NOT BUILT: {NO_MIRROR.partition('Error: ')[2].strip()}"]


@pytest.mark.parametrize(
    "message",
    [
        "Error: the mirror http://mirror.invalid/ubuntu has no suite noble (404 for …)\n",
        f"{NO_MIRROR}error: something else\n",
        f"{NO_MIRROR}and something else\n",
        "",
    ],
)
def test_any_other_failure_is_a_failure(message: str) -> None:
    said: list[str] = []
    with pytest.raises(AssertionError):
        Unbuilt(said, nobody).unless_built("x", lambda: ended(1, err=message))
    assert said == []


def test_a_mirror_that_answers_others_has_to_be_used() -> None:
    said: list[str] = []
    with pytest.raises(AssertionError, match="the mirror answers, and the build says that it does not"):
        Unbuilt(said, lambda address: True).unless_built("x", lambda: ended(1, err=NO_MIRROR))
    ends = iter((ended(1, err=NO_MIRROR), ended(0, "{}")))
    assert Unbuilt(said, lambda address: True).unless_built("x", lambda: next(ends)) == {}
    assert said == []


def test_the_end_of_a_run_says_it_also_where_little_is_said(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(
        "import subprocess\n"
        "def test_it(unbuilt):\n"
        f"    done = subprocess.CompletedProcess([], 1, '', {NO_MIRROR!r})\n"
        "    assert unbuilt.unless_built('some-image', lambda: done) is None\n"
    )
    argv = [
        sys.executable,
        "-m",
        "pytest",
        "-qq",
        "-p",
        "tests.plugins.unbuilt",
        "--rootdir",
        str(tmp_path),
        str(tmp_path),
    ]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout
    assert "!! IMAGES THAT WERE NOT BUILT !!" in done.stdout
    assert "\nsome-image was NOT BUILT: the mirror http://mirror.invalid/ubuntu does not answer for suite noble: " in (
        done.stdout
    )
