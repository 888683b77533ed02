"""What a report says, apart from how it looks: sentences, tables, and the same as plain data."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ppgsl_bench.own_graph.evaluation import Audit, Protection
from ppgsl_bench.own_graph.findings import (
    FEATURES_ATTACK,
    MOST_EXPOSED,
    AttackFinding,
    Edits,
    Exposure,
    UtilityFinding,
    in_words,
    lowest_kept,
    percent,
    strongest,
)
from ppgsl_bench.quantities import format_bytes, format_duration

_HOW_TO_READ_ATTACKS = (
    "AUC: how often an attack ranks a hidden link above an unlinked pair, with its 95 % interval; ½ is guessing, and "
    "an AUC below ½ is as good as one above, turned round. Two hops apart: the AUC against unlinked pairs that have a "
    "common neighbour. Found: the share of hidden links above all but 1 % of the unlinked pairs."
)

NameOf = Callable[[int], str]

CONFIDENTIAL_NOTICE = "This report names sensitive links. Keep it to yourself."


@dataclass(frozen=True)
class Section:
    """A titled part of a report.

    Attributes:
        title: its heading.
        sentences: what to read before the table.
        headers, lines: the table, if there is one.
        is_confidential: whether it names sensitive links.
    """

    title: str
    sentences: Sequence[str] = ()
    headers: Sequence[str] = ()
    lines: Sequence[Sequence[str]] = ()
    is_confidential: bool = False


@dataclass(frozen=True)
class Bar:
    """A point with its interval, for the chart."""

    label: str
    value: float
    low: float | None
    high: float | None
    is_reference: bool


@dataclass(frozen=True)
class Document:
    """A report.

    Attributes:
        title: its heading.
        summary: the answer in plain words, a sentence each.
        sections: the details.
        bars: AUCs for the chart.
        data: everything as plain data.
    """

    title: str
    summary: Sequence[str]
    sections: Sequence[Section]
    bars: Sequence[Bar] = ()
    data: Mapping[str, Any] = field(default_factory=dict)

    def public(self) -> "Document":
        """The same without what names sensitive links."""
        sections = [section for section in self.sections if not section.is_confidential]
        return Document(self.title, self.summary, sections, self.bars, {**self.data, "most_exposed": []})

    @property
    def is_confidential(self) -> bool:
        """Whether any part names sensitive links."""
        return any(section.is_confidential for section in self.sections)


def protection_document(protection: Protection, name_of: NameOf) -> Document:
    """The report on a protected graph."""
    p = protection
    return Document(
        title=f"Graph protected with {p.defense.label}",
        summary=_protection_summary(p),
        sections=[
            _edit_section(p.edits, "the original less the sensitive links"),
            _attack_section(p.after, p.before),
            _utility_section(p.utilities),
            Section("Cost of the defense", [f"{format_duration(p.seconds)}, {format_bytes(p.peak_bytes)} of memory."]),
            *_search_sections(p),
            Section("What is not protected", _unprotected(p)),
            _exposure_section(p.exposures, name_of),
        ],
        bars=[*_bars(p.before, is_reference=True), *_bars(p.after, is_reference=False)],
        data={
            "kind": "protection",
            "defense": p.defense.label,
            "parameters": p.defense.model_dump(mode="json"),
            "guarantee": None if p.guarantee is None else asdict(p.guarantee),
            "links": asdict(p.edits),
            "attacks_before": [asdict(attack) for attack in p.before],
            "attacks_after": [asdict(attack) for attack in p.after],
            "utility": [{**asdict(utility), "kept": utility.kept} for utility in p.utilities],
            "seconds": p.seconds,
            "peak_bytes": p.peak_bytes,
            "asked_for": asdict(p.wanted),
            "tried": [
                {"defense": t.defense.label, "strength": t.strength, "attack": t.attack, "utility_kept": t.kept}
                for t in p.trials
            ],
            "not_run": list(p.skipped),
            "not_protected": _unprotected(p),
            "most_exposed": _exposed_data(p.exposures, name_of),
        },
    )


def audit_document(audit: Audit, name_of: NameOf) -> Document:
    """The report on a published graph."""
    a = audit
    edits = [_edit_section(a.edits, "the original less the sensitive links")] if a.has_original else []
    return Document(
        title="Audit of a published graph",
        summary=_audit_summary(a),
        sections=[
            _attack_section(a.attacks, a.undefended),
            *edits,
            *([_utility_section(a.utilities)] if a.utilities else []),
            _exposure_section(a.exposures, name_of),
        ],
        bars=[*_bars(a.undefended, is_reference=True), *_bars(a.attacks, is_reference=False)],
        data={
            "kind": "audit",
            "links": asdict(a.edits) if a.has_original else None,
            "attacks": [asdict(attack) for attack in a.attacks],
            "attacks_undefended": [asdict(attack) for attack in a.undefended],
            "utility": [{**asdict(utility), "kept": utility.kept} for utility in a.utilities],
            "most_exposed": _exposed_data(a.exposures, name_of),
        },
    )


def _protection_summary(p: Protection) -> list[str]:
    before, after = strongest(p.before), strongest(p.after)
    lines = []
    if after is not None:
        reference = "" if before is None else f" Without a defense it was {before.strength:.3f} ({before.label})."
        lines.append(f"{_strength_sentence(after)}{reference}")
    kept = lowest_kept(p.utilities)
    if kept is not None:
        lines.append(f"Of what the graph was good for, {percent(kept)} is kept in the task that suffers most.")
    if p.edits.sensitive_published:
        lines.append(
            f"Of {p.edits.sensitive} sensitive links, {p.edits.sensitive_published} can be read in the published graph "
            "all the same: the defense adds links without knowing them."
        )
    target = p.wanted.strength
    if target is not None and after is not None and after.strength > target:
        lines.append(
            f"You asked for {target:g}: the search met it, this fresh evaluation does not. With {p.edits.sensitive} "
            "sensitive links the difference may be chance; ask for a lower value to be on the safe side."
        )
    if p.wanted.kept is not None and kept is not None and kept < p.wanted.kept:
        lines.append(f"You asked to keep {percent(p.wanted.kept)}: the search met it, this fresh evaluation does not.")
    return lines


def _audit_summary(a: Audit) -> list[str]:
    worst = strongest(a.attacks)
    lines = [] if worst is None else [_strength_sentence(worst)]
    if worst is not None and worst.found is not None:
        lines.append(
            f"An attacker who accepts one false alarm in a hundred unlinked pairs finds {percent(worst.found)} of the "
            f"{a.edits.sensitive} sensitive links."
        )
    reference = strongest(a.undefended)
    if reference is not None:
        lines.append(
            f"Had the graph been published without a defense, the strongest attack ({reference.label}) would have come "
            f"to {reference.strength:.3f}."
        )
    if a.edits.sensitive_published:
        lines.append(
            f"Of {a.edits.sensitive} sensitive links, {a.edits.sensitive_published} can be read in the published graph "
            "itself: nobody has to infer them."
        )
    if not a.has_original:
        lines.append(
            "The original was not given: links that a defense has removed may have been taken for unlinked pairs, "
            "which makes attacks look weaker than they are. Name it with --original for exact numbers."
        )
    return lines


def _strength_sentence(attack: AttackFinding) -> str:
    interval = attack.strength_interval
    spread = "" if interval is None else f"; 95 % interval {100 * interval[0]:.0f}–{100 * interval[1]:.0f} %"
    return (
        f"The strongest attack ({attack.label}) {in_words(attack)}: shown a hidden link and an unlinked pair, it "
        f"picks the link {100 * attack.strength:.0f} times in 100{spread}; guessing is right 50 times."
    )


def _edit_section(edits: Edits, reference: str) -> Section:
    lines = [
        ["links of " + reference, str(edits.original)],
        ["kept", f"{edits.kept} ({percent(edits.kept / max(edits.original, 1))})"],
        ["removed", str(edits.removed)],
        ["added", str(edits.added)],
        ["sensitive links", str(edits.sensitive)],
        ["sensitive links published all the same", str(edits.sensitive_published)],
        ["nodes that lost all their links", str(edits.isolated)],
    ]
    return Section("Links", (), ["", "number"], lines)


def _attack_section(after: Sequence[AttackFinding], before: Sequence[AttackFinding]) -> Section:
    reference = {attack.label: attack for attack in before}
    headers = ["attack", *(["AUC undefended"] if before else []), "AUC published", "two hops apart", "found at 1 % FPR"]
    lines = []
    for attack in sorted(after, key=lambda a: -a.strength):
        if attack.auc is None:
            continue
        earlier = [_interval(reference[attack.label])] if attack.label in reference else ["–"] * bool(before)
        hard = "–" if attack.hard_auc is None else f"{attack.hard_auc:.3f}"
        lines.append([attack.label, *earlier, _interval(attack), hard, percent(attack.found)])
    sentences = [_HOW_TO_READ_ATTACKS]
    missing = [attack for attack in after if attack.auc is None]
    sentences += [
        f"{attack.label} {'failed' if attack.failed else 'was not run'}: {attack.reason}." for attack in missing
    ]
    return Section("Attacks", sentences, headers, lines)


def _interval(attack: AttackFinding) -> str:
    if attack.auc is None:
        return "–"
    spread = "" if attack.low is None or attack.high is None else f" ({attack.low:.3f}–{attack.high:.3f})"
    return f"{attack.auc:.3f}{spread}"


def _utility_section(utilities: Sequence[UtilityFinding]) -> Section:
    lines = [
        [
            utility.title,
            "–" if utility.before is None else f"{utility.before:.3f}",
            f"{utility.after:.3f}",
            percent(utility.kept),
            "–" if utility.floor is None else f"{utility.floor:.3f}",
        ]
        for utility in utilities
    ]
    sentences = []
    if any(utility.rehearsed for utility in utilities):
        sentences.append(
            "Link prediction is judged on a rehearsal: a tenth of the links is held back, the defense is run on the "
            "others, and the task is to find what was held back. Your published graph lacks none of them for that."
        )
    if not lines:
        sentences.append("No utility task was run, or none could be on this graph.")
    headers = ["measure", "before", "after", "kept", "features alone"]
    return Section("What the graph is good for", sentences, headers, lines)


def _search_sections(p: Protection) -> list[Section]:
    if not p.trials:
        return []
    lines = [[t.defense.label, f"{t.strength:.3f}", t.attack, percent(t.kept)] for t in p.trials]
    chosen = (
        f"{p.defense.label} was chosen. These numbers come from other unlinked pairs and another run of the defense "
        "than those above, which are therefore not flattered by the choice."
    )
    sentences = [chosen, *(f"Not run: {reason}." for reason in p.skipped)]
    return [Section("Settings tried", sentences, ["setting", "strongest attack", "by", "utility kept"], lines)]


def _unprotected(p: Protection) -> list[str]:
    lines = []
    features = next((a for a in p.after if a.name == FEATURES_ATTACK and a.auc is not None), None)
    if features is not None:
        lines.append(
            f"Features: an attack that looks at the features alone reaches an AUC of {_interval(features)}, whatever "
            "is done to the links."
        )
    else:
        lines.append(
            "Features: none were given; if you publish any, what they tell about the links is not measured here."
        )
    if p.edits.sensitive_published:
        lines.append(f"Sensitive links that are published all the same: {p.edits.sensitive_published}.")
    else:
        lines.append("No sensitive link is in the published graph.")
    risky = sum(exposure.risk >= 0.95 for exposure in p.exposures)
    lines.append(
        f"Single links: the strongest attack ranks {risky} of {p.edits.sensitive} sensitive links above 95 % of the "
        "unlinked pairs (about 5 % would be there by chance)."
    )
    if p.guarantee is None:
        lines.append(f"{p.defense.name} gives no formal guarantee: a new attack may do better than those tried here.")
    else:
        lines.append(
            f"{p.guarantee.kind} with ε = {p.guarantee.epsilon:g} covers {p.guarantee.covers}; it promises nothing "
            "about what the links around a sensitive one tell about it."
        )
    if p.edits.isolated:
        lines.append(
            f"Nodes that lost all their links, which an edge list does not mention any more: {p.edits.isolated}."
        )
    return lines


def _exposure_section(exposures: Sequence[Exposure], name_of: NameOf) -> Section:
    lines = [
        [
            name_of(e.pair[0]),
            name_of(e.pair[1]),
            percent(e.risk),
            percent(e.mean_risk),
            "yes" if e.published else "no",
        ]
        for e in exposures[:MOST_EXPOSED]
    ]
    sentences = [
        "How many of the unlinked pairs the link outranks, for the strongest attack and on average; ½ is no risk."
    ]
    headers = ["node", "node", "strongest attack", "mean of attacks", "published"]
    return Section("The most exposed links", sentences, headers, lines, is_confidential=True)


def _exposed_data(exposures: Sequence[Exposure], name_of: NameOf) -> list[dict[str, Any]]:
    return [{**asdict(e), "pair": [name_of(e.pair[0]), name_of(e.pair[1])]} for e in exposures[:MOST_EXPOSED]]


def _bars(attacks: Sequence[AttackFinding], *, is_reference: bool) -> list[Bar]:
    return [Bar(a.label, a.auc, a.low, a.high, is_reference) for a in attacks if a.auc is not None]
