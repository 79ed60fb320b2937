"""Checks of a finished tree, one file each, pure: from facts to findings. `images.gates.gather` reads the facts."""
