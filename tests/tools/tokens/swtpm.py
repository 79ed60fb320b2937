"""A software TPM and tpm2-tools against it: a real TPM 2.0 for the tests of `tokens`."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Tpm:
    """A running swtpm; `tool` runs one of tpm2-tools in a scratch folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._environment = {"PATH": os.environ["PATH"], "TPM2TOOLS_TCTI": f"swtpm:path={folder}/server.sock"}

    def tool(self, *arguments: str) -> str:
        """Run `tpm2_<first argument>` with the rest, and drop the transient objects that it left in the TPM."""
        done = self._run(arguments)
        if arguments[0] != "startauthsession" and arguments[0] != "policysecret":
            self._run(("flushcontext", "-t"))
        return done

    def _run(self, arguments: tuple[str, ...]) -> str:
        argv = ["tpm2", *arguments]
        done = subprocess.run(argv, cwd=self.folder, env=self._environment, capture_output=True, text=True, timeout=180)
        assert done.returncode == 0, f"{' '.join(argv)}\n{done.stderr}"
        return done.stdout

    def peek(self, *arguments: str) -> str:
        """Run a tool, and leave the TPM as it is."""
        return self._run(arguments)

    def file(self, name: str) -> bytes:
        """A file that a tool wrote."""
        return (self.folder / name).read_bytes()


@contextmanager
def swtpm() -> Iterator[Tpm]:
    """A fresh TPM, powered and started."""
    folder = Path(tempfile.mkdtemp(prefix="swtpm"))  # a socket's path is at most 108 bytes: not pytest's folder
    argv = ["swtpm", "socket", "--tpm2", "--tpmstate", f"dir={folder}", "--flags", "startup-clear,not-need-init"]
    argv += [
        "--server",
        f"type=unixio,path={folder}/server.sock",
        "--ctrl",
        f"type=unixio,path={folder}/server.sock.ctrl",
    ]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        try:
            tpm = Tpm(folder)
            subprocess.run(
                ["sh", "-c", "until [ -S server.sock ]; do sleep 0.02; done"], cwd=folder, check=True, timeout=180
            )
            yield tpm
        finally:
            process.terminate()
            process.wait(timeout=180)
            shutil.rmtree(folder)
