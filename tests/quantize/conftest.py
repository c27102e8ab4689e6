"""Puts this folder on the path, so that the tests in it can import the builders that lie beside this file."""
