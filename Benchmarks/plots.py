"""Draws the two plots as SVG, for a light and for a dark page."""

import math
import statistics
from html import escape

THEMES = {
    "light": {"page": "#ffffff", "text": "#1f2328", "soft": "#59636e", "grid": "#d9dee3",
              "Coffer": "#0969da", "SQLite": "#8250df", "age": "#bc4c00", "pass": "#1a7f37", "other": "#8c959f"},
    "dark": {"page": "#0d1117", "text": "#f0f6fc", "soft": "#9198a1", "grid": "#30363d",
             "Coffer": "#4493f8", "SQLite": "#ab7df8", "age": "#f0883e", "pass": "#3fb950", "other": "#656c76"},
}  # fmt: skip
NAMES = {"Coffer": "Coffer, one vault", "SQLite": "SQLite, not encrypted", "age": "age, all in one file", "pass": "pass, a file for each"}


def quartiles(values):
    return statistics.quantiles(values, n=4, method="inclusive")


def duration(seconds):
    return f"{seconds:g} s" if seconds >= 1 else f"{seconds * 1000:.3g} ms"


def decades(series):
    """The powers of ten around the quartiles of all."""
    every = [quartile for values in series for quartile in quartiles(values)]
    return math.floor(math.log10(min(every))), math.ceil(math.log10(max(every)))


class Drawing:
    def __init__(self, theme, width, height, title):
        self.colors, self.width, self.height, self.parts = THEMES[theme], width, height, []
        self.title = title
        self.text(24, 32, title, size=17, weight=600)

    def text(self, x, y, text, size=13, color="text", anchor="start", weight=400):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{self.colors[color]}" '
                          f'text-anchor="{anchor}" font-weight="{weight}" stroke="{self.colors["page"]}" stroke-width="4" '
                          f'paint-order="stroke">{escape(text)}</text>')  # fmt: skip

    def line(self, points, color, width=1.0):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polyline points="{path}" fill="none" stroke="{self.colors[color]}" stroke-width="{width}"/>')

    def dot(self, x, y, color, radius):
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{self.colors[color]}"/>')

    def svg(self):
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" role="img" '
                f'font-family="system-ui, Segoe UI, Helvetica, Arial, DejaVu Sans, sans-serif">\n<title>{escape(self.title)}</title>\n'
                f'<rect width="{self.width}" height="{self.height}" rx="6" fill="{self.colors["page"]}"/>\n'
                + "\n".join(self.parts) + "\n</svg>\n")  # fmt: skip


def lines(panels):
    """`panels`: for each title, the lines by name, each with the seconds of every round by size."""

    def draw(theme):
        drawing = Drawing(theme, 980, 450, "Time of one command as the number of stored secrets grows")
        for number, (name, words) in enumerate(NAMES.items()):
            x = 24 + 215 * number
            drawing.line([(x, 56), (x + 22, 56)], name, 3.5 if name == "Coffer" else 2)
            drawing.dot(x + 11, 56, name, 4 if name == "Coffer" else 3)
            drawing.text(x + 30, 60.5, words)
        low, high = decades(values for panel in panels.values() for line in panel.values() for values in line.values())
        top, bottom, width = 112, 370, 236
        for number, (title, panel) in enumerate(panels.items()):
            left = 72 + 305 * number
            sizes = sorted({size for line in panel.values() for size in line})
            first, steps = math.log10(sizes[0]), max(1, math.log10(sizes[-1] / sizes[0]))

            def x(size):
                return left + (math.log10(size) - first) / steps * width

            def y(seconds):
                return bottom - (math.log10(seconds) - low) / (high - low) * (bottom - top)

            drawing.text(left, top - 16, title, size=14, weight=600)
            for power in range(low, high + 1):
                drawing.line([(left, y(10**power)), (left + width, y(10**power))], "grid")
                drawing.text(left - 8, y(10**power) + 4, duration(10**power), 11, "soft", "end")
            for size in sizes:
                drawing.line([(x(size), top), (x(size), bottom)], "grid")
                label = f"{size:,}" if size < 1000 else f"{size // 1000}k" if size < 1_000_000 else "1M"
                drawing.text(x(size), bottom + 18, label, 11, "soft", "middle")
            drawing.text(left + width / 2, bottom + 38, "stored secrets", 12, "soft", "middle")
            for name in reversed(NAMES):
                spreads = [(x(size), [y(value) for value in quartiles(values)]) for size, values in sorted(panel[name].items())]
                is_ours = name == "Coffer"
                drawing.line([(at, spread[1]) for at, spread in spreads], name, 3.5 if is_ours else 2)
                for at, spread in spreads:
                    drawing.line([(at, spread[0]), (at, spread[2])], name, 1.5)
                    drawing.dot(at, spread[1], name, 4 if is_ours else 3)
        drawing.text(24, 436, "Both scales are logarithmic. Points are medians, and upright lines are quartiles.", 11, "soft")
        return drawing.svg()

    return draw


def points(panels):
    """`panels`: for each title, the seconds of every round by the words for a command."""

    def draw(theme):
        rows = max(len(panel) for panel in panels.values())
        top, bottom, width = 84, 92 + 30 * rows, 200
        drawing = Drawing(theme, 980, bottom + 66, "Time of one command that gets or sets one secret")
        low, high = decades(values for panel in panels.values() for values in panel.values())
        for number, (title, panel) in enumerate(panels.items()):
            left = 250 + 480 * number

            def x(seconds):
                return left + (math.log10(seconds) - low) / (high - low) * width

            drawing.text(left - 226, 68, title, size=14, weight=600)
            for power in range(low, high + 1):
                drawing.line([(x(10**power), top), (x(10**power), bottom)], "grid")
                drawing.text(x(10**power), bottom + 18, duration(10**power), 11, "soft", "middle")
            for row, (words, values) in enumerate(sorted(panel.items(), key=lambda pair: statistics.median(pair[1]))):
                y, (least, middle, most) = top + 20 + 30 * row, map(x, quartiles(values))
                color = "Coffer" if "secret " in words else "other"
                drawing.text(left - 10, y + 4.5, words, anchor="end", weight=600 if color == "Coffer" else 400)
                drawing.line([(least, y), (most, y)], color, 3)
                drawing.dot(middle, y, color, 6)
                drawing.text(most + 10, y + 4, duration(statistics.median(values)), 12, "soft")
        drawing.text(24, bottom + 50, "The scale is logarithmic. Points are medians, and lines are quartiles. "
                     "The vault and the table of SQLite have 100 secrets.", 11, "soft")  # fmt: skip
        return drawing.svg()

    return draw
