"""Errors of the image room.

ImageError
├── RecipeError            (a recipe asks for what cannot be; faults of form are strict.FaultsError)
│   └── NoSuchRecipeError  there is none of that name
├── CommandError           a tool failed; the message is a command that can be pasted, and its last words
│   └── TooMuchOutputError it wrote more than it may
├── SourceUnavailableError a package mirror does not answer
├── GateError              what was built must not be booted: images.values.finding, with what it lists
│   └── BudgetError        the image is larger than its recipe allows, or takes more memory than its machines have
├── RegistryError          of places elsewhere: images.registry.errors
├── StoreError
│   ├── NotFoundError      no such image, blob, key or channel
│   ├── CorruptError       what is stored is not what its digest says
│   ├── BusyError          another writer holds the store
│   ├── NotPermittedError  the file system does not let this account
│   ├── NotDurableError    it is in place, and may be gone after a power cut
│   └── InUseError         a channel, a boot or a recent use refers to it
└── SignatureError
    ├── UnknownSignerError signed by a key that is not trusted here
    └── BadSignatureError  the signature does not fit the bytes
"""


class ImageError(Exception):
    """Anything that can go wrong with recipes, builds, stores and signatures."""


class RecipeError(ImageError):
    """The recipe is well formed and asks for something that cannot be built."""


class NoSuchRecipeError(RecipeError):
    """There is no recipe of that name, or at that path."""


class CommandError(ImageError):
    """A tool failed. `command` can be pasted into a shell; `output` is the end of what the tool said."""

    def __init__(self, command: str, status: int, output: str) -> None:
        self.command, self.status, self.output = command, status, output
        super().__init__(f"exit status {status} from: {command}\n{output}".rstrip())


class TooMuchOutputError(CommandError):
    """A tool wrote more than it may, and was ended. `words`: that it did, and how much it may."""

    def __init__(self, command: str, status: int, output: str, most: int) -> None:
        self.words = f"ended, for it wrote more than {most >> 10} KiB"
        super().__init__(command, status, f"{output}\n{self.words}".lstrip())


class SourceUnavailableError(ImageError):
    """A package mirror does not answer."""


class LockError(ImageError):
    """A lock that cannot be read, does not fit its recipe, or cannot be kept."""


class StoreError(ImageError):
    """Anything that can go wrong with the artifact store."""


class NotPermittedError(StoreError):
    """The file system does not let this account do it, now or later."""


class NotDurableError(StoreError):
    """What was to be written is in place, and its name cannot be made durable: a power cut may undo it."""


class NotFoundError(StoreError):
    """No such image, blob, key or channel."""


class CorruptError(StoreError):
    """What is stored is not what its digest says."""


class BusyError(StoreError):
    """Another writer holds the store."""


class InUseError(StoreError):
    """A channel, a boot or a recent use refers to it."""


class SignatureError(ImageError):
    """A signature that cannot be accepted."""


class UnknownSignerError(SignatureError):
    """Signed by a key that is not trusted here."""


class BadSignatureError(SignatureError):
    """The signature does not fit the bytes."""
