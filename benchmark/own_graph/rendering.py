"""How a report looks: in a terminal, as Markdown, as JSON, and as a page that needs nothing else."""

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from textwrap import fill

from tabulate import tabulate

from ppgsl_bench import __version__
from ppgsl_bench.errors import UserError
from ppgsl_bench.own_graph.document import CONFIDENTIAL_NOTICE, Bar, Document, Section

SUFFIXES = (".html", ".md", ".json")

_TEXT_WIDTH = 100
# The chart, in pixels.
_ROW, _LEFT, _WIDTH, _TOP = 34, 150, 460, 24
_COLOURS = {True: "#8a8a8a", False: "#0072b2"}

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2rem; }
.summary { background: #f3f6f9; border-left: 4px solid #0072b2; padding: .6rem 1rem; }
.notice { background: #fdf0e6; border-left: 4px solid #d55e00; padding: .6rem 1rem; }
svg { max-width: 100%; height: auto; } .table { overflow-x: auto; }
table { border-collapse: collapse; } th, td { text-align: left; padding: .25rem .8rem .25rem 0; }
th { border-bottom: 2px solid #bbb; } td { border-bottom: 1px solid #e3e3e3; font-variant-numeric: tabular-nums; }
footer { margin-top: 3rem; color: #666; font-size: .85rem; }
"""


def refuse_unknown_format(path: Path) -> None:
    """Raise an error unless the file's name says how to write the report."""
    if path.suffix.lower() not in SUFFIXES:
        raise UserError(f"{path}: unknown ending {path.suffix!r} for a report; use one of {', '.join(SUFFIXES)}")


def rendered(document: Document, suffix: str) -> str:
    """The report in the format that the ending of a file's name stands for."""
    renderers = {".html": as_html, ".md": as_markdown, ".json": as_json}
    return renderers[suffix.lower()](document)


def as_json(document: Document) -> str:
    """Plain data."""
    content = {"title": document.title, "summary": list(document.summary), **document.data}
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def as_text(document: Document) -> str:
    """For a terminal."""
    blocks = [document.title, "\n".join(_wrapped(line) for line in document.summary)]
    for section in document.sections:
        parts = [section.title + "\n" + "-" * len(section.title), *(_wrapped(line) for line in section.sentences)]
        if section.lines:
            parts.append(tabulate(section.lines, headers=section.headers, disable_numparse=True))
        blocks.append("\n".join(parts))
    return "\n\n".join(blocks)


def as_markdown(document: Document) -> str:
    """For a repository or a wiki."""
    blocks = [f"# {_plain(document.title)}"]
    if document.is_confidential:
        blocks.append(f"**{CONFIDENTIAL_NOTICE}**")
    blocks.append("\n".join(f"- {_plain(line)}" for line in document.summary))
    for section in document.sections:
        blocks.append(f"## {_plain(section.title)}")
        blocks += [_plain(line) for line in section.sentences]
        if section.lines:
            blocks.append(_markdown_table(section))
    return "\n\n".join(blocks) + "\n"


def as_html(document: Document) -> str:
    """One self-contained page; every word in it is escaped."""
    parts = [f"<h1>{escape(document.title)}</h1>"]
    if document.is_confidential:
        parts.append(f'<p class="notice">{escape(CONFIDENTIAL_NOTICE)}</p>')
    parts.append(f'<div class="summary">{_paragraphs(document.summary)}</div>')
    if document.bars:
        parts.append(_chart(document.bars))
    for section in document.sections:
        parts.append(f"<h2>{escape(section.title)}</h2>{_paragraphs(section.sentences)}")
        if section.lines:
            parts.append(_html_table(section))
    parts.append(f"<footer>ppgsl-bench {escape(__version__)}</footer>")
    viewport = '<meta name="viewport" content="width=device-width, initial-scale=1">'
    head = f'<meta charset="utf-8">{viewport}<title>{escape(document.title)}</title><style>{_STYLE}</style>'
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n' + "\n".join(parts) + "\n</body></html>\n"


def _wrapped(line: str) -> str:
    return fill(line, _TEXT_WIDTH, break_long_words=False, break_on_hyphens=False)


def _plain(text: str) -> str:
    """Text that Markdown shows as it is."""
    return "".join(f"\\{c}" if c in "\\`*_[]<>#|" else c for c in text.replace("\n", " "))


def _markdown_table(section: Section) -> str:
    lines = [section.headers, ["---"] * len(section.headers), *section.lines]
    return "\n".join(
        "| " + " | ".join(c if i == 1 else _plain(c) for c in cells) + " |" for i, cells in enumerate(lines)
    )


def _paragraphs(lines: Sequence[str]) -> str:
    return "".join(f"<p>{escape(line)}</p>" for line in lines)


def _html_table(section: Section) -> str:
    head = "".join(f"<th>{escape(header)}</th>" for header in section.headers)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>" for cells in section.lines)
    return f'<div class="table"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _chart(bars: Sequence[Bar]) -> str:
    """AUCs with their intervals: grey on the undefended graph, blue on the published one."""
    labels = list(dict.fromkeys(bar.label for bar in bars))
    height = _TOP + _ROW * len(labels) + 30

    def x(value: float) -> float:
        return _LEFT + _WIDTH * value

    shapes = []
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        colour, dash = ("#555", ' stroke-dasharray="4 3"') if tick == 0.5 else ("#ddd", "")
        shapes.append(
            f'<line x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{_TOP}" y2="{height - 24}" stroke="{colour}"{dash}/>'
            f'<text x="{x(tick):.1f}" y="{height - 6}" text-anchor="middle">{tick:g}</text>'
        )
    shapes += [
        f'<text x="{_LEFT - 10}" y="{_TOP + _ROW * (i + 0.5) + 4:.1f}" text-anchor="end">{escape(label)}</text>'
        for i, label in enumerate(labels)
    ]
    for bar in bars:
        y = _TOP + _ROW * (labels.index(bar.label) + (0.35 if bar.is_reference else 0.65))
        colour = _COLOURS[bar.is_reference]
        if bar.low is not None and bar.high is not None:
            shapes.append(
                f'<line x1="{x(bar.low):.1f}" x2="{x(bar.high):.1f}" y1="{y:.1f}" y2="{y:.1f}" '
                f'stroke="{colour}" stroke-width="2"/>'
            )
        shapes.append(f'<circle cx="{x(bar.value):.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>')
    key = "AUC with 95 % interval; blue: published" + (
        "; grey: undefended" if any(b.is_reference for b in bars) else ""
    )
    return (
        f'<svg role="img" viewBox="0 0 {_LEFT + _WIDTH + 30} {height}" width="{_LEFT + _WIDTH + 30}" font-size="13" '
        f'font-family="system-ui, sans-serif"><title>{key}</title><text x="{_LEFT}" y="14">{key}</text>'
        + "".join(shapes)
        + "</svg>"
    )
