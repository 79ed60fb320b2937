"""The cache of docs/store.md: the real nginx with the documented configuration keeps one copy for all boots."""

import re
from pathlib import Path

import pytest
import requests

from images.artifact.manifest import CHUNK_SIZE
from lab.processes import child
from lab.site import free_port
from tests.tools.images.origin import Origin, serving

pytestmark = pytest.mark.tools

DOCUMENTED = Path(__file__).parents[3] / "docs/store.md"
AROUND = """\
daemon off;
user root;
pid {folder}/nginx.pid;
error_log stderr notice;
events {{}}
http {{
access_log off;
client_body_temp_path {folder}/tmp; proxy_temp_path {folder}/tmp; fastcgi_temp_path {folder}/tmp;
uwsgi_temp_path {folder}/tmp; scgi_temp_path {folder}/tmp;
{documented}
}}
"""
DATA = bytes(range(256)) * (2 * CHUNK_SIZE // 256) + b"the end"
BLOB = f"/v1/blobs/{'a' * 64}"


def test_boots_ask_the_service_once(tmp_path: Path) -> None:
    service = Origin(files={f"{BLOB}?boot=1&machine=a": DATA})
    with serving(service):
        block = re.search(r"```nginx\n(proxy_cache_path .*?)```", DOCUMENTED.read_text(), re.DOTALL)
        assert block is not None
        port = free_port("127.0.0.1")
        documented = block[1].replace("listen 8080;", f"listen 127.0.0.1:{port};")
        documented = documented.replace("http://192.0.2.1:8080", service.url)
        documented = documented.replace("/var/cache/nginx/netboot", f"{tmp_path}/cache")
        config = tmp_path / "nginx.conf"
        config.write_text(AROUND.format(folder=tmp_path, documented=documented))
        argv = ["nginx", "-e", "stderr", "-c", str(config), "-p", str(tmp_path)]
        with child("nginx", argv, tmp_path / "nginx.log") as nginx:
            nginx.output.wait_for(r"start worker process \d+", 180)
            url = f"http://127.0.0.1:{port}{BLOB}"
            for asked in ("?boot=1&machine=a", "?boot=2&machine=b", ""):
                assert requests.get(url + asked, timeout=180).content == DATA
            part = requests.get(url, headers={"Range": f"bytes={CHUNK_SIZE}-{len(DATA) - 1}"}, timeout=180)
            assert (part.status_code, part.content) == (206, DATA[CHUNK_SIZE:])
            assert part.headers["Content-Range"] == f"bytes {CHUNK_SIZE}-{len(DATA) - 1}/{len(DATA)}"
    slices = [f"bytes={at}-{at + CHUNK_SIZE - 1}" for at in range(0, len(DATA), CHUNK_SIZE)]
    assert service.asked == [(f"{BLOB}?boot=1&machine=a", asked) for asked in slices]
