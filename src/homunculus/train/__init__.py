"""Training: synthetic pages, and the networks that learn from them."""
