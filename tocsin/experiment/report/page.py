"""The page of a report, self-contained: figures and style are in it, and nothing is loaded from elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template

from tocsin.experiment.about import About
from tocsin.experiment.figures.style import GROUND, INK, PALE
from tocsin.experiment.study import Drawing, Grid, ReportSection, Study
from tocsin.experiment.table import Row, columns, file_of
from tocsin.experiment.verdict import ClaimVerdict, Holds

_TEMPLATE = Template(Path(__file__).with_name("report.html").read_text(encoding="utf-8"))
# Of a page to a point of a figure: as large as on paper, and a third more, for screens are further away.
_PIXELS = 4 / 3 * 4 / 3
_MARKS = {Holds.YES: "yes", Holds.PARTLY: "partly", Holds.NO: "no", Holds.UNKNOWN: "unknown", Holds.UNJUDGED: "unknown"}


def page(
    study: Study,
    about: About,
    sections: Sequence[ReportSection],
    drawn: Mapping[str, str],
    verdicts: Sequence[ClaimVerdict],
) -> str:
    """The whole page. ``drawn`` are the SVG texts of the drawings, by their names."""
    return _TEMPLATE.substitute(
        title=escape(study.title),
        about=_paragraphs(study.about),
        state=_size(study) + _state(study, about),
        run=_facts(about),
        sections="\n".join(_section(section, drawn) for section in sections),
        files="\n".join(_file(kind) for kind in study.tables),
        verdicts=_verdicts(verdicts),
    )


def _size(study: Study) -> str:
    if not study.smaller:
        return ""
    return (
        f'<p class="note">This is a small run, with {escape(study.smaller)}. It shows that the experiment works. It '
        "does not tell whether claims hold that are made for the full size, and judges none of these.</p>"
    )


def _state(study: Study, about: About) -> str:
    cells = study.cells()
    missing = [cell for cell in cells if cell not in about.done]
    if not missing:
        return ""
    done = len(cells) - len(missing)
    return f'<p class="note">{done} of {len(cells)} cells are done; what follows is of these.</p>'


def _facts(about: About) -> str:
    facts = {
        "experiment": about.experiment,
        "version": f"tocsin {about.version}",
        "command": about.command,
        "began": about.began,
        "took": f"{about.seconds:,.0f} s for {len(about.done)} cells",
        "machine": about.machine,
        **{name: _value(value) for name, value in about.settings.items()},
    }
    return "\n".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts.items())


def _value(value: object) -> str:
    """A setting as people read it: lists and tables without JSON's marks."""
    match value:
        case bool():
            return "yes" if value else "no"
        case list():
            return ", ".join(map(_value, value)) or "none"
        case dict():
            return "; ".join(f"{name}: {_value(one)}" for name, one in value.items())
        case _:
            return str(value)


def _section(section: ReportSection, drawn: Mapping[str, str]) -> str:
    parts = [f"<section><h2>{escape(section.heading)}</h2>", _paragraphs(section.text)]
    parts += [_figure(drawing, drawn[drawing.name]) for drawing in section.drawings]
    parts += [_grid(grid) for grid in section.grids]
    return "\n".join([*parts, "</section>"])


def _figure(drawing: Drawing, svg: str) -> str:
    caption = escape(drawing.caption)
    kind = "wide panels" if svg.count('<g id="axes_') > 1 else "wide"
    drawn = f'<div class="{kind}" tabindex="0">{inline_svg(svg, caption)}</div>'
    return f"<figure>{drawn}<figcaption>{caption}</figcaption></figure>"


def inline_svg(svg: str, label: str) -> str:
    """An SVG as a part of a page: it takes the page's ink and ground, and is read out by its label."""
    body = svg[svg.index("<svg") :]
    for colour, name in ((INK, "--ink"), (PALE, "--line"), (GROUND, "--figure")):
        body = body.replace(colour, f"var({name})")
    width = float(body.partition('width="')[2].partition("pt")[0]) * _PIXELS
    return body.replace("<svg", f'<svg role="img" aria-label="{label}" style="max-width: {width:.0f}px"', 1)


def _grid(grid: Grid) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in grid.header)
    rows = "\n".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in grid.rows)
    return (
        f'<div class="wide" tabindex="0"><table><caption>{escape(grid.caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _file(kind: type[Row]) -> str:
    entries = "".join(f"<dt>{escape(name)}</dt><dd>{escape(meaning)}</dd>" for name, meaning in columns(kind).items())
    doc = escape(" ".join((kind.__doc__ or "").split()))
    return f"<details><summary><code>{file_of(kind)}</code>: {doc}</summary><dl>{entries}</dl></details>"


def _verdicts(verdicts: Sequence[ClaimVerdict]) -> str:
    return "\n".join(
        f"<tr><td>{escape(verdict.claim)}</td><td>{escape(verdict.measured)}{_why(verdict)}</td>"
        f'<td class="{_MARKS[verdict.holds]}">{escape(verdict.holds)}</td></tr>'
        for verdict in verdicts
    )


def _why(verdict: ClaimVerdict) -> str:
    return f'<p class="why">{escape(verdict.why)}</p>' if verdict.why else ""


def _paragraphs(text: str) -> str:
    return "\n".join(f"<p>{escape(part)}</p>" for part in text.split("\n\n") if part)
