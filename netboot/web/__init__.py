"""The control plane: the operators' API, health and metrics (Flask)."""
