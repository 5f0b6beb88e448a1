"""The examples of the README, run against the real program."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import pytest

from millwright import Millwright

from .server import KEY, Server

README = (Path(__file__).parent.parent / "README.md").read_text()
EXAMPLES = re.findall(r"(?ms)^```python\n(.*?)^```$", README)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    server = Server(tmp_path_factory.mktemp("server"), demo_alone=True)
    with Millwright(api_key=KEY, base_url=server.base_url) as client:
        factory = next(iter(client.factories.list()))
        webhook = next(w for w in client.factories.webhooks.list(factory.uid) if w.name == "ci")
    yield {
        **os.environ,
        "MILLWRIGHT_API_KEY": KEY,
        "MILLWRIGHT_BASE_URL": server.base_url,
        "WEBHOOK_URL": webhook.ingress_url,
        "WEBHOOK_TOKEN": server.secrets["CI_TOKEN"],
    }
    server.stop()


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 10


def methods_of(path: str, resource: object) -> dict[str, set[str]]:
    """What can be called on a resource and on those below it."""
    found: dict[str, set[str]] = {path: set()}
    for name, value in vars(type(resource)).items():
        if isinstance(value, cached_property) and name != "with_raw_response":
            found |= methods_of(f"{path}.{name}", getattr(resource, name))
        elif inspect.isfunction(value) and not name.startswith("_"):
            found[path].add(name)
    return found


def test_the_table_has_every_method() -> None:
    table: dict[str, set[str]] = {}
    for resources, groups in re.findall(r"(?m)^\| (`client\..*?) +\| (.*?) +\|$", README):
        path = ""
        names = re.findall(r"`(.*?)`", resources)
        for name, group in zip(names, groups.split(";"), strict=True):
            path = path.rpartition(".")[0] + name if name.startswith(".") else name
            table[path] = set(re.findall(r"`(\w+)`", group))
    with Millwright(api_key=KEY, base_url="http://127.0.0.1:1/api/v1") as client:
        actual = methods_of("client", client)
    del actual["client"]  # calls of any path, which a section of their own describes
    assert table == {path: methods for path, methods in actual.items() if methods}


@pytest.mark.parametrize("code", EXAMPLES, ids=range(1, len(EXAMPLES) + 1))
def test_an_example(environment: dict[str, str], code: str) -> None:
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 0, run.stderr


def test_the_examples_are_typed(tmp_path: Path) -> None:
    for i, code in enumerate(EXAMPLES):
        (tmp_path / f"example_{i}.py").write_text(code)
    files = [str(f) for f in sorted(tmp_path.glob("*.py"))]
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), *files],
        capture_output=True, text=True, timeout=300, check=False, env={**os.environ, "MYPYPATH": str(Path(__file__).parent.parent / "src")},
    )  # fmt: skip
    assert run.returncode == 0, run.stdout
