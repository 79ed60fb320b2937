"""The running service: configuration, inventory, lifecycle, its servers and controllers, and the command line."""
