"""The join server (aiohttp in front of Flask, TLS, processes of its own): hello, attest, and its own health."""
