"""Runs a supervisor in a temporary folder in memory, with marks that its services write, and cleans up afterwards."""
import ctypes
import os
import select
import shutil
import signal
import struct
import subprocess
import tempfile
import time
from dataclasses import dataclass
from typing import Optional

import proc

HERE = os.path.dirname(os.path.abspath(__file__))
STARTED, SIGNALLED, BEGIN, FINISHED, READY, ARRIVED = range(1, 7)  # kinds of marks, as in bare.h
MARK = struct.Struct("<QII")
CHECK = 10_000  # numbers from here on belong to checks: 1000 followed by the number of the service

clock = time.monotonic_ns  # the services read the same clock


class Missed(Exception):
    """A supervisor did not do what was expected."""


@dataclass
class Service:
    """A supervised program, in terms that every peer can express."""

    name: str
    word: str  # the argument of the service, see child.c; {marks} is the file of marks
    again: bool = False  # restart it whenever it exits
    check: Optional[str] = None  # the argument of its check, once a second
    log: str = "inherit"  # how its output is logged; see peers.py
    log_file: Optional[str] = None


def memory_folder():
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else tempfile.gettempdir()


class Tools:
    """The three C programs, built into a temporary folder; and copies of other programs."""

    def __init__(self):
        self.folder, self.copies = tempfile.mkdtemp(prefix="peers-", dir=memory_folder()), {}
        flags = "-O3 -static -nostdlib -ffreestanding -fno-stack-protector -fno-asynchronous-unwind-tables -fno-pie -no-pie"
        flags += " -Wl,--build-id=none -Wl,-z,norelro -s"
        for name in ("child", "floor", "count"):
            source = os.path.join(HERE, name + ".c")
            subprocess.run(["cc", *flags.split(), "-o", os.path.join(self.folder, name), source], check=True)
            setattr(self, name, os.path.join(self.folder, name))

    def own(self, program):
        """A copy of a program for this run: another process of the same file would share its pages and reduce its PSS. It is next to the
        original, because a program in tmpfs is mapped page by page and starts 0.3 ms later."""
        if program not in self.copies:
            beside = os.path.dirname(os.path.abspath(program))
            place = beside if os.access(beside, os.W_OK) else tempfile.gettempdir()
            self.copies[program] = os.path.join(place, f"{os.path.basename(program)}-beside-peers-{os.getpid()}")
            shutil.copy2(program, self.copies[program])
        return self.copies[program]

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        for path in self.copies.values():
            os.unlink(path)


def adopt_orphans():
    """Makes this process a child subreaper, so that all orphans can be killed."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


class Marks:
    def __init__(self, folder):
        self.path = os.path.join(folder, "marks")
        open(self.path, "wb").close()
        os.chmod(self.path, 0o666)

    def count(self):
        return os.stat(self.path).st_size // MARK.size

    def read(self, kind):
        """All marks of a kind as (time, number)."""
        with open(self.path, "rb") as file:
            data = file.read()
        whole = len(data) // MARK.size * MARK.size
        return [(time_, number) for time_, its, number in MARK.iter_unpack(data[:whole]) if its == kind]

    def wait(self, kind, count, seconds, what, every=0.001):
        """Waits for `count` marks of a kind."""
        deadline = time.monotonic() + seconds
        while True:
            if self.count() >= count:
                found = self.read(kind)
                if len(found) >= count:
                    return found
            if time.monotonic() > deadline:
                raise Missed(f"{what}: {len(self.read(kind))} of {count} after {seconds:g}s")
            time.sleep(every)


class ExitWatch:
    """Waits for the exit of processes. Created before they are stopped."""

    def __init__(self, processes):
        self.poll, self.waiting = select.poll(), set()
        for process in processes:
            try:
                descriptor = os.pidfd_open(process)
            except ProcessLookupError:
                continue
            self.waiting.add(descriptor)
            self.poll.register(descriptor, select.POLLIN)

    def wait(self, seconds):
        """Returns when the last one has exited."""
        deadline, total = time.monotonic() + seconds, len(self.waiting)
        while self.waiting:
            ended = self.poll.poll(max(0, (deadline - time.monotonic()) * 1000))
            if not ended:
                raise Missed(f"{len(self.waiting)} of {total} processes did not exit within {seconds:g}s")
            moment = clock()
            for descriptor, _ in ended:
                self.poll.unregister(descriptor)
                os.close(descriptor)
                self.waiting.remove(descriptor)
        return moment

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for descriptor in self.waiting:
            os.close(descriptor)


class Stage:
    """`with Stage(…) as stage:` starts a supervisor, and kills all its descendants at the end."""

    def __init__(self, tools, peer, services, alone=False, output=None, form=None):
        self.peer, self.output = peer, output
        self.folder = tempfile.mkdtemp(prefix="peer-", dir=memory_folder())
        self.marks = Marks(self.folder)
        self.tools = tools
        for service in services:
            service.word = service.word.format(marks=self.marks.path)
            service.check = service.check and service.check.format(marks=self.marks.path)
        self.command = peer.command(self, services, form)
        if alone:  # PID 1 of a pid namespace
            rootless = ["--user", "--map-root-user"] if os.geteuid() else []
            unshare = shutil.which("unshare") or "unshare"
            self.command = [unshare, *rootless, "--pid", "--fork", "--mount-proc", "--", *self.command]
        self.alone = alone

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, text, *names, mode=0o644):
        path = self.path(*names)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def __enter__(self):
        null = os.open("/dev/null", os.O_RDWR)
        stderr = os.open(self.path("stderr"), os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        output = null if self.output is None else self.output
        streams = [(os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, output, 1), (os.POSIX_SPAWN_DUP2, stderr, 2)]
        environment = {"PATH": os.environ["PATH"], "HOME": self.folder, "LANG": "C"}
        self.begin = clock()
        self.process = os.posix_spawn(self.command[0], self.command, environment, file_actions=streams, setsid=True)
        os.close(null)
        os.close(stderr)
        Stage.active.append(self)
        return self

    def first(self):
        """The pid of the supervisor."""
        if self.alone:
            below = proc.children(self.process)
            return below[0] if below else self.process
        return self.process

    def sides(self):
        """The processes of the supervisor, and the services."""
        supervising, supervised = [], []
        for process in proc.family(self.first()):
            program = proc.program(process)
            if program == self.tools.child:
                supervised.append(process)
            elif program:
                supervising.append(process)
        return supervising, supervised

    def stop(self):
        """Sends the stop signal of this peer; returns the time."""
        first, moment = self.first(), clock()
        os.kill(first, self.peer.stop_signal)
        return moment

    def __exit__(self, *_):
        # The children of a killed supervisor become ours; repeat until none is left. Other stages may be open meanwhile.
        Stage.active.remove(self)
        others = {stage.process for stage in Stage.active}
        while True:
            mine = [one for one in proc.children(os.getpid()) if one not in others]
            left = [descendant for one in mine for descendant in proc.family(one)]
            for process in left:
                try:
                    os.kill(process, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            for process in mine:
                try:
                    os.waitpid(process, os.WNOHANG)
                except ChildProcessError:
                    pass
            if not left:
                break
            time.sleep(0.002)
        shutil.rmtree(self.folder, ignore_errors=True)

    active = []  # open stages
