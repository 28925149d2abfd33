"""The same `echo` tool on the Python SDK 2.x. Usage: python v2.py PORT"""

import sys

from mcp.server.mcpserver import MCPServer

server = MCPServer("echo", log_level="WARNING")


@server.tool(description="Returns the text", structured_output=False)
def echo(message: str) -> str:
    return message


server.run(transport="streamable-http", port=int(sys.argv[1]))
