"""What a command ends with by an error of ours: the words, what to do about it, the exit status.

The service's own table (`netboot.failures`) has most of them. `HERE` has what no server meets, and what is done about
an error where one works on files oneself.
"""

import re
from typing import NamedTuple

from images import errors as images
from images.artifact.advisories import BadDataError
from images.cancel import EndedError
from images.registry import errors as registry
from images.values.finding import GateError
from images.values.strict import FaultsError
from netboot.cli.outcomes import CANNOT_TELL, EXIT_CODE, NOT_ALLOWED, UNKNOWN, ApiError, is_refused
from netboot.client.errors import kind_of
from netboot.failures import TABLE, UNEXPECTED
from netboot.kube.errors import ClusterRefusedError, KubeconfigError
from netboot.lifecycle.errors import LifecycleError
from netboot.lifecycle.proof import BadProofError
from netboot.listeners import ListenError
from netboot.process import OrphanedError
from netboot.stores.backup import BackupError
from netboot.stores.lock import AlreadyRunningError
from netboot.stores.sealing import SealingKeysError

BASES = (images.ImageError, LifecycleError, FaultsError)
"""By these, and by what the client raises, a command may end."""


class End(NamedTuple):
    """`remedy`: what to do, where the error's own words do not say it."""

    remedy: str
    status: int = 1


_DAMAGED = "push or export the image there again, from a store where `netboot image verify` finds nothing"

HERE: dict[type[BaseException], End] = {
    FaultsError: End("correct what is named, then give the command again"),
    BadProofError: End("docs/proof.md#when-it-does-not says what each of these means"),
    EndedError: End("what the other step said is above; once that is put right, give the command again"),
    KubeconfigError: End("make it anew: `netboot cluster kubeconfigs`; a corrected file is picked up"),
    ClusterRefusedError: End("`netboot doctor` says what the account may, and what to apply", NOT_ALLOWED),
    SealingKeysError: End("put the file of another replica or of a backup in its place: docs/operations.md"),
    BackupError: End("put right what is named, then give the command again; of a backup that is damaged take another"),
    AlreadyRunningError: End("stop the service that runs there, or give this one another `data`"),
    ListenError: End("choose another address for that key in netboot.yaml"),
    OrphanedError: End("start the service anew: `netboot serve`"),
    images.ImageError: End("put right what is named, then give the command again"),
    images.RecipeError: End("put it right in the recipe, or in what it names, then build again: docs/recipes.md"),
    images.NoSuchRecipeError: End("name one of those, or the file: docs/shipped-recipes.md", UNKNOWN),
    images.CommandError: End(
        "read in the tool's last words what it lacks; paste the command into a shell to see it fail again"
    ),
    images.SourceUnavailableError: End(
        "try again; `netboot image sources check` says what each mirror answers", CANNOT_TELL
    ),
    images.LockError: End("lock anew: `netboot image lock`"),
    GateError: End("what to do is below each finding; docs/gates.md explains them"),
    BadDataError: End("docs/audit.md says which files can be given"),
    images.StoreError: End("see that you may read and write the store: `netboot doctor`", CANNOT_TELL),
    images.NotPermittedError: End("use the account that owns it", NOT_ALLOWED),
    images.NotFoundError: End(
        "what there is: `netboot image list`, `netboot channel list`, `netboot key list`", UNKNOWN
    ),
    images.CorruptError: End("`netboot image verify` names what is damaged; build or pull that image again"),
    images.SignatureError: End("`netboot key list` says which keys are trusted here: docs/store.md#keys", NOT_ALLOWED),
    registry.RegistryError: End("see that the address is right, and that a registry, file server or folder is there"),
    registry.BadReferenceError: End("docs/registry.md says how places are written", 2),
    registry.AbsentError: End("see that name and tag are right, and that the image was pushed there", UNKNOWN),
    registry.DeniedError: End("log in with --username or --credentials: docs/registry.md", NOT_ALLOWED),
    registry.DamagedError: End(_DAMAGED),
    registry.UnreachableError: End("see that it runs and can be reached from here, then try again", CANNOT_TELL),
}


def end_of(kind: type[BaseException]) -> End | None:
    """Of an error of this class: its own, or of the nearest of its bases. None: it never ends anything."""
    for base in kind.__mro__:
        if base in HERE:
            return HERE[base]
        answer = TABLE.get(base, UNEXPECTED)
        if answer is not UNEXPECTED:
            return End(answer.remedy, EXIT_CODE[kind_of(answer.status, answer.code)])
    return None


SAYS_WHAT_TO_DO = re.compile(
    r"`(?:\(umask|(?:sudo|netboot|kubectl|chmod|chown|apt-get|adduser|podman|docker|ip|kill|journalctl|systemctl)\b)"
    r"|\bdocs/|[:;,(] (?:or )?(?:add|ask|build|call|change|choose|correct|declare|edit|give|leave|let|lock|make|name"
    r"|pipe|pull|push|put|raise|remove|run|say|see|set|shorten|start|take|try|use|write)\b"
)
"""By how our words end: a command that can be typed, a page, or an imperative. It is not said twice then. A key or a
value in backticks says nothing of the kind."""


def ended(error: BaseException) -> tuple[str, int]:
    """What is printed, and the exit status."""
    end = end_of(type(error)) or End(UNEXPECTED.remedy)
    words = str(error)
    status = NOT_ALLOWED if is_refused(error) else end.status
    return words if SAYS_WHAT_TO_DO.search(words) else f"{words}\nRemedy: {end.remedy}", status


def in_words(error: BaseException) -> str:
    """The same as a part of other words, of a fault for one."""
    return ended(error)[0].replace("\nRemedy: ", ": ")


def failed(error: Exception) -> ApiError:
    """The same, for whoever caught it."""
    words, status = ended(error)
    return ApiError(words, "", status)
