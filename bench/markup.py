"""markup.py: what the pages of measurements share: tables, and numbers in them."""


def table(head, rows):
    lines = [head, ["---"] * len(head)] + rows
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def number(x):
    """Three or four digits, and no exponent; nothing for what is not known."""
    if x is None:
        return ""
    return f"{x:,.0f}" if x >= 1000 else f"{x:.0f}" if x >= 200 else f"{x:.1f}" if x >= 10 else f"{x:.2f}"
