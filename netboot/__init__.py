"""The running service: configuration, inventory, lifecycle, the two planes and the command line."""
