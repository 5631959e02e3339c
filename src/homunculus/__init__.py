"""A fixed budget of visual tokens, spent where the question looks."""
