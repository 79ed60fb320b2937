"""Pure readers and writers of file formats: cpio, ELF, PE, trees of files, kernel modules, overlays."""
