"""The first process of a PID namespace, as of a container, is whom the kernel gives processes whose parents ended."""

import os
from collections.abc import Collection


def reap(ours: Collection[int]) -> None:
    """Let go those that have ended, or each would keep its number for as long as we run. `ours`: processes whose end
    somebody else here waits for; behind one of those that has ended, orphans wait until it was heeded."""
    try:
        while (ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) and ended.si_pid not in ours:
            os.waitpid(ended.si_pid, 0)
    except ChildProcessError:
        return  # none is left
