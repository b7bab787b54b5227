"""The peers: configuration, command line and features of each supervisor."""
import json
import os
import re
import shlex
import shutil
import signal
import subprocess


class Peer:
    name = ""
    programs = ()  # all executables of the supervisor, the one to start first
    package = None  # the Debian package
    about = ""
    # program: one program on the command line; file: services from a configuration; fleet: many services;
    # again: restarts; check: health checks; orphans: can be PID 1; signal: forwards the stop signal
    can = frozenset()
    logs = {}  # kind of log -> its name for this peer
    stop_signal = signal.SIGTERM
    own_logs = False  # has a separate logger process, which creates the files
    settle = 0.3  # seconds after the start until it handles commands
    setting = ""  # the settings for the page

    def missing(self):
        """The first of its programs that is not installed."""
        return next((program for program in self.programs if not shutil.which(program)), None)

    def program(self):
        return shutil.which(self.programs[0])

    def command(self, stage, services, form):
        raise NotImplementedError

    def version(self):
        found = self.package and output("dpkg-query", "-W", "-f", "${Version}", self.package)
        return found or output(self.program(), "--version")

    def size(self):
        """KiB of its own files, and of everything that it needs in an empty image."""
        files = {os.path.realpath(shutil.which(program)) for program in self.programs}
        return kib(files), kib(files | libraries(files))


