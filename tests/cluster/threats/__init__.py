"""The bad things of `docs/bad-things.md`, each done to a whole service in front of a real control plane."""
