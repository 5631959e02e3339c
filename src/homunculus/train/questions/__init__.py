"""Pages of text with questions and answers, from which the lessons of the language model are made."""