def output(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip().split("\n")[0] if done.returncode == 0 else ""


def kib(files):
    return sum(os.path.getsize(file) for file in files) / 1024


def libraries(files):
    """Their shared libraries, including the dynamic loader."""
    found = set()
    for file in files:
        try:
            text = subprocess.run(["ldd", file], capture_output=True, text=True).stdout
        except OSError:
            continue
        found |= {os.path.realpath(path) for path in re.findall(r"(/\S+) \(0x", text)}
    return found


class Direct(Peer):
    """The service without a supervisor."""

    name = "no supervisor"
    can = frozenset(["program", "signal"])
    logs = {"plain": "none", "lines": "none"}

    def missing(self):
        return None

    def command(self, stage, services, form):
        return [stage.tools.child, services[0].word]


class Floor(Peer):
    name = "floor"
    can = frozenset("program file fleet again check orphans signal".split())
    logs = {kind: "copied" for kind in ("stamped", "lines", "kept", "plain")}

    def missing(self):
        return None

    def command(self, stage, services, form):
        first, count = services[0], str(len(services))
        word = first.word if len(services) == 1 else first.word.rsplit(":", 1)[0] + ":"
        mode = "again" if first.again else "check" if first.check else "relay" if first.log != "inherit" else "plain"
        check = [first.check.rsplit(":", 1)[0] + ":1000"] if first.check else []  # it appends the number
        return [stage.tools.floor, mode, count, stage.tools.child, word, *check]


class Ours(Peer):
    name = "containerpilot"
    about = "this program"
    can = frozenset("program file fleet again check orphans signal".split())
    logs = {"stamped": "`default`", "lines": "`default`", "kept": "`default`", "json": "`json`", "plain": "`raw`"}
    setting = "`restartBackoff: false` for the restarts; otherwise defaults"

    def __init__(self, program):
        self.programs = (program,)

    def version(self):
        return output(self.program(), "-version").removeprefix("Version: ") or output(self.program(), "version")

    def command(self, stage, services, form):
        binary = stage.tools.own(self.program())
        if form == "program":
            return [binary, "--", stage.tools.child, services[0].word]
        jobs = []
        for service in services:
            job = {"name": service.name, "exec": [stage.tools.child, service.word]}
            if service.again:
                job |= {"restarts": "unlimited", "restartBackoff": False}
            if service.check:
                job["health"] = {"exec": [stage.tools.child, service.check], "interval": 1, "ttl": 10}
            if service.log == "plain":
                job["logging"] = {"raw": True}
            jobs.append(job)
        log = {"format": "json" if services[0].log == "json" else "default"}
        log["output"] = services[0].log_file or "stdout"
        config = {"control": {"socket": stage.path("control")}, "logging": log, "jobs": jobs}
        return [binary, "-config", stage.write(json.dumps(config), "containerpilot.json5")]


class Tini(Peer):
    name, programs, package = "tini", ("tini",), "tini"
    about = "runs one program, reaps, forwards signals"
    can = frozenset("program orphans signal".split())
    logs = {"plain": "inherited"}

    def command(self, stage, services, form):
        return [self.program(), "--", stage.tools.child, services[0].word]


class DumbInit(Tini):
    name, programs, package = "dumb-init", ("dumb-init",), "dumb-init"


class Catatonit(Tini):
    name, programs, package = "catatonit", ("catatonit",), "catatonit"


class Folders(Peer):
    """The daemontools family: a folder for each service, with a `run` file."""

    can = frozenset("file fleet again orphans signal".split())
    own_logs = True
    settle = 1.2  # some commands are ignored in the first second of a service

    def folders(self, stage, services):
        for service in services:
            stage.write(f"#!{stage.tools.child} {service.word}\n", "services", service.name, "run", mode=0o755)
            logger = self.logger(stage, service)
            if logger:
                stage.write(f"#!/bin/sh\nexec {logger}\n", "services", service.name, "log", "run", mode=0o755)
        # A folder with a recent change would be scanned again only after a second.
        os.utime(stage.path("services"), (1, 1))
        return stage.path("services")


class S6(Folders):
    name, programs, package = "s6", ("s6-svscan", "s6-supervise", "s6-log"), "s6"
    about = "a small process for each service"
    logs = {"stamped": "`s6-log T`", "lines": "`s6-log T`", "kept": "`s6-log T`", "plain": "`s6-log`"}
    setting = "`-t 0`, `-c` for all services; starts a service at most once a second (fixed)"

    def logger(self, stage, service):
        if service.log == "inherit":
            return None
        where = f"n1 s268435455 {os.path.dirname(service.log_file)}" if service.log_file else "1"
        return f"{shutil.which('s6-log')} {'' if service.log == 'plain' else 'T '}{where}"

    def command(self, stage, services, form):
        return [self.program(), "-c", str(2 * len(services) + 10), "-t", "0", self.folders(stage, services)]


class Runit(Folders):
    name, programs, package = "runit", ("runsvdir", "runsv", "svlogd"), "runit"
    about = "a small process for each service"
    logs = {"kept": "`svlogd -tt`"}
    stop_signal = signal.SIGHUP  # SIGTERM leaves the services running
    setting = "stopped with SIGHUP; starts a service at most once a second (fixed); logs only to files"

    def logger(self, stage, service):
        if service.log == "inherit":
            return None
        folder = os.path.dirname(service.log_file)
        with open(os.path.join(folder, "config"), "w") as file:
            file.write("s268435455\n")  # no rotation
        return f"{shutil.which('svlogd')} -tt {folder}"

    def command(self, stage, services, form):
        return [self.program(), self.folders(stage, services)]


class Supervisor(Peer):
    name, programs, package = "supervisor", ("supervisord",), "supervisor"
    about = "Python; polls once a second"
    can = frozenset("file fleet again orphans signal".split())
    logs = {"plain": "`stdout_logfile`"}
    setting = "`startsecs=0`, `autorestart=true`, no log file; polls once a second"

    def command(self, stage, services, form):
        text = f"[supervisord]\nnodaemon=true\nlogfile=/dev/null\nlogfile_maxbytes=0\nminfds=4096\npidfile={stage.path('pid')}\n"
        text += "user=root\n" if os.geteuid() == 0 else ""
        for service in services:
            text += f"[program:{service.name}]\ncommand={stage.tools.child} {service.word}\nstartsecs=0\n"
            text += f"autorestart={'true' if service.again else 'false'}\n"
            text += "stdout_logfile=/dev/fd/1\nstdout_logfile_maxbytes=0\nstderr_logfile=/dev/fd/2\nstderr_logfile_maxbytes=0\n"
        python = shutil.which("python3", path="/usr/bin:/bin") or shutil.which("python3")
        return [python, self.program(), "-c", stage.write(text, "supervisord.conf")]

    def size(self):
        own = package_size("supervisor")
        lib = output("sh", "-c", "readlink -f /usr/bin/python3")
        number = re.search(r"python(3\.\d+)", lib)
        if not own or not number:
            return None, None
        names = ["python3-pkg-resources"] + [f"{name}{number[1]}-{part}" for name, part in
                                             [("python", "minimal"), ("libpython", "minimal"), ("libpython", "stdlib")]]
        return own, own + sum(map(package_size, names)) + kib(libraries({lib}))


def package_size(name):
    return int(output("dpkg-query", "-W", "-f", "${Installed-Size}", name) or 0)


class Horust(Peer):
    name, programs = "Horust", ("horust",)
    about = "Rust; polls ten times a second"
    can = frozenset("program file fleet again check orphans signal".split())
    logs = {"plain": "inherited"}
    setting = "`backoff = \"0s\"`; polls every 100 to 300 ms"

    def version(self):
        # It has no version option, but cargo has recorded the version.
        try:
            root = os.path.dirname(os.path.dirname(os.path.realpath(self.program())))
            with open(os.path.join(root, ".crates.toml")) as file:
                return re.search(r'"horust (\S+)', file.read())[1]
        except (OSError, TypeError):
            return ""

    def command(self, stage, services, form):
        start = [self.program(), "--uds-folder-path", stage.path()]
        if form == "program":
            return [*start, "--", stage.tools.child, services[0].word]
        for service in services:
            text = f'command = "{stage.tools.child} {service.word}"\n'
            text += f'[restart]\nstrategy = "{"always" if service.again else "never"}"\nbackoff = "0s"\n'
            if service.check:
                text += f'[healthiness]\ncommand = "{stage.tools.child} {service.check}"\n'
            stage.write(text, "services", service.name + ".toml")
        return [*start, "--services-path", stage.path("services")]


def all_peers(binary):
    return [Direct(), Floor(), Ours(binary), Tini(), DumbInit(), Catatonit(), S6(), Runit(), Supervisor(), Horust()]
