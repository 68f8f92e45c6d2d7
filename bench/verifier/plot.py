"""A plot of seconds per cycle over millions known, both axes logarithmic, as an SVG that needs no library."""

from math import ceil, floor, log10
from xml.sax.saxutils import escape

from bench.verifier.figures import NAMED, OTHERS, VEUNI_DRUM_S, VEUNI_S
from bench.verifier.options import THESIS

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 860, 520, 70, 220, 40, 60
COLOURS = (
    "#d62728",
    "#ff9896",
    "#7f7f7f",
    "#1f77b4",
    "#2ca02c",
    "#9467bd",
    "#8c564b",
    "#e377c2",
    "#17becf",
    "#bcbd22",
    "#aec7e8",
    "#c49c94",
    "#c5b0d5",
    "#000000",
    "#555555",
)

Line = list[tuple[float, float]]


def lines_of(courses: dict[str, dict[str, dict]]) -> dict[str, Line]:
    """Name -> points (millions, seconds) of all that was measured, and of VEUNI's ends."""
    lines: dict[str, Line] = {}
    for course, rows in courses.items():
        for name in ("ours", "step", "limit", *NAMED, *OTHERS):
            points = [(float(mark), row[f"{name}_s"]) for mark, row in (rows or {}).items() if row.get(f"{name}_s")]
            if points:
                lines[f"{name}, as the thesis" if course == THESIS else name] = points
    if THESIS in courses:
        lines |= {"VEUNI (thesis)": list(VEUNI_S.items()), "DRUM over BDB (thesis)": list(VEUNI_DRUM_S.items())}
    return lines


def draw(courses: dict[str, dict[str, dict]]) -> str:
    lines = lines_of(courses)
    points = [point for line in lines.values() for point in line] or [(1.0, 1.0)]
    (left, right), (low, high) = (bounds([point[axis] for point in points]) for axis in (0, 1))

    def to_pixels(x: float, y: float) -> tuple[float, float]:
        return (
            LEFT + (log10(x) - left) / (right - left) * (WIDTH - LEFT - RIGHT),
            HEIGHT - BOTTOM - (log10(y) - low) / (high - low) * (HEIGHT - TOP - BOTTOM),
        )

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="22" font-size="15">Seconds per cycle of a million URLs, by millions of URLs known</text>',
    ]
    for power in range(left, right + 1):
        x, y = to_pixels(10.0**power, 10.0**low)
        parts.append(
            f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
            f'<text x="{x:.1f}" y="{y + 18:.1f}" text-anchor="middle">{10.0**power:g}</text>'
        )
    for power in range(low, high + 1):
        x, y = to_pixels(10.0**left, 10.0**power)
        parts.append(
            f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#ddd"/>'
            f'<text x="{x - 8:.1f}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:g}</text>'
        )
    for number, (name, line) in enumerate(lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (to_pixels(*point) for point in line))
        parts.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" '
            f'stroke-width="{3 if name.startswith("ours") else 1.5}"/>'
        )
        parts += [
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>'
            for x, y in (to_pixels(*point) for point in line)
        ]
        y = TOP + 12 + 17 * number
        parts.append(
            f'<line x1="{WIDTH - RIGHT + 12}" y1="{y - 4}" x2="{WIDTH - RIGHT + 32}" y2="{y - 4}" '
            f'stroke="{colour}" stroke-width="3"/>'
            f'<text x="{WIDTH - RIGHT + 38}" y="{y}">{escape(name)}</text>'
        )
    parts.append(
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 16}" text-anchor="middle">millions known</text></svg>'
    )
    return "\n".join(parts) + "\n"


def bounds(values: list[float]) -> tuple[int, int]:
    """Powers of ten that hold all values between them."""
    low, high = floor(log10(min(values))), ceil(log10(max(values)))
    return low, max(high, low + 1)
