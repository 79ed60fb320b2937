"""Kubernetes: the adapters of join's ports over the `kubernetes` client, which nothing else imports."""
