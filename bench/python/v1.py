"""The same `echo` tool on the Python SDK 1.x. Usage: python v1.py PORT"""

import sys

from mcp.server.fastmcp import FastMCP

server = FastMCP("echo", port=int(sys.argv[1]), log_level="WARNING")


@server.tool(description="Returns the text", structured_output=False)
def echo(message: str) -> str:
    return message


server.run(transport="streamable-http")
