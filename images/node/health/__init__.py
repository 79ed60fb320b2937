"""Checks of a node's hardware: run on the machine, told to the service. docs/health.md is their contract."""
