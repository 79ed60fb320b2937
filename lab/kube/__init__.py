"""A real Kubernetes control plane of one pinned version, for tests and to play with (`make cluster`)."""
