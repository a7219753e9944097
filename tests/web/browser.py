"""A real browser on a page of the test's own, which runs a script and reports what it saw."""

from __future__ import annotations

import asyncio
import json
import shutil
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from tocsin.testing.serving import serving
from tocsin.web import CONTENT, client

FLAGS: Final = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
_PAGE: Final = """<!doctype html><title>test</title><script type="module">
import * as tocsin from "./tocsin.js";
const report = (value) => fetch("/report", {method: "POST", body: JSON.stringify(value)});
const asked = () => fetch("/asked");
const rules = {firstWait: 0.02, longestWait: 0.1, ack: 0.02, renew: 0.02, retry: 0.02};
const taken = async (subscription, count) => {
  const notes = [];
  for await (const note of subscription) {
    notes.push(note);
    if (notes.length === count) return notes;
  }
  return notes;
};
const executions = (notes) => notes.map((note) => note.execution);
const heard = (me, kind) => new Promise((resolve) => me.addEventListener(kind, resolve, {once: true}));
try {
  %s
} catch (error) {
  await report({error: String(error), code: error.code ?? null});
}
</script>"""


class Browser:
    """Chromium without a window. ``reports`` are what the script has reported, in order."""

    def __init__(self, script: str, profile: Path) -> None:
        self._page, self._profile = (_PAGE % script).encode(), profile
        self._reports: asyncio.Queue[Any] = asyncio.Queue()
        self._asked = asyncio.Event()
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        port = await self._stack.enter_async_context(serving(self.answer))
        program = shutil.which("chromium")
        assert program
        arguments = [*FLAGS, f"--user-data-dir={self._profile}", "--remote-debugging-port=0"]
        quiet = asyncio.subprocess.DEVNULL
        self._process = await asyncio.create_subprocess_exec(
            program, *arguments, f"http://127.0.0.1:{port}/", stdout=quiet, stderr=quiet
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        await self._process.wait()
        await self._stack.aclose()

    async def report(self) -> Any:
        """What the script reports next."""
        async with asyncio.timeout(30):
            return await self._reports.get()

    def ask(self) -> None:
        """Lets a script go on that waits until it is ``asked``."""
        self._asked.set()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One call of the page."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        kind, body = "text/html", self._page
        if head.startswith("get /tocsin.js"):
            kind, body = "text/javascript", client()
        elif head.startswith("get /tocsin-content.js"):
            kind, body = "text/javascript", client(CONTENT)
        elif head.startswith("post /report"):
            length = int(head.partition("content-length:")[2].split("\r\n")[0])
            self._reports.put_nowait(json.loads(await reader.readexactly(length)))
            body = b""
        elif head.startswith("get /asked"):
            await self._asked.wait()
            self._asked.clear()
        lead = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        writer.write(lead.encode() + body)
