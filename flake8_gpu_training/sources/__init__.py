"""Source readers: one a language, text in, facts out."""
