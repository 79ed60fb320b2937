"""The bytecode of what is ours in Python, made once at build: else each start on each machine compiles it again."""

import os
from pathlib import Path

from images.build.node_files import HOME
from images.errors import RecipeError
from images.formats import tree
from images.run import run

_COMPILE = ("python3", "-Bs", "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", HOME)


def compile_node(root: Path) -> None:
    """Compile `node` and `tokens` by the image's own Python, whose version it is for, where `root` has them.

    The sources are not looked at again on the machine (PEP 552, "unchecked"): both are of one verified root.

    Raises:
        RecipeError: the image has no Python. CommandError: it does not compile them.
    """
    home = tree.inside(root, f"{HOME}/node").parent
    if not (home / "node").is_dir():
        return
    if not os.path.lexists(tree.inside(root, "/usr/bin/python3")):
        raise RecipeError("join: the image has no /usr/bin/python3 to run the agent with; add the package python3")
    run(["chroot", root, *_COMPILE], env={"PYTHONHASHSEED": "0"}, timeout=600)
    for path in home.rglob("__pycache__"):  # modes whatever this process's umask is
        path.chmod(0o755)
        for file in path.iterdir():
            file.chmod(0o644)


def paths(root: Path) -> list[str]:
    """What `compile_node` has left, as paths of the image."""
    return sorted(f"/{path.relative_to(root)}" for path in tree.inside(root, f"{HOME}/x").parent.rglob("*.pyc"))
