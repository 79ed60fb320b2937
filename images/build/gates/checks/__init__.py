"""One gate a file, pure: from facts to findings. Each has a `GATE` of the file's own name."""
