"""The artifact store: blobs by digest, channels and references, garbage collection, checks."""
