"""`python -m tests.fuzz.one NAME …`: libFuzzer on one target, guided by what inputs reach; `…` are its arguments."""

import sys
from contextlib import suppress

import atheris

with atheris.instrument_imports(include=["images", "netboot", "tokens"]):
    from tests.fuzz.targets import TARGETS


def main() -> None:
    """Never returns: libFuzzer ends the process, with another status than 0 where an input broke the target."""
    target = TARGETS[sys.argv[1]]

    def once(data: bytes) -> None:
        with suppress(*target.refuses):
            target.read(data)

    atheris.Setup([sys.argv[0], f"-max_len={target.longest}", *sys.argv[2:]], once)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
