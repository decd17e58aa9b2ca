"""One file for each reader, with `read(body)`: the title, the link and the id of each entry."""
