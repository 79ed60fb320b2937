"""A kernel's command line: its words as a script has them, and whether all of it reaches the kernel.

A line that is too long is cut at its end, without a word, and there are the arguments of class and profile. How much
reaches a kernel:

- the kernel itself keeps 2,048 bytes with the NUL, on amd64 (`COMMAND_LINE_SIZE`, Linux arch/x86/include/asm/setup.h)
  and on arm64 (arch/arm64/include/uapi/asm/setup.h, 6.1), and its EFI stub no more (`efi_convert_cmdline`,
  drivers/firmware/efi/libstub/efi-stub-helper.c);
- firmware of BIOS: a kernel says 2,047 (`cmdline_size`, arch/x86/boot/header.S), of which iPXE takes one for the NUL
  (`bzimage_set_cmdline`, src/arch/x86/image/bzimage.c);
- UEFI: iPXE puts the image's name and a blank before it (`efi_image_cmdline`, src/image/efi_image.c). A unified kernel
  image whose stub takes the line from iPXE hands it on as it is (systemd-stub(7)).

A line of a script may be as long as iPXE has memory (src/image/script.c, src/core/exec.c).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

LONGEST = 2046
"""Bytes, without the NUL, that reach every kernel whichever way iPXE starts it."""
KERNEL_NAME = "kernel"
"""What the script calls the kernel's file, which on UEFI is the line's first word."""
_BOOT_ID, _MAC = "0" * 36, "00-00-00-00-00-00"
_FILLED_IN = "${netX/mac:hexhyp}"


@dataclass(frozen=True, slots=True)
class CommandLine:
    """What the service sets for a boot, then the arguments of image, class and profile."""

    url: str
    machine: str
    image: str
    """Its digest."""
    origins: Sequence[Sequence[str]]
    """Groups, of which those of one are preferred alike."""
    arguments: Sequence[str] = ()

    def words(self, boot_id: str, *, nonce: bool) -> tuple[str, ...]:
        """As `docs/architecture.md` has them; `nonce`: a second initrd file is loaded.

        iPXE itself fills in the address of the card that it booted from: whoever asked for the script, the machine that
        runs it is the one that is told.
        """
        return (
            "initrd=initrd",
            *(("initrd=nonce",) if nonce else ()),
            f"netboot.boot={boot_id}",
            f"netboot.image={self.image}",
            f"netboot.report={self.url}",
            self._origins,
            f"BOOTIF=01-{_FILLED_IN}",
            f"systemd.hostname={self.machine}",
            *self.arguments,
        )

    @property
    def length(self) -> int:
        """Bytes as the kernel gets it where it gets most: on UEFI, in a boot window, from an Ethernet card."""
        line = " ".join((KERNEL_NAME, *self.words(_BOOT_ID, nonce=True))).replace(_FILLED_IN, _MAC)
        return len(line.encode())

    def too_long(self, said: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
        """Why no kernel would get all of it, in sentences: how long, what is longest, what to do. Empty: each would.

        Args:
            said: who says arguments (`profile gpu`) → those, as far as they are on this line.
        """
        length = self.length
        if length <= LONGEST:
            return ()
        parts = {"netboot.origins": len(self._origins)}
        parts |= {f"arguments of {who}": len(" ".join(words)) for who, words in said.items()}
        longest = sorted(((size, name) for name, size in parts.items() if size), reverse=True)
        sizes = ", ".join(f"{name} {size}" for size, name in longest)
        why = f"its kernel's command line would have {length} bytes, and {LONGEST} reach every kernel"
        remedy = "fewer or shorter origins (of rack, class, site), fewer or shorter kernel_arguments"
        return (
            f"{why}: the end would be cut off",
            f"of them {sizes}; the service sets the others",
            f"shorten it by {length - LONGEST}: {remedy}",
        )

    @property
    def _origins(self) -> str:
        return f"netboot.origins={',,'.join(','.join(group) for group in self.origins)}"
