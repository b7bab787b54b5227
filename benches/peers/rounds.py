"""Rounds: every peer once, then every peer again, so that disturbances of the machine affect all of them."""
import os
import sys
import time
import traceback

import proc
from stage import Missed

SHARE, LEAST = 0.2, 30_000_000  # other programs may use a fifth of a CPU during a sample, or 30 ms


class MachineLoad:
    """The load of other programs. `patience` is how many seconds a whole run may wait for an idle machine."""

    def __init__(self, patience, real_time):
        self.patience, self.real_time = (0 if real_time else patience), real_time

    def wait_until_idle(self):
        while self.patience > 0:
            looks = 0
            for _ in range(3):
                looks += proc.running() > 1
                time.sleep(0.002)
            if looks < 2:
                return
            time.sleep(0.1)
            self.patience -= 0.1


class Rounds:
    """The samples of one scene."""

    def __init__(self, load, repeats, say):
        self.load, self.repeats, self.say = load, repeats, say
        self.samples, self.failed, self.doubtful = {}, {}, {}
        self.redone, self.others, self.seconds = 0, 0, 0.0

    def add(self, peer, figures, doubtful=False):
        for row, figure in figures.items():
            if figure is None:
                continue
            self.samples.setdefault(row, {}).setdefault(peer.name, []).append(figure)
            if doubtful:
                counts = self.doubtful.setdefault(row, {})
                counts[peer.name] = counts.get(peer.name, 0) + 1

    def fail(self, peer, error):
        if not isinstance(error, Missed):
            traceback.print_exception(error, file=sys.stderr)
        self.say(f"  {peer.name}: {error}")
        self.failed.setdefault(peer.name, str(error))

    def take(self, peers, measure, repeats=None, seconds=8):
        """`measure(peer)` returns figures by row. A peer that has used up its seconds is not measured again after two rounds, nor is one
        that has failed."""
        spent, lost = dict.fromkeys(peers, 0.0), set()
        for nth in range(repeats or self.repeats):
            for peer in peers:
                if peer in lost or (nth > 1 and spent[peer] > seconds):
                    continue
                before = time.monotonic()
                if not self.sample(peer, measure):
                    lost.add(peer)
                spent[peer] += time.monotonic() - before

    def sample(self, peer, measure):
        """Takes one sample, repeated while it is disturbed. Returns False if it failed."""
        while True:
            self.load.wait_until_idle()
            machine, ours, begin = proc.machine(), proc.ours(), time.monotonic_ns()
            figures, error = {}, None
            try:
                figures = measure(peer)
            except (Missed, OSError, ValueError, IndexError) as caught:
                error = caught
            took = time.monotonic_ns() - begin
            others = max(0, (proc.machine() - machine) - (proc.ours() - ours))
            self.others += others
            self.seconds += took / 1e9
            # In the real-time class other programs only get the CPU time that is left.
            disturbed = not self.load.real_time and others > max(LEAST, SHARE * took)
            if disturbed and self.load.patience > 0:
                self.load.patience -= took / 1e9
                self.redone += 1
                continue
            if error:
                self.fail(peer, error)
            else:
                self.add(peer, figures, doubtful=disturbed)
            return not error

    def conditions(self):
        kept = sum(sum(counts.values()) for counts in self.doubtful.values())
        others = round(self.others / 1e9 / self.seconds, 2) if self.seconds else None
        return {"others": others, "redone": self.redone, "doubtful": kept, "real_time": self.load.real_time,
                "when": time.strftime("%Y-%m-%d"), "load": round(os.getloadavg()[0], 1)}
