"""The scenes: what is measured with each peer. A scene returns figures by row name, see rows.py."""
import contextlib
import os
import random
import shutil
import subprocess
import time

import proc
from stage import ARRIVED, BEGIN, STARTED, CHECK, FINISHED, READY, SIGNALLED, ExitWatch, Missed, Service, Stage, clock


class Play:
    """The context of all scenes: tools, peers, rounds and sizes."""

    def __init__(self, tools, peers, rounds, sizes):
        self.tools, self.peers, self.rounds, self.sizes = tools, peers, rounds, sizes

    def who(self, ability):
        return [peer for peer in self.peers if ability in peer.can]

    def one(self, peer, form):
        return Stage(self.tools, peer, [Service("main", "hold:{marks}:0")], form=form)

    def many(self, peer, count):
        return Stage(self.tools, peer, [Service(f"s{i}", f"hold:{{marks}}:{i}") for i in range(count)])


def start(play):
    """From just before the supervisor is started to the first instruction of its service."""
    for form in ("program", "file"):

        def measure(peer, form=form):
            with play.one(peer, form) as stage:
                started = stage.marks.wait(STARTED, 1, 15, "started", every=0.0005)
                return {f"start-{form}": (started[0][0] - stage.begin) / 1e6}

        play.rounds.take(play.who(form), measure, repeats=play.sizes["starts"], seconds=5)


def memory(play):
    """PSS with one service shortly after its start. The fleet scene measures it with more services."""
    for form in ("program", "file"):

        def measure(peer, form=form):
            with play.one(peer, form) as stage:
                stage.marks.wait(STARTED, 1, 15, "started")
                time.sleep(0.3)
                return {"memory-program" if form == "program" else "memory-1": proc.memory(stage.sides()[0])}

        peers = [peer for peer in play.who(form) if peer.name != "no supervisor"]
        play.rounds.take(peers, measure, seconds=4)


def idle(play):
    """Wake-ups and CPU time while nothing happens. All peers are measured at the same time, because idle ones do not disturb each other."""
    with contextlib.ExitStack() as open_stages:
        sleepers = []
        for count in play.sizes["fleets"]:
            for peer in play.who("fleet" if count > 1 else "file"):
                try:
                    stage = open_stages.enter_context(play.many(peer, count))
                    stage.marks.wait(STARTED, count, 60, f"{count} started", every=0.01)
                    sleepers.append((peer, count, stage))
                except Missed as missed:
                    play.rounds.fail(peer, missed)
        time.sleep(play.sizes["rest"])
        sleepers = [(peer, count, stage.sides()[0]) for peer, count, stage in sleepers]
        for _ in range(play.sizes["windows"]):
            before = [(proc.wakeups(side), proc.used(side)) for _, _, side in sleepers]
            time.sleep(play.sizes["window"])
            for (peer, count, side), (wakeups, used) in zip(sleepers, before):
                seconds = play.sizes["window"]
                play.rounds.add(peer, {f"wakeups-{count}": (proc.wakeups(side) - wakeups) / seconds,
                                      f"idle-{count}": (proc.used(side) - used) / 1e6 / seconds})


def fleet(play):
    """Many services: time to start all, memory, and time to stop all."""
    for count in play.sizes["fleets"]:
        if count == 1:
            continue

        def measure(peer, count=count):
            with play.many(peer, count) as stage:
                started = stage.marks.wait(STARTED, count, 60, f"{count} started", every=0.002)
                used = proc.used(stage.sides()[0])
                time.sleep(peer.settle)
                supervising, supervised = stage.sides()
                figures = {f"fleet-start-{count}": (max(started)[0] - stage.begin) / 1e6,
                           f"fleet-cpu-{count}": used / 1e6,
                           f"memory-{count}": proc.memory(supervising)}
                with ExitWatch(supervising + supervised) as exits:
                    asked = stage.stop()
                    gone = exits.wait(20)
                signalled = stage.marks.read(SIGNALLED)
                if len(signalled) < count:
                    raise Missed(f"only {len(signalled)} of {count} received the stop signal before they were killed")
                return figures | {f"fleet-stop-{count}": (gone - asked) / 1e6}

        play.rounds.take(play.who("fleet"), measure, repeats=3 if count > 100 else None, seconds=6)


