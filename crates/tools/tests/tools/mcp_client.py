"""A client of the official SDK: python mcp_client.py SERVER ARGS…

Reads one call per line from standard input, as {"name": …, "arguments": …}, and prints what the client got.
"""
import asyncio
import json
import sys

from mcp import ClientSession, MCPError, StdioServerParameters, stdio_client


async def main():
    server = StdioServerParameters(command=sys.argv[1], args=sys.argv[2:])
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        hello = await session.initialize()
        print(json.dumps({"server": hello.server_info.name, "version": hello.protocol_version}))
        await session.send_ping()
        tools = (await session.list_tools()).tools
        print(json.dumps({tool.name: tool.annotations.read_only_hint for tool in tools}))
        for line in sys.stdin:
            call = json.loads(line)
            try:
                result = await session.call_tool(call["name"], call["arguments"])
                answer = {"error": result.is_error, "text": "".join(part.text for part in result.content)}
            except MCPError as error:
                answer = {"code": error.error.code, "message": error.error.message}
            print(json.dumps(answer))


asyncio.run(main())
