"""SVG charts: bars, lines and dots, readable in light and dark mode."""
import math
from html import escape

OURS = "containerpilot"
# Colours for colour-blind readers, and a shape for each, for print.
LOOKS = {
    OURS: ("#7c3aed", "disc"), "floor": ("#8b949e", "disc"), "no supervisor": ("#b1bac4", "disc"),
    "tini": ("#e69f00", "up"), "dumb-init": ("#56b4e9", "square"), "catatonit": ("#009e73", "diamond"),
    "s6": ("#0072b2", "down"), "runit": ("#d55e00", "square"), "supervisor": ("#cc79a7", "diamond"), "Horust": ("#a08000", "ring"),
}
STYLE = """
.paper { fill: #ffffff; stroke: #d0d7de }
text { fill: #1f2328; font: 12px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif }
.title { font-size: 16px; font-weight: 600 }
.head { font-weight: 600 }
.quiet { fill: #656d76; font-size: 11px }
.us { fill: #6d28d9; font-weight: 600 }
.grid { stroke: #d8dee4; stroke-width: 1; fill: none }
.spread { stroke: #1f2328; stroke-width: 1.2; opacity: .55 }
.one { stroke: #7c3aed; stroke-width: 2 }
.peer { fill: #9fb3c8 } .ground { fill: #d0d7de } .own { fill: #7c3aed }
@media (prefers-color-scheme: dark) {
.paper { fill: #0d1117; stroke: #30363d }
text { fill: #e6edf3 }
.quiet { fill: #9198a1 }
.us { fill: #b794f6 }
.grid { stroke: #30363d }
.spread { stroke: #e6edf3 }
.one { stroke: #a371f7 }
.peer { fill: #57708c } .ground { fill: #3d444d } .own { fill: #a371f7 }
}
"""
WIDTH = 860
STEP = 22


def text(x, y, words, kind="", anchor="start"):
    kind = f' class="{kind}"' if kind else ""
    anchor = f' text-anchor="{anchor}"' if anchor != "start" else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{kind}{anchor}>{escape(words)}</text>'


def line(x1, y1, x2, y2, kind):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def sheet(title, subtitle, height, parts):
    """An SVG document with its own background."""
    head = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" height="{height:.0f}" role="img">',
            f"<title>{escape(title)}</title>", f"<style>{STYLE}</style>",
            f'<rect class="paper" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1:.0f}" rx="8"/>',
            text(20, 30, title, "title"), text(20, 49, subtitle, "quiet")]
    return "\n".join([*head, *parts, "</svg>", ""])


class Scale:
    """Maps values to positions. Logarithmic if the largest is more than 25 times the smallest."""

    def __init__(self, values, left, right):
        good = [value for value in values if value > 0] or [1]
        self.left, self.right = left, right
        self.log = max(good) / min(good) > 25
        if self.log:
            self.low = 10.0 ** math.floor(math.log10(min(good)) - 0.3)
            self.high = max(good)
        else:
            self.low, self.high = 0.0, max(good)

    def at(self, value):
        if self.log:
            value = max(value, self.low)
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = value / self.high
        return self.left + share * (self.right - self.left)

    def ticks(self):
        if self.log:
            first, last = round(math.log10(self.low)), math.floor(math.log10(self.high) + 1e-9)
            every = 1 + (last - first) // 4
            return [10.0 ** power for power in range(first, last + 1, every)]
        raw = self.high / 4
        unit = 10.0 ** math.floor(math.log10(raw))
        step = unit * next(times for times in (1, 2, 2.5, 5, 10) if times * unit >= raw)
        return [step * nth for nth in range(int(self.high / step) + 1)]


def tick(value):
    if value >= 1_000_000:
        return f"{value / 1_000_000:g} M"
    return f"{value:,.0f}" if value >= 1000 else f"{value:g}"


def panel(x, y, width, name, unit, more, bars, number):
    """One figure of all peers as bars. Returns its elements and its height."""
    label, room = 108, 66  # for the names on the left and the numbers on the right
    values = [figure.median for _, figure in bars]
    scale = Scale(values, x + label, x + width - room)
    bottom = y + 28 + STEP * len(bars)
    hint = ("more is better" if more else "less is better") + (", logarithmic" if scale.log else "")
    parts = [text(x, y + 6, name, "head"), text(x, y + 21, f"{unit + ': ' if unit else ''}{hint}", "quiet")]
    for value in scale.ticks():
        at = scale.at(value)
        parts += [line(at, y + 28, at, bottom + 2, "grid"), text(at, bottom + 15, tick(value), "quiet", "middle")]
    for nth, (peer, figure) in enumerate(bars):
        top = y + 31 + STEP * nth
        own = peer == OURS
        kind = "own" if own else "ground" if peer in ("floor", "no supervisor") else "peer"
        end = max(scale.at(figure.median), scale.left + 1.5)
        parts.append(text(x + label - 8, top + 12, peer, "us" if own else "", "end"))
        parts.append(f'<rect class="{kind}" x="{scale.left:.1f}" y="{top:.1f}" width="{end - scale.left:.1f}" height="16" rx="2"/>')
        far = end
        if figure.high > figure.low and figure.median > 0:
            low, high = scale.at(figure.low), min(scale.at(figure.high), scale.right + 4)
            parts.append(line(low, top + 8, high, top + 8, "spread"))
            far = max(far, high)
        parts.append(text(far + 6, top + 12, number(figure.median), "us" if own else ""))
    return parts, 28 + STEP * len(bars) + 24