def log(play):
    """A job writes lines of 100 bytes as fast as it can, until the last one has arrived."""
    for kind, each in (("stamped", 640), ("json", 640), ("lines", 1), ("kept", 640), ("plain", 640)):
        peers = [peer for peer in play.peers if kind in peer.logs]

        def measure(peer, kind=kind, each=each):
            count = play.sizes["lines"] // (4 if each == 1 else 1)
            if peer.own_logs:
                count //= 4  # a separate logger process is slow
            rate, used = flood(play, peer, kind, count, each)
            return {f"log-{kind}": rate, f"log-cpu-{kind}": None if peer.name == "no supervisor" else used}

        play.rounds.take(peers, measure, seconds=5)


def flood(play, peer, kind, count, each):
    service = Service("main", f"write:{{marks}}:{count}:{each}", log=kind)
    with contextlib.ExitStack() as afterwards:
        if kind == "kept":
            place = os.path.join(play.tools.folder, "log")
            shutil.rmtree(place, ignore_errors=True)
            os.makedirs(place)
            service.log_file = os.path.join(place, "current")
            output = os.open("/dev/null" if peer.own_logs else service.log_file, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        else:
            reading, output = os.pipe2(os.O_CLOEXEC)
        stage = Stage(play.tools, peer, [service], output=output)
        if kind != "kept":
            counter = subprocess.Popen([play.tools.count, str(count), stage.marks.path], stdin=reading)
            os.close(reading)
            afterwards.callback(counter.wait)
        with stage:
            os.close(output)
            stage.marks.wait(STARTED, 1, 15, "started")
            before = proc.used(stage.sides()[0])
            begin = stage.marks.wait(BEGIN, 1, 15, "begin")[0][0]
            if kind == "kept":
                arrived = kept(service.log_file, count, 60)
            else:
                arrived = stage.marks.wait(ARRIVED, 1, 60, f"{count} lines", every=0.002)[0][0]
            used = proc.used(stage.sides()[0]) - before  # listed again: a logger may start later than the job
        return count / ((arrived - begin) / 1e9) / 1e6, used / 1e9 / count * 1e6


def kept(path, count, seconds):
    """Waits until a file has `count` lines; returns the time of its last change."""
    deadline, before = time.monotonic() + seconds, -1
    while time.monotonic() < deadline:
        size = os.path.getsize(path) if os.path.exists(path) else 0
        if size >= count * 100 and size == before:
            with open(path, "rb") as file:
                lines = sum(part.count(b"~") for part in iter(lambda: file.read(1 << 20), b""))
            if lines >= count:
                return os.stat(path).st_mtime_ns - time.time_ns() + clock()
        before = size
        time.sleep(0.01)
    raise Missed(f"{count} lines were not in the file after {seconds} s")


def restart(play):
    """A job that exits at once and is restarted without limit."""

    def measure(peer):
        with Stage(play.tools, peer, [Service("main", "leave:{marks}:0", again=True)]) as stage:
            stage.marks.wait(STARTED, 1, 15, "started")
            time.sleep(0.5)
            window = play.sizes["restarts"] if stage.marks.count() > 10 else 3
            side = stage.sides()[0]
            count, used, begin = stage.marks.count(), proc.used(side), clock()
            time.sleep(window)
            count, used, took = stage.marks.count() - count, proc.used(side) - used, clock() - begin
            if not count:
                raise Missed(f"not restarted within {window}s")
            return {"restart-rate": count / (took / 1e9), "restart-cpu": used / 1e3 / count}

    play.rounds.take(play.who("again"), measure, seconds=5)


def signals(play):
    """From the stop signal until the job has it, and until the last process has exited. All peers wait at the same time and are stopped
    after a random delay, so that polling peers are hit at any point of their cycle."""
    chance = random.Random(7)
    for _ in range(play.sizes["signals"]):
        with contextlib.ExitStack() as open_stages:
            waiting = []
            for form in ("program", "file"):
                for peer in play.who(form):
                    if peer.name in play.rounds.failed:
                        continue
                    stage = open_stages.enter_context(play.one(peer, form))
                    try:
                        stage.marks.wait(STARTED, 1, 15, "started")
                        waiting.append((peer, form, stage))
                    except Missed as missed:
                        play.rounds.fail(peer, missed)
            time.sleep(1.2)
            chance.shuffle(waiting)
            for peer, form, stage in waiting:
                time.sleep(0.02 + chance.random() * 0.1)

                def measure(_, stage=stage, form=form):
                    with ExitWatch(sum(stage.sides(), [])) as exits:  # runit's first process exits before the others
                        asked = stage.stop()
                        ended = exits.wait(15)
                    signalled = stage.marks.wait(SIGNALLED, 1, 1, "stop signal")
                    return {f"signal-{form}": (signalled[0][0] - asked) / 1e3, f"signal-end-{form}": (ended - asked) / 1e6}

                patience, play.rounds.load.patience = play.rounds.load.patience, 0  # this sample cannot be repeated
                play.rounds.sample(peer, measure)
                play.rounds.load.patience = patience


def orphans(play):
    """PID 1 of a pid namespace, with ten thousand orphans that exit at the same time."""
    count = play.sizes["orphans"]

    def measure(peer):
        with Stage(play.tools, peer, [Service("main", f"orphans:{{marks}}:{count}")], alone=True) as stage:
            stage.marks.wait(STARTED, 1, 20, "started")
            side = stage.sides()[0]  # now: searching among ten thousand processes would disturb
            if stage.marks.wait(READY, 1, 30, "orphans made", every=0.01)[0][1]:
                raise Missed("the orphans could not be made")
            used = proc.used(side)
            begin = stage.marks.wait(BEGIN, 1, 5, "begin", every=0.01)[0][0]
            try:
                ended = stage.marks.wait(FINISHED, 1, 5, "reaped", every=0.01)[0][0]
            except Missed:
                left = len(proc.family(stage.first())) - 2
                raise Missed(f"{left:,} of {count:,} orphans not reaped after 5 s") from None
            return {"orphans-time": (ended - begin) / 1e6, "orphans-cpu": (proc.used(side) - used) / 1e3 / count}

    play.rounds.take(play.who("orphans"), measure, seconds=5)


def health(play):
    """A hundred services with a check every second: the cost of a check, and the jitter of its interval."""
    count = play.sizes["checked"]

    def measure(peer):
        services = [Service(f"s{i}", f"hold:{{marks}}:{i}", check=f"leave:{{marks}}:1000{i}") for i in range(count)]
        with Stage(play.tools, peer, services) as stage:
            checks = lambda: [mark for mark in stage.marks.read(STARTED) if mark[1] >= CHECK]
            deadline = time.monotonic() + 20
            while len({number for _, number in checks()}) < count:
                if time.monotonic() > deadline:
                    raise Missed("not every service was checked within 20 s")
                time.sleep(0.05)
            time.sleep(1.5)
            side = stage.sides()[0]
            done, used, begin = len(checks()), proc.used(side), clock()
            time.sleep(play.sizes["checking"])
            used, done = proc.used(side) - used, len(checks()) - done
            if not done:
                raise Missed("no check ran")
            paces, last = [], {}
            for moment, number in sorted(checks()):
                if moment >= begin and number in last:
                    paces.append(abs(moment - last[number] - 1_000_000_000) / 1e6)
                if moment >= begin:
                    last[number] = moment
            paces.sort()
            return {"health-cpu": used / 1e3 / done, "health-pace": paces[int(len(paces) * 0.99)] if paces else None}

    play.rounds.take(play.who("check"), measure, repeats=play.sizes["healths"], seconds=30)


def size(play):
    """The size of the files in an image."""
    for peer in play.peers:
        if peer.programs:
            own, needed = peer.size()
            play.rounds.add(peer, {"size-own": own, "size-all": needed})


SCENES = {scene.__name__: scene for scene in (start, memory, fleet, idle, log, restart, signals, orphans, health, size)}

FULL = {"starts": 15, "fleets": (1, 10, 100, 1000), "rest": 4, "windows": 3, "window": 4, "lines": 2_000_000, "restarts": 1,
        "signals": 7, "orphans": 10_000, "checked": 100, "checking": 4, "healths": 3, "repeats": 5}
QUICK = {"starts": 3, "fleets": (1, 10), "rest": 1, "windows": 1, "window": 1, "lines": 200_000, "restarts": 0.5,
         "signals": 2, "orphans": 500, "checked": 10, "checking": 2, "healths": 1, "repeats": 2}
