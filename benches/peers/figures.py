"""From samples to figures: medians, ranges, comparisons and number formats."""
import statistics
from dataclasses import dataclass

from rows import BY_NAME, ROWS

OURS, FLOOR, DIRECT = "containerpilot", "floor", "no supervisor"
# A ratio below EQUAL counts as equal; so does one below CLOSE if each median is within the range of the other.
EQUAL, CLOSE = 1.05, 1.15


@dataclass
class Figure:
    median: float
    low: float
    high: float
    count: int
    doubtful: bool


class Result:
    """The content of peers.json, by row."""

    def __init__(self, kept):
        self.kept = kept
        self.rows = [row for row in ROWS if self.samples(row)]

    def samples(self, row):
        return self.kept["scenes"].get(row.scene, {}).get("samples", {}).get(row.name, {}) or self.elsewhere(row)

    def elsewhere(self, row):
        """The memory of many services is measured in the fleet scene."""
        for scene in self.kept["scenes"].values():
            if row.name in scene["samples"]:
                return scene["samples"][row.name]
        return {}

    def figure(self, row, peer):
        taken = self.samples(row).get(peer)
        if not taken:
            return None
        counts = [scene["doubtful"].get(row.name, {}).get(peer, 0) for scene in self.kept["scenes"].values()]
        return Figure(statistics.median(taken), min(taken), max(taken), len(taken), sum(counts) * 3 > len(taken))

    def failure(self, row, peer):
        return self.kept["scenes"].get(row.scene, {}).get("failed", {}).get(peer)

    def best(self, row):
        """The name of the best peer, and its figure."""
        found = [(name, self.figure(row, name)) for name in self.samples(row) if name not in (OURS, FLOOR, DIRECT)]
        if not found:
            return None, None
        return (max if row.more else min)(found, key=lambda pair: pair[1].median)


def target(result, row):
    """The target of a row as text, and whether it is met; None without a target or a figure."""
    ours = result.figure(row, OURS)
    if not row.target or not ours:
        return None
    words, _, other = row.target.partition(" of ")
    if words.startswith("at "):
        limit = float(words.split()[2])
        said = f"{words.rsplit(' ', 1)[0]} {limit:,g}"
    else:
        times, _, peer = words.partition(" × ")
        beside = result.best(row)[1] if peer == "best peer" else result.figure(BY_NAME[other] if other else row, peer)
        if not beside:
            return None
        limit = float(times) * beside.median
        said = f"{times} × {peer} = {number(limit)}"
    return said, (ours.median >= limit if row.more else ours.median <= limit)


def cost(row, figure, beside):
    """The cost relative to `beside`, for rates the inverse; None if a zero makes it meaningless."""
    over, under = (beside.median, figure.median) if row.more else (figure.median, beside.median)
    return over / under if under else (1.0 if over == 0 else None)


def place(row, ours, best):
    """The comparison with the best peer as text, and whether containerpilot is behind."""
    if best is None:
        return "no peer", False
    ratio = cost(row, ours, best)
    if ratio is None:
        return "behind", True
    if ratio == 0:
        return "ahead", False
    among = ours.low <= best.median <= ours.high and best.low <= ours.median <= best.high
    if 1 / EQUAL < ratio < EQUAL or (among and 1 / CLOSE < ratio < CLOSE):
        return "equal", False
    return (f"{number(1 / ratio)} × ahead", False) if ratio < 1 else (f"**{number(ratio)} × behind**", True)


def number(value):
    """A number with three digits."""
    value = float(f"{value:.3g}") if abs(value) < 100 else value
    size = abs(value)
    if size == 0:
        return "0"
    if size >= 100:
        return f"{value:,.0f}"
    if size >= 10:
        return f"{value:.1f}"
    if size >= 1:
        return f"{value:.2f}"
    return f"{value:.3f}" if size >= 0.01 else f"{value:.2g}"


def joined(row):
    return f"{row.title}, {row.unit}" if row.unit else row.title
