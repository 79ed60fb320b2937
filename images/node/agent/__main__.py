"""`python3 -m node.agent [ROOT]`: join this machine; ROOT stands for / in tests."""

import os
import signal
import sys
from pathlib import Path

from .clock import disciplined, set_time
from .loop import Agent


def main(argv: list[str]) -> int:
    """Run until this boot has joined; SIGTERM ends at once, after what the TPM holds of ours is flushed."""

    def end(*_: object) -> None:
        raise SystemExit(128 + signal.SIGTERM)

    signal.signal(signal.SIGTERM, end)
    os.umask(0o022)
    root = Path(argv[1] if len(argv) > 1 else "/").absolute()
    agent = Agent(root, set_clock=set_time, disciplined=disciplined) if root == Path("/") else Agent(root)
    agent.run()
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv))
