"""The join server (Flask on gunicorn, TLS, processes of its own): hello, attest, and its own health."""
