"""What this machine is ordered to do, on its own Node: docs/drain.md."""
