"""The health checks as processes."""
