"""Process data from /proc."""
import os
import time


def children(process):
    found = []
    try:
        for thread in os.listdir(f"/proc/{process}/task"):
            with open(f"/proc/{process}/task/{thread}/children") as file:
                found += map(int, file.read().split())
    except OSError:
        pass  # it has exited meanwhile
    return found


def family(process):
    """A process and all its descendants."""
    known = [process]
    for one in known:
        known += children(one)
    return known


def program(process):
    try:
        return os.readlink(f"/proc/{process}/exe")
    except OSError:
        return ""


def used(processes):
    """CPU time of all their threads in nanoseconds, from the CPU clock of each process."""
    total = 0
    for process in processes:
        try:
            total += time.clock_gettime_ns(~process << 3 | 2)
        except OSError:
            pass
    return total


def wakeups(processes):
    """Wake-ups: the voluntary context switches of all their threads."""
    total = 0
    for process in processes:
        try:
            for thread in os.listdir(f"/proc/{process}/task"):
                with open(f"/proc/{process}/task/{thread}/status") as file:
                    total += next(int(line.split()[1]) for line in file if line.startswith("voluntary_ctxt"))
        except (OSError, StopIteration):
            pass
    return total


def memory(processes):
    """PSS in KiB: private pages plus the share of shared pages."""
    total = 0
    for process in processes:
        try:
            with open(f"/proc/{process}/smaps_rollup") as file:
                total += next(int(line.split()[1]) for line in file if line.startswith("Pss:"))
        except (OSError, StopIteration):
            pass
    return total


def machine():
    """CPU time of the whole machine, including time stolen by its host, in nanoseconds."""
    with open("/proc/stat") as file:
        ticks = [int(word) for word in file.readline().split()[1:]]
    user, nice, system, _idle, _wait, irq, softirq, steal = ticks[:8]
    return (user + nice + system + irq + softirq + steal) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def ours():
    """CPU time of this program and of its reaped children, in nanoseconds."""
    times = os.times()
    return int((times.user + times.system + times.children_user + times.children_system) * 1e9)


def running():
    """The number of runnable threads of the machine, including this one."""
    with open("/proc/loadavg") as file:
        return int(file.read().split()[3].split("/")[0])
