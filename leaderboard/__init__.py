"""Ranking and presentation of stored rows. Reads rows only: never torch, never the runner."""
