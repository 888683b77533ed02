"""A data holder's own graph: protect it, audit what was published."""
