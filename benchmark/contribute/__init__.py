"""A contributor's own method: start it, check it, place it on the board."""
