"""Images elsewhere: an OCI registry, a file server, a folder. What comes from there is verified before it counts."""