def bars(title, subtitle, panels, number):
    """Panels of (name, unit, more, [(peer, figure)]), two side by side."""
    parts, y = [], 80
    half = (WIDTH - 60) / 2
    for nth in range(0, len(panels), 2):
        heights = []
        for column, one in enumerate(panels[nth:nth + 2]):
            drawn, height = panel(20 + column * (half + 20), y, half, *one, number)
            parts += drawn
            heights.append(height)
        y += max(heights) + 18
    return sheet(title, subtitle, y - 4, parts)


def shape(peer, x, y, size=4.5):
    colour, form = LOOKS.get(peer, ("#888888", "disc"))
    if form == "disc":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size:.1f}" fill="{colour}"/>'
    if form == "ring":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size - 1:.1f}" fill="none" stroke="{colour}" stroke-width="2"/>'
    points = {"square": [(-1, -1), (1, -1), (1, 1), (-1, 1)], "diamond": [(0, -1.35), (1.35, 0), (0, 1.35), (-1.35, 0)],
              "up": [(0, -1.2), (1.2, 1), (-1.2, 1)], "down": [(0, 1.2), (1.2, -1), (-1.2, -1)]}[form]
    path = " ".join(f"{x + a * size * 0.9:.1f},{y + b * size * 0.9:.1f}" for a, b in points)
    return f'<polygon points="{path}" fill="{colour}"/>'


def lines(title, subtitle, counts, series, number):
    """A line for each peer over the number of services; both axes logarithmic. Labels are at the line ends, without overlap."""
    left, right, top, bottom = 78, WIDTH - 210, 74, 400
    values = [figure.median for _, points in series for figure in points.values()]
    low, high = 10 ** math.floor(math.log10(min(values))), max(values) * 1.3
    at_x = lambda count: left + (right - left) * math.log(count / min(counts)) / math.log(max(counts) / min(counts))
    at_y = lambda value: bottom - (bottom - top) * math.log(value / low) / math.log(high / low)
    parts = []
    for value in (10, 100, 1024, 10240, 102400, 1024000):
        if low <= value <= high:
            parts += [line(left - 6, at_y(value), right + 6, at_y(value), "grid"),
                      text(left - 12, at_y(value) + 4, memory(value), "quiet", "end")]
    for count in counts:
        parts.append(text(at_x(count), bottom + 20, f"{count:,} service{'s' * (count > 1)}", "quiet", "middle"))
    ends = []
    for peer, points in series:
        colour = LOOKS.get(peer, ("#888888", ""))[0]
        path = " ".join(f"{at_x(count):.1f},{at_y(figure.median):.1f}" for count, figure in sorted(points.items()))
        thick = 3 if peer == OURS else 1.8
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{thick}"/>')
        parts += [shape(peer, at_x(count), at_y(figure.median)) for count, figure in points.items()]
        last = max(points)
        ends.append([at_y(points[last].median), at_x(last), peer, points[last].median])
    ends.sort()
    placed = []
    for y, x, peer, value in ends:
        spot = y if not placed else max(y, placed[-1] + 17)
        placed.append(spot)
    over = placed[-1] - bottom if placed and placed[-1] > bottom else 0
    for (y, x, peer, value), spot in zip(ends, placed):
        spot -= over if y > bottom - 60 else 0
        parts.append(line(x + 7, y, right + 22, spot, "grid"))
        parts.append(text(right + 27, spot + 4, f"{peer} {memory(value)}", "us" if peer == OURS else ""))
    return sheet(title, subtitle, bottom + 38, parts)


def memory(kib):
    if kib >= 1000:
        return f"{kib / 1024:.1f} MiB".replace(".0 ", " ") if kib < 10240 else f"{kib / 1024:.0f} MiB"
    return f"{kib:.0f} KiB"


def dots(title, subtitle, rows, peers, number):
    """Rows of (name, {peer: ratio}). containerpilot is the line at 1."""
    left, right, top = 336, WIDTH - 40, 112
    ratios = [ratio for _, some in rows for ratio in some.values() if 0 < ratio < 1e9]
    low = min(0.5, *ratios) / 1.4
    high = max(2, *ratios) * 1.4
    at = lambda ratio: left + (right - left) * math.log(min(max(ratio, low), high) / low) / math.log(high / low)
    bottom = top + 22 * len(rows)
    parts, x = [], 20
    for peer in peers:
        parts += [shape(peer, x + 5, 72), text(x + 15, 76, peer)]
        x += 33 + 7.0 * len(peer)
    power = 10.0 ** math.ceil(math.log10(low))
    while power <= high:
        if power != 1:
            parts.append(line(at(power), top - 8, at(power), bottom, "grid"))
        words = "as ours" if power == 1 else f"{tick(power)} ×"
        parts.append(text(at(power), bottom + 17, words, "us" if power == 1 else "quiet", "middle"))
        power *= 10
    marks = []
    for nth, (name, some) in enumerate(rows):
        y = top + 7 + 22 * nth
        parts += [text(left - 14, y + 4, name, "", "end"), line(left, y, right, y, "grid")]
        before, stack = -100.0, 0
        for x, peer in sorted((at(ratio), peer) for peer, ratio in some.items()):
            stack = stack + 1 if x - before < 7 else 0
            before = x if stack == 0 else before
            marks.append(shape(peer, x, y + (0, -5, 5, -8, 8)[stack % 5], 4.5 if stack == 0 else 4))  # without overlap
        if max(some.values()) >= 1e9:
            marks.append(text(right + 9, y + 4, "∞", "quiet"))
    parts += [line(at(1), top - 8, at(1), bottom, "one"), *marks]
    parts.append(text(at(1) - 8, top - 14, "← less than ours", "quiet", "end"))
    parts.append(text(at(1) + 8, top - 14, "more than ours →", "quiet"))
    return sheet(title, subtitle, bottom + 34, parts)
