"""The health checks on recorded machines."""
