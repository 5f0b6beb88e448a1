"""The real program, built and started for the tests, with a state and a port of its own."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
KEY = "mw_0123456789abcdefghijklmnopqrstuvwxyz0123"
PUSH_SECRET = "a-secret-of-the-git-host"

SETTINGS = """
listen: 127.0.0.1:{port}
state: {folder}/state.db
factories:
  - name: demo
    source: {{ dir: {folder}/demo }}
  - name: ops
    source: {{ managed: {{}} }}
  - name: repo
    source:
      git: {{ url: "file://{folder}/repo", branch: main, pushSecret: GIT_PUSH, pushScheme: gitlab }}
harness: echo
outbound: {{ allow: [127.0.0.1] }}
harnesses:
  slow: {{ command: [sh, -c, "echo started; sleep 600"], sameUser: true }}
  leave: {{ command: [sh, -c, "mkdir -p .millwright/artifacts && echo häha > .millwright/artifacts/note.txt"], sameUser: true }}
  ask: {{ command: [sh, -c, "echo what now; exit 10"], sameUser: true }}
"""


def free_port() -> int:
    """Return a port that nobody listens on, below those that systems give to connections."""
    while True:
        port = random.randrange(10_000, 32_000)
        with socket.socket() as s, contextlib.suppress(OSError):
            s.bind(("127.0.0.1", port))
            return port


class Server:
    """A running server with three factories, demo (a directory), ops (managed) and repo (git), or with demo alone."""

    def __init__(self, folder: Path, *, demo_alone: bool = False) -> None:
        self.binary = os.environ.get("MILLWRIGHT_BIN") or self._build(folder / "millwright")
        port = free_port()
        self.origin = f"http://127.0.0.1:{port}"
        self.base_url = self.origin + "/api/v1"
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("MILLWRIGHT_")}
        self.environment["MILLWRIGHT_BOOTSTRAP_KEY"] = KEY
        self.secrets = self._scaffold(folder)
        (folder / "millwright.yaml").write_text(SETTINGS.format(port=port, folder=folder))
        self.log = folder / "log"
        with self.log.open("wb") as log:
            demo = ["--dir", str(folder / "demo"), "--factory", "demo", "--state", str(folder / "state.db")]
            several = ["--config", str(folder / "millwright.yaml")]
            options = [*demo, "--listen", f"127.0.0.1:{port}"] if demo_alone else several
            command = [self.binary, "serve", *options]
            self._process = subprocess.Popen(
                command, env=self.environment, stdout=log, stderr=log, cwd=folder
            )
        self._until_ready()

    def _build(self, target: Path) -> str:
        go = shutil.which("go")
        if go is None:
            raise RuntimeError("these tests need the program: install Go, or name a binary in MILLWRIGHT_BIN")
        subprocess.run([go, "build", "-o", str(target), "./cmd/millwright"], cwd=REPOSITORY, check=True)
        return str(target)

    def _scaffold(self, folder: Path) -> dict[str, str]:
        """Write the definitions, and return the secrets of the demonstration."""
        options = ["--factory", "demo", "--state", str(folder / "state.db"), "--public-url", self.origin]
        command = [self.binary, "init", "--demo", *options, str(folder / "demo")]
        said = subprocess.run(
            command, env=self.environment, cwd=folder, check=True, capture_output=True, text=True
        ).stdout
        repo = folder / "repo"
        (repo / "webhooks").mkdir(parents=True)
        (repo / "webhooks" / "ci.yaml").write_text("authMode: token\nsecretName: CI_TOKEN\n")
        author = ["-c", "user.name=Test", "-c", "user.email=test@example.com"]
        for step in (
            ["init", "-q", "-b", "main"],
            ["add", "."],
            [*author, "commit", "-q", "-m", "Add a webhook"],
        ):
            subprocess.run(["git", *step], cwd=repo, check=True, capture_output=True)
        return dict(re.findall(r"(?m)^  ([A-Z_]+) +([0-9a-f]{48})$", said))

    def _until_ready(self) -> None:
        """Return when the demonstration is applied."""
        headers = {"Authorization": f"Bearer {KEY}"}
        request = urllib.request.Request(self.base_url + "/factory?search=demo", headers=headers)
        end = time.monotonic() + 60
        while True:
            try:
                with urllib.request.urlopen(request, timeout=10) as answer:
                    if [f["sync"]["state"] for f in json.load(answer)["factories"]] == ["applied"]:
                        return
            except (urllib.error.URLError, OSError):
                pass
            if self._process.poll() is not None or time.monotonic() > end:
                self.stop()
                raise RuntimeError(f"the server did not start:\n{self.log.read_text()}")
            time.sleep(0.05)

    def stop(self) -> None:
        """End the server that this started, and no other."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(60)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._process.returncode == 66:  # what the race detector found is in the log
            raise RuntimeError(f"the server has a data race:\n{self.log.read_text()}")
