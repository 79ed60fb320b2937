"""An approver as a process, for tests: `python -m tests.approver_process CONFIG READY [OPTION…]`: `round=SECONDS`,
`let-go=SECONDS`, `die`.

`die`: it ends as by SIGKILL when it is about to delete a token, the approval being made.
"""

import os
import signal
import sys
from pathlib import Path

from netboot import logs
from netboot.config import Config
from netboot.controllers import elector
from netboot.controllers.approver import approver
from netboot.kube.secrets import KubeTokens
from netboot.process import ProcessSpec
from netboot.processes import approver as process


def _die(_self: KubeTokens, _token_id: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main(arguments: list[str]) -> None:
    """Run it until it is told to stop."""
    name = "approver-default"
    config = Config.model_validate_json(Path(arguments[0]).read_bytes())
    logs.set_up(name, "approver", logs.Log())
    for option in arguments[2:]:
        if option.startswith("round="):
            approver.ROUND_SECONDS = float(option.removeprefix("round="))
        if option.startswith("let-go="):
            elector.LET_GO_SECONDS = float(option.removeprefix("let-go="))
        if option == "die":
            KubeTokens.delete = _die  # type: ignore[method-assign, assignment]
    ready = os.open(arguments[1], os.O_WRONLY | os.O_CREAT)
    spec = ProcessSpec(
        kind="approver", name=name, cluster="default", config=config, ready=ready, supervisor=os.getppid()
    )
    process.run(spec)


if __name__ == "__main__":
    main(sys.argv[1:])
