"""The running service: configuration, inventory, lifecycle, the servers, the controllers and the command line."""
