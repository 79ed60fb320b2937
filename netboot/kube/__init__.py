"""The door to Kubernetes: the only room that knows its client. Adapters of `netboot.join.ports`."""
