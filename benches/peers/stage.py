"""A supervisor on a stage of its own: a folder in memory, marks that its children leave, and nothing left behind."""
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
BORN, TOLD, BEGAN, ENDED, READY, ARRIVED = range(1, 7)  # kinds of marks, as in bare.h
MARK = struct.Struct("<QII")
CHECK = 10_000  # numbers from here on are those of checks: 1000 with the number of the service behind it

clock = time.monotonic_ns  # the children read the same one


class Missed(Exception):
    """A supervisor has not done what was asked of it; the text says what was missed."""


@dataclass
class Service:
    """One program to be supervised, in words that every peer's configuration can say."""

    name: str
    word: str  # what the child is told, see child.c; with {marks} for the file of marks
    again: bool = False  # to be started again whenever it ends
    check: Optional[str] = None  # what the child is told as a check, once a second
    log: str = "inherit"  # what is done with its output; see the peers
    log_file: Optional[str] = None


def memory_folder():
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else tempfile.gettempdir()


class Tools:
    """The three C programs, built into a folder that lives as long as this run; and copies of others."""

    def __init__(self):
        self.folder, self.copies = tempfile.mkdtemp(prefix="peers-", dir=memory_folder()), {}
        flags = "-O3 -static -nostdlib -ffreestanding -fno-stack-protector -fno-asynchronous-unwind-tables -fno-pie -no-pie"
        flags += " -Wl,--build-id=none -Wl,-z,norelro -s"
        for name in ("child", "floor", "count"):
            source = os.path.join(HERE, name + ".c")
            subprocess.run(["cc", *flags.split(), "-o", os.path.join(self.folder, name), source], check=True)
            setattr(self, name, os.path.join(self.folder, name))

    def own(self, program):
        """A copy of a program for this run alone: another one that runs elsewhere would share its pages and its PSS. It lies
        beside the original, because a program in tmpfs is mapped page by page and starts a third of a millisecond later."""
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
    """What loses its parent becomes ours, so that all of it can be ended."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


class Marks:
    def __init__(self, folder):
        self.path = os.path.join(folder, "marks")
        open(self.path, "wb").close()
        os.chmod(self.path, 0o666)

    def count(self):
        return os.stat(self.path).st_size // MARK.size

    def read(self, kind):
        """All marks of a kind, as (time, number)."""
        with open(self.path, "rb") as file:
            data = file.read()
        whole = len(data) // MARK.size * MARK.size
        return [(time_, number) for time_, its, number in MARK.iter_unpack(data[:whole]) if its == kind]

    def wait(self, kind, count, seconds, what, every=0.001):
        """Waits for so many marks of a kind."""
        deadline = time.monotonic() + seconds
        while True:
            if self.count() >= count:
                found = self.read(kind)
                if len(found) >= count:
                    return found
            if time.monotonic() > deadline:
                raise Missed(f"{what}: {len(self.read(kind))} of {count} after {seconds:g} s")
            time.sleep(every)


class Farewell:
    """Watches for the end of processes, from before they are asked for it."""

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
        """When the last one was seen to have ended."""
        deadline, total = time.monotonic() + seconds, len(self.waiting)
        while self.waiting:
            ended = self.poll.poll(max(0, (deadline - time.monotonic()) * 1000))
            if not ended:
                raise Missed(f"{len(self.waiting)} of {total} processes were still there after {seconds:g} s")
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
    """`with Stage(…) as stage:` starts a supervisor, and ends everything that has come of it."""

    def __init__(self, tools, peer, services, alone=False, output=None, form=None):
        self.peer, self.output = peer, output
        self.folder = tempfile.mkdtemp(prefix="peer-", dir=memory_folder())
        self.marks = Marks(self.folder)
        self.tools = tools
        for service in services:
            service.word = service.word.format(marks=self.marks.path)
            service.check = service.check and service.check.format(marks=self.marks.path)
        self.command = peer.command(self, services, form)
        if alone:  # the first process of its own small world
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
        said = os.open(self.path("said"), os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        output = null if self.output is None else self.output
        streams = [(os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, output, 1), (os.POSIX_SPAWN_DUP2, said, 2)]
        environment = {"PATH": os.environ["PATH"], "HOME": self.folder, "LANG": "C"}
        self.began = clock()
        self.process = os.posix_spawn(self.command[0], self.command, environment, file_actions=streams, setsid=True)
        os.close(null)
        os.close(said)
        Stage.playing.append(self)
        return self

    def first(self):
        """The process number of the supervisor itself."""
        if self.alone:
            below = proc.children(self.process)
            return below[0] if below else self.process
        return self.process

    def sides(self):
        """Who supervises, and who is supervised."""
        supervising, supervised = [], []
        for process in proc.family(self.first()):
            program = proc.program(process)
            if program == self.tools.child:
                supervised.append(process)
            elif program:
                supervising.append(process)
        return supervising, supervised

    def stop(self):
        """Asks for the end of everything, as this peer wants to be asked; when that was."""
        first, moment = self.first(), clock()
        os.kill(first, self.peer.stop_signal)
        return moment

    def __exit__(self, *_):
        # A killed supervisor's children become ours: until nothing is left. Others may be on a stage of their own meanwhile.
        Stage.playing.remove(self)
        others = {stage.process for stage in Stage.playing}
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

    playing = []  # stages that are open at the same time
