"""The boot server: scripts, artifacts, boot events over plain HTTP; no Flask, no credentials."""
