"""Markdown of tables: numbers as medians with their range, ratios, and rows that say why there is no number."""

from stats import median

NONE = "–"


def number(value, digits=2):
    return NONE if value is None else f"{value:.{digits}f}"


def spread(values, digits=2, sign=False):
    """The median, and from where to where if there are several."""
    known = [value for value in values if value is not None]
    if not known:
        return NONE
    form = f"{{:{'+' if sign else ''}.{digits}f}}".format
    middle, low, high = form(median(known)), form(min(known)), form(max(known))
    return middle if low == high else f"{middle} ({low} to {high})"


def ratio(values, others):
    """The median ratio of neighbours: the runs of two tools in the same turn."""
    pairs = [one / other for one, other in zip(values, others) if one is not None and other]
    return spread(pairs)


def table(head, rows):
    """Lines of a Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return lines + ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in rows]


def named(name, runs):
    """A tool's name, with a star if any of its runs was disturbed."""
    return name + (" \\*" if any(run.busy for run in runs) else "")


def failed(row_start, runs, width):
    """A row that says what went wrong."""
    cells = [*row_start, runs[-1].error if runs else "not run"]
    return cells + [""] * (width - len(cells))
