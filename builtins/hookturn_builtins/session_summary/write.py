"""Turns a report into its three forms, and puts them beside the journal."""

from __future__ import annotations

import os

from hookturn.paths import private_dir, write_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .collect import Report

FORMATS = ("md", "json", "html")


def render(report: Report, form: str) -> str:
    """Return a report as text.

    Parameters:
        report: the report.
        form: ``md``, ``json`` or ``html``.
    """
    if form == "json":
        return as_json(report)
    if form == "html":
        from .render_html import as_html

        return as_html(report)
    from .render_markdown import as_markdown

    return as_markdown(report)


def write(report: Report, folder: str, formats: Iterable[str], *, base: str) -> list[str]:
    """Write the report's files and return their paths.

    Parameters:
        report: the report.
        folder: the session's folder.
        formats: which forms.
        base: a folder that is trusted as it is.

    Raises:
        OSError: when one cannot be written; what was written before stays, and each file is whole.
    """
    private_dir(folder, base=base)
    paths = []
    for form in formats:
        path = os.path.join(folder, f"report.{form}")
        write_private(path, render(report, form).encode("utf-8"), base=base)
        paths.append(path)
    return paths


def as_json(report: Report) -> str:
    """Return the report as one JSON document (ASCII), an item of a list a line."""
    from json import dumps

    parts = []
    for name, value in report.to_json().items():
        if isinstance(value, list) and value:
            text = "[\n  " + ",\n  ".join(dumps(item) for item in value) + "\n]"
        else:
            text = dumps(value)
        parts.append(f"{dumps(name)}: {text}")
    return "{\n" + ",\n".join(parts) + "\n}\n"
