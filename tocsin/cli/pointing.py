"""Where in a text something is wrong, shown to a person."""

from __future__ import annotations

from rich.text import Text

from tocsin.errors import StatementError


def point(error: StatementError, text: str, source: str) -> Text:
    """``source:line:column: reason``, and below it the line with a caret at the column."""
    if not error.line:
        return Text.assemble((f"{source}: ", "bold"), error.reason)
    head = Text.assemble((f"{source}:{error.line}:{error.column}: ", "bold"), error.reason)
    lines = text.split("\n")
    if error.line > len(lines):
        return head
    line = lines[error.line - 1].rstrip("\r")
    # Tabs are kept before the caret, so that it stands under its column however wide they are shown.
    indent = "".join("\t" if character == "\t" else " " for character in line[: error.column - 1])
    return Text.assemble(head, "\n  ", line, "\n  ", indent, ("^", "bold red"))
