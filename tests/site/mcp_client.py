"""Asks the tools of a site with the official client of the Model Context Protocol.

A program of its own, because the package `mcp` is installed beside the tests only:
`python -m tests.site.mcp_client URL MODE` reads a JSON list of `[tool, arguments]`, and
prints the names of all tools and the answers.
"""

import asyncio
import json
import sys
from typing import Any

from mcp.client import Client


async def ask(url: str, mode: str, calls: list[Any]) -> dict[str, Any]:
    """Return the descriptions of all tools, and whether each call failed, and its text.

    Args:
        url: the address of the tools.
        mode: `auto`, or `legacy` for a client of the protocol with sessions.
        calls: the name of a tool and its arguments.
    """
    async with Client(url, mode=mode) as client:
        listed = await client.list_tools()
        answers = []
        for name, arguments in calls:
            result = await client.call_tool(name, arguments)
            text = "".join(part.text for part in result.content)
            answers.append({"is_error": result.is_error, "text": text})
    tools = {tool.name: tool.description for tool in listed.tools}
    return {"tools": tools, "answers": answers}


if __name__ == "__main__":
    found = asyncio.run(ask(sys.argv[1], sys.argv[2], json.load(sys.stdin)))
    json.dump(found, sys.stdout)
