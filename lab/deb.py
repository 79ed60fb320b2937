"""`python -m lab.deb FOLDER`, behind `make deb`: a Debian package for each architecture of `ARCH` (this machine's)."""

import os
import shutil
import sys
from importlib import metadata
from pathlib import Path

from lab import foreign, packages
from lab.errors import UnusableError
from lab.work import work_folder


def main(target: Path) -> None:
    """Make them, and say where they are."""
    version = os.environ.get("VERSION") or metadata.version("netboot")
    wanted = foreign.wanted(os.environ.get("ARCH", ""))
    target.mkdir(parents=True, exist_ok=True)
    with work_folder("packages") as folder:
        own = packages.laid_out(folder, packages.wheel(folder))
        trees = {each: foreign.tree(own, each) for each in wanted}  # before packing: that adds DEBIAN
        for each, root in trees.items():
            made = packages.pack(root, version, each)
            shutil.copy(made, target)
            print(target / made.name)
        shutil.rmtree(folder)


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except UnusableError as error:
        sys.exit(str(error))
