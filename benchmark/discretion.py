"""What may be repeated of what goes wrong on a graph that is somebody's secret.

A plugin knows nodes by their numbers and nothing else, so what it says can name one only by a number. Without its
numbers a message still says what went wrong, and whoever writes a plugin need not think of where its messages end up.
(A plugin that wants to tell has other ways: it is code that the data holder chose to run.)
"""

import re
import traceback
from pathlib import Path

_NUMBER = re.compile(r"\d+(?:[.,_]\d+)*")
_MASK = "…"
# What is left of a list of pairs is not worth a page.
_LONGEST = 200


def without_numbers(text: str) -> str:
    """The text with every number masked, cut off where it gets long."""
    masked = _NUMBER.sub(_MASK, text)
    return masked if len(masked) <= _LONGEST else f"{masked[:_LONGEST].rstrip()} {_MASK}"


def place_of(error: BaseException) -> str:
    """Where an exception was raised, as `file.py, line 12`; empty if it never was."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
