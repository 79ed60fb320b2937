"""Errors of places that images are published to and served from.

RegistryError                  (an ImageError; also: what answers is no registry, or no image of ours)
├── BadReferenceError          what was typed names no place
├── AbsentError                there is no such thing there
├── DeniedError                not allowed: no login, a wrong one, or not for this
├── DamagedError               what is there is not what was signed
└── UnreachableError           cannot tell right now; trying again is right
"""

from images.errors import ImageError


class RegistryError(ImageError):
    """Anything that can go wrong with a registry, a plain origin or a folder of images."""


class BadReferenceError(RegistryError):
    """What was typed names no place."""


class AbsentError(RegistryError):
    """There is no such thing there: the place answered."""


class DeniedError(RegistryError):
    """Not allowed: no login, a wrong one, or not for this."""


class DamagedError(RegistryError):
    """What is there is not what was signed."""


class UnreachableError(RegistryError):
    """Cannot tell right now. `after`: seconds that the place asked us to wait."""

    def __init__(self, message: str, after: float | None = None) -> None:
        self.after = after
        super().__init__(message)
