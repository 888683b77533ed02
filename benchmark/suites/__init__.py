"""Suites: named runs, each a small TOML file in this folder."""
