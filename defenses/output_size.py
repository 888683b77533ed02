"""Whether a published graph can be held in memory: mechanisms that noise every pair may publish N²/4 links."""

MAX_LINKS = 100_000_000
BYTES_PER_LINK = 150
"""Peak while a graph is drawn, merged, sorted and checked (measured); the graph itself takes 24 bytes a link."""


def too_many_links(expected: float) -> str | None:
    """A reason not to publish about `expected` links, or None if they fit."""
    if expected <= MAX_LINKS:
        return None
    return (
        f"about {expected:,.0f} links would be published, which takes some {_gib(expected):,.0f} GiB of memory; "
        f"the limit is {MAX_LINKS:,} links ({_gib(MAX_LINKS):,.0f} GiB)"
    )


def _gib(links: float) -> float:
    return links * BYTES_PER_LINK / 2**30
