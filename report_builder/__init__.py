"""Reports: scores, recommendations and documents made from verdicts."""
