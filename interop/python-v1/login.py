"""The logins on the Python SDK's version 1 (the package `mcp`)."""

import sys
from contextlib import asynccontextmanager
from pathlib import Path

import httpx as http
from mcp import ClientSession

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
from logins import run_logins  # noqa: E402

#: It asks for what it is told to, and not for what it had before as well.
UNITES = False
#: It knows no address without a path: this is what it reads in the server's metadata.
ISSUER_ENDS_WITH = "/"


def came_back(back):
    return back["code"], back.get("state")


@asynccontextmanager
async def connect(revision, opened):
    """It proposes the newest revision it knows, and has no option for another."""
    async with opened as (read, write, *_), ClientSession(read, write) as session:
        await session.initialize()
        yield session


if __name__ == "__main__":
    run_logins(sys.modules[__name__])
