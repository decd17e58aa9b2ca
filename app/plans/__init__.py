"""What falls due becomes jobs; one file, one `async def plan(ctx, look) -> int`, how many it has put in.

`look` says what the tick has seen: a plan with nothing to do asks the database nothing.
"""
