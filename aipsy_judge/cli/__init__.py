"""The command line: one module a verb, imported only when asked for."""
