"""The board as one page that needs nothing else: style, scripts, charting library and data are all inside it.

The charting library is Vega-Lite, as bundled in vl-convert. A content security policy allows the two scripts of this
page by their hashes and no connection at all: text that came with somebody's results cannot run, and nothing is loaded.
"""

import base64
import hashlib
import json
import re
from importlib import resources
from pathlib import Path
from typing import Any

from ppgsl_bench.errors import UserError
from ppgsl_bench.leaderboard.measurements import Measurements
from ppgsl_bench.leaderboard.pagedata import page_data

MAX_BYTES = 3_000_000

_SCRIPTS = ("dom.js", "board.js", "state.js", "charts.js", "ranking.js", "details.js", "sections.js", "main.js")


def write_page(measurements: Measurements, path: Path) -> int:
    """Write the page; returns its size in bytes."""
    if not measurements.utilities or not measurements.attacks:
        raise UserError(
            "a board needs an attack and a utility task on the undefended graph; run `ppgsl-bench run --defense none,…`"
        )
    content = page(page_data(measurements)).encode()
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.write_bytes(content)
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise UserError(f"cannot write {path}: {error.strerror or error}") from error
    return len(content)


def page(data: dict[str, Any]) -> str:
    """The text of the page."""
    import vl_convert

    # Both are classic scripts; a function around each keeps their names apart.
    library = _script(f"(() => {{{vl_convert.javascript_bundle('window.vegaEmbed = vegaEmbed;')}}})();")
    own = _script("(() => {\n'use strict';\n" + "\n".join(_source(name) for name in _SCRIPTS) + "})();")
    policy = "; ".join(
        [
            "default-src 'none'",
            # Vega compiles its expressions, which come from this page's specifications and never from data.
            f"script-src {_hash(library)} {_hash(own)} 'unsafe-eval'",
            "style-src 'unsafe-inline'",
            "img-src data: blob:",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    parts = {"policy": policy, "style": _source("style.css"), "data": _json(data), "library": library, "own": own}
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _source("page.html"))


def _source(name: str) -> str:
    return (resources.files("ppgsl_bench.leaderboard") / "page" / name).read_text(encoding="utf-8")


def _script(text: str) -> str:
    """A script that cannot end early."""
    return text.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _hash(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _json(data: object) -> str:
    """JSON inside a script element: nothing in it may look like markup."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
