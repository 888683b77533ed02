"""Write docs/quick-comparison.md: what `compare --quick` loses by putting a defense before four attacks, not seven.

ppgsl-bench run --dataset 'lesmis,synthetic[n=300]' --seeds 3 --utility none --results DIR \
    --attack cn,aa,ra,katz,degree,edge-presence,feature-cos \
    --defense 'none,random[sweep],dice[sweep],edgerand[sweep],lapgraph[sweep],privgraph[sweep],rw-lp[sweep]'
python docs/scripts/quick_comparison.py DIR      # or without DIR, from the rows in docs/data/
"""

import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from tabulate import tabulate

from ppgsl_bench.contribute.comparison import ATTACKS, RIVALS
from ppgsl_bench.leaderboard.packed import pack
from ppgsl_bench.leaderboard.sources import board_rows
from ppgsl_bench.metrics import strength
from ppgsl_bench.rows import Row

DOCS = Path(__file__).parents[1]
TARGET = DOCS / "quick-comparison.md"
STORED = DOCS / "data" / "quick-comparison.jsonl.gz"

PAGE = """# What the quick comparison leaves out

`compare --quick` judges a defense by the strongest of {kept}.
Of the attacks that take milliseconds it leaves out {left_out}: three cells less a publication.

How much weaker is the strongest attack for that? Below is the strength, max(AUC, 1 − AUC), of the strongest of all
{all} less that of the strongest in the set, over {publications} publications on the two graphs of the comparison:
every setting in the sweeps of {defenses}, and no defense. The
other lines show what one attack less would cost.

{table}

Made by `python docs/scripts/quick_comparison.py` from the rows in docs/data/.
"""


def main() -> None:
    """Read rows, keep them, write the page."""
    rows = board_rows([Path(p) for p in sys.argv[1:]] or [STORED])
    rows = [row for row in rows if row.kind == "attack"]
    if sys.argv[1:]:
        pack(rows, STORED)
    strengths = _strengths(rows)
    sets = {f"the {len(ATTACKS)} of `compare --quick`": ATTACKS}
    sets |= {f"those without `{name}`": [attack for attack in ATTACKS if attack != name] for name in ATTACKS}
    losses = {title: _losses(strengths, chosen) for title, chosen in sets.items()}
    lines = [
        [title, f"{loss.mean():.4f}", f"{loss.max():.3f}", f"{np.mean(loss > 0):.0%}".replace("%", " %")]
        for title, loss in losses.items()
    ]
    headers = ["attacks", "weaker by, mean", "at most", "publications with any loss"]
    TARGET.write_text(
        PAGE.format(
            kept=_listed(ATTACKS),
            left_out=_listed(name for name in RIVALS if name not in ATTACKS),
            publications=len(strengths),
            defenses=_listed(dict.fromkeys(row.defense for row in rows if row.defense != "none")),
            all=len(RIVALS),
            table=tabulate(lines, headers=headers, tablefmt="github", disable_numparse=True),
        ),
        encoding="utf-8",
    )


def _strengths(rows: Iterable[Row]) -> list[dict[str, float]]:
    """For each publication, the strength of every attack that could be run on it."""
    found: defaultdict[tuple[str, int, str], dict[str, float]] = defaultdict(dict)
    for row in rows:
        if row.status == "ok":
            found[row.dataset_label, row.seed, row.defense_label][row.evaluator] = strength(row.metrics["auc"])
    return list(found.values())


def _losses(strengths: list[dict[str, float]], chosen: Iterable[str]) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """By how much the strongest of all attacks beats the strongest of the chosen ones, a publication each."""
    names = set(chosen)
    return np.array([max(s.values()) - max(v for name, v in s.items() if name in names) for s in strengths])


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


if __name__ == "__main__":
    main()
