"""Sends an HTTP server of ours one request, and waits for its response."""

import asyncio


async def exchange(port, request):
    """Status, head and body of the response to these bytes; status 0 if there is none."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        async with asyncio.timeout(60):
            answer = await reader.read()
    finally:
        writer.close()
        await writer.wait_closed()
    head, _, body = answer.partition(b"\r\n\r\n")
    status = int(head.split()[1]) if head else 0
    return status, head.decode(), body.decode()


async def get(port, path):
    return await exchange(port, f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
