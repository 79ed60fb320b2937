"""What gunicorn is told for join's listener."""

from typing import Any

from netboot.config import Join
from netboot.web.join.tls import Certificate

THREADS = 32


def settings(config: Join, certificate: Certificate) -> dict[str, Any]:
    """Settings of one process; all together take `max_connections`."""
    return {
        "worker_class": "netboot.web.join.worker.PatientWorker",
        "certfile": str(config.certificate),
        "keyfile": str(config.key),
        "ssl_context": lambda _config, _default: certificate.context(),
        "http_protocols": "h1",
        "do_handshake_on_connect": False,
        "worker_connections": max(THREADS + 1, -(-config.max_connections // config.workers)),
        "limit_request_line": 1024,
        "limit_request_fields": 24,
        "limit_request_field_size": 4096,
    }
