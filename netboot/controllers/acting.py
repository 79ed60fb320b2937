"""A loop that first does what objects of people say: of Holds, and of Orders (docs/custom-resources.md)."""

import logging

from images.values.strict import FaultsError
from netboot.controllers.loop import Rollouts
from netboot.lifecycle.errors import CannotTellError
from netboot.logs import Trouble
from netboot.status import DEFECT
from netboot.status.controllers import RolloutsStatus

log = logging.getLogger(__name__)


class Acting:
    """`loop`, with this. `kinds`: what is followed; `stays`: what it comes to where that cannot be told."""

    def __init__(self, loop: Rollouts, kinds: str, stays: str) -> None:
        self._loop, self._stays, self._problem = loop, stays, ""
        self._defects = Trouble(log, f"{kinds} are not followed, by a defect", f"{kinds} are followed again")

    def step(self) -> None:
        """Do what is to be done, then go on."""
        try:
            self._problem = self.settle()
        except (CannotTellError, FaultsError) as error:
            self._problem = f"{self._stays}: {error}"
        except Exception as error:  # noqa: BLE001 - said with its traceback; rollouts and drains go on
            self._problem = f"{self._stays}: {DEFECT}"
            self._defects.note(repr(error), error)
        else:
            self._defects.note(None)
        self._loop.step()

    def settle(self) -> str:
        """Do it; what is wrong with some of them, in words. Raises CannotTellError, FaultsError."""
        raise NotImplementedError

    def status(self) -> RolloutsStatus:
        """The loop's, and what keeps objects from being followed."""
        status = self._loop.status()
        return status.model_copy(update={"problem": "; ".join(filter(None, (status.problem, self._problem)))})
