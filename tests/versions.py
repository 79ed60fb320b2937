"""Versions of netboot from before, as an operator has them: wheels, which their own trees make, unpacked.

Which they are is said here alone (docs/decisions/320).
"""

import shutil
import subprocess
import sys
from pathlib import Path

from lab.work import ROOT

BEFORE = "a6ec0d4b71c83361d07aa883e2bac90ccab17fe9"
"""The version that replicas run before an upgrade to this tree: until something is released, the last commit of the
line that was there before. It moves to each release, in the commit that begins work on the next one. Then
`tests/cluster/test_versions.py` is run, what docs/ha.md says of the version before is read anew, and what another key
of netboot.yaml, or another definition, asks of an operator is written there; `tests.cluster.replicated_start` gives
the older one a netboot.yaml that it can read."""
EMBEDDED = "7ee7ccfda8b47f5a49493086da11bb9de2a4ef46"
"""The last one before anything of a service's state could be in a cluster, whose `data` an operator may have. It moves
when folders of it are supported no more."""


def packages_of(commit: str, folder: Path, repository: Path = ROOT) -> Path:
    """A folder for PYTHONPATH with that version: its wheel, installed without what it needs, for that is in .venv.

    Raises:
        AssertionError: the clone lacks the commit, with what to do, or no wheel comes of it.
    """
    git = ["git", "-c", f"safe.directory={repository}", "-C", str(repository)]
    known = subprocess.run([*git, "cat-file", "-e", f"{commit}^{{tree}}"], capture_output=True, text=True, check=False)
    assert known.returncode == 0, (
        f"no netboot of before can be made: this clone lacks commit {commit}: `git fetch --unshallow`, or `git fetch "
        f"origin {commit}`, in a clone of the project; then run the test again ({known.stderr.strip()})"
    )
    tree, target = folder / "tree", folder / "packages"
    tree.mkdir(parents=True)
    _run([*git, "archive", f"--output={folder / 'tree.tar'}", commit], folder)
    _run(["tar", "--extract", f"--file={folder / 'tree.tar'}"], tree)
    its_own = ["env", "SOURCE_DATE_EPOCH=1", f"PYTHONPATH={tree}", sys.executable, "-m", "lab.packages", "wheel"]
    wheel = _run([*its_own, str(folder)], tree).splitlines()[-1]
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    _run([*pip, "--no-deps", "--no-index", "--target", str(target), wheel], folder)
    shutil.rmtree(tree)
    for path in (folder, target):
        path.chmod(0o755)  # a service runs by another account
    return target


def _run(argv: list[str], folder: Path) -> str:
    """What it said."""
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
    return done.stdout
