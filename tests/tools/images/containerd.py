"""containerd's own word for a configuration: what it understood of it, by the program of a root."""

import subprocess
import tomllib
from pathlib import Path
from typing import Any

from images.recipe import features

RUNTIME = {2: "io.containerd.grpc.v1.cri", 3: "io.containerd.cri.v1.runtime"}
"""The plugin that runs containers, by the configuration's version."""
HANDLER = {"BinaryName": "/usr/bin/nvidia-container-runtime", "SystemdCgroup": True}


def understood(root: Path, configuration: str) -> tuple[int, dict[str, Any]]:
    """The version that containerd speaks, and its settings for running containers; its warnings are failures."""
    (root / "netboot-test.toml").write_text(configuration)
    argv = ["chroot", str(root), "containerd", "--config", "/netboot-test.toml", "config", "dump"]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    dumped = tomllib.loads(done.stdout)
    settings: dict[str, Any] = dumped["plugins"][RUNTIME[dumped["version"]]]
    return dumped["version"], settings


def of_toolkit(distribution: str) -> str:
    """The configuration that the feature nvidia-toolkit brings."""
    return (features.SHIPPED / f"nvidia-toolkit-{distribution}/etc/containerd/config.toml").read_text()


def handler(settings: dict[str, Any]) -> dict[str, Any]:
    """The options of the handler `nvidia`, those that are set."""
    options = settings["containerd"]["runtimes"]["nvidia"]["options"]
    return {name: value for name, value in options.items() if value}
