"""What falls due becomes jobs; one file, one `async def plan(ctx) -> None`."""
