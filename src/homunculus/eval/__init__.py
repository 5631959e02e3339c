"""How well it answers: the sets, the scores, and their uncertainty."""
