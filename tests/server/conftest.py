"""Fixtures of the server's tests."""

from server_at_work import bench_prompt as bench_prompt
