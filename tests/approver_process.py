"""An approver as a process, for tests: `python -m tests.approver_process CONFIG READY [round=SECONDS] [die]`.

`die`: it ends as by SIGKILL when it is about to delete a token, the approval being made.
"""

import os
import signal
import sys
from pathlib import Path

from netboot import logs
from netboot.config import Config
from netboot.controllers.approver import approver, process
from netboot.kube.secrets import KubeTokens
from netboot.processes.clock import SystemClock


def _die(_self: KubeTokens, _token_id: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main(arguments: list[str]) -> None:
    """Run it until it is told to stop."""
    config = Config.model_validate_json(Path(arguments[0]).read_bytes())
    logs.set_up("approver-default")
    for option in arguments[2:]:
        if option.startswith("round="):
            approver.ROUND_SECONDS = float(option.removeprefix("round="))
        if option == "die":
            KubeTokens.delete = _die  # type: ignore[method-assign, assignment]
    process.run(config, "default", SystemClock(), Path(arguments[1]).touch)


if __name__ == "__main__":
    main(sys.argv[1:])
