"""Static reading of released sources: archives, modules, classes, command-line parsers."""
