"""A synthetic web served by a process of its own, for the tests of synthweb."""

import http.client
import json
import subprocess
import sys
from pathlib import Path

import ada_url

import synthweb
from synthweb import Web

ROOT = Path(synthweb.__file__).parents[1]
SMALL_SERVERS = 40
AGENT = "coletor"
PATIENCE_S = 300.0  # reached only where it hangs


class Served:
    """A web served by a process of its own."""

    def __init__(self, state: Path, servers: int, seed: int, port: int = 0) -> None:
        command = [sys.executable, "-m", "synthweb", "serve", "--seed", str(seed), "--servers", str(servers)]
        command += ["--port", str(port), "--state", str(state), "--until-eof"]
        self.state = state
        self.process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.first_line = self.process.stderr.readline()  # it speaks once it listens, or has failed
        if (state / "ready.json").exists():
            self.ready = json.loads((state / "ready.json").read_text())
            self.web = Web(seed, servers, self.ready["port"])
            lines = (line.split() for line in (state / "hosts").read_text().splitlines())
            self.hosts = {name: address for address, *names in lines for name in names}

    def get(self, host: str, target: str, accept: str = "gzip") -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection(self.hosts[host], self.ready["port"], timeout=PATIENCE_S)
        try:
            headers = {"Host": f"{host}:{self.ready['port']}", "User-Agent": "test", "Accept-Encoding": accept}
            connection.request("GET", target, headers=headers)
            answer = connection.getresponse()
            body = answer.read()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, body
        finally:
            connection.close()

    def access(self) -> list[dict]:
        return [json.loads(line) for line in (self.state / "access.jsonl").read_text().splitlines()]

    def end(self) -> int:
        self.process.stdin.close()
        code = self.process.wait(timeout=PATIENCE_S)
        self.process.stderr.close()
        return code


def canonical(text: str, base: str) -> str | None:
    """WHATWG serialisation without fragment, userinfo, empty query and the host's last dot; None: unparsable."""
    try:
        url = ada_url.URL(text, base)
    except ValueError:
        return None
    if url.hostname:
        url.username = url.password = ""
        url.hostname = url.hostname.removesuffix(".")
    url.hash = ""
    return url.href.removesuffix("?")
