"""Puts this folder on the path, so that tests in any folder can import the builders that lie beside this file."""
