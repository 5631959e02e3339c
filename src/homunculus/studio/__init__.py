"""A web page and an HTTP API over reader and allocators: `homunculus serve`."""
