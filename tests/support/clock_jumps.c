/* Executes the program in its arguments, traced by a child process that moves the program's wall clock by days, back
   and forth, at every read; with CLOCK_SHIFT in the environment, by this many seconds. The tracer hides the vDSO from the program, so that each clock read is a system call, and
   changes the result of that call. */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#define FAIL(what) do { perror(what); kill(program, SIGKILL); _exit(1); } while (0)

static void hide_vdso(pid_t program) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/stat", program);
    FILE *stat = fopen(path, "r");
    if (!stat) FAIL("stat");
    char line[4096];
    if (!fgets(line, sizeof line, stat)) FAIL("stat");
    fclose(stat);
    char *rest = line;
    for (char *p = line; *p; p++) if (*p == ')') rest = p + 2;
    /* Field 28 is the start of the stack: argc, argv, envp, then the auxiliary vector. */
    for (int field = 3; field < 28; field++) while (*rest++ != ' ') {}
    unsigned long at = strtoul(rest, 0, 10);
    errno = 0;
    long count = ptrace(PTRACE_PEEKDATA, program, at, 0);
    at += (2 + count) * sizeof(long);
    while (ptrace(PTRACE_PEEKDATA, program, at, 0)) at += sizeof(long);
    at += sizeof(long);
    for (long tag; (tag = ptrace(PTRACE_PEEKDATA, program, at, 0)) != AT_NULL; at += 2 * sizeof(long))
        if (tag == AT_SYSINFO_EHDR && ptrace(PTRACE_POKEDATA, program, at, AT_IGNORE)) FAIL("hide");
    if (errno) FAIL("auxiliary vector");
}

static void jump(pid_t thread, unsigned long at) {
    static long n;
    long seconds = ptrace(PTRACE_PEEKDATA, thread, at, 0);
    n++;
    const char *shift = getenv("CLOCK_SHIFT");
    if (shift) {
        ptrace(PTRACE_POKEDATA, thread, at, seconds + atol(shift));
        return;
    }
    ptrace(PTRACE_POKEDATA, thread, at, seconds + (n % 2 ? 1 : -1) * 86400L * 30 * (n % 7));
}

static void trace(void) {
    static unsigned long results[1 << 22]; /* by thread: where its current clock_gettime stores the time, or 0 */
    for (;;) {
        int status;
        pid_t thread = waitpid(-1, &status, __WALL);
        if (thread < 0) _exit(0);
        if (!WIFSTOPPED(status)) continue;
        int signal = WSTOPSIG(status), event = status >> 16;
        if (event == PTRACE_EVENT_EXEC) hide_vdso(thread);
        if (signal == (SIGTRAP | 0x80)) {
            struct __ptrace_syscall_info call;
            ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof call, &call);
            unsigned long *result = &results[thread & ((1 << 22) - 1)];
            if (call.op == PTRACE_SYSCALL_INFO_ENTRY)
                *result = call.entry.nr == SYS_clock_gettime &&
                        (call.entry.args[0] == CLOCK_REALTIME || call.entry.args[0] == CLOCK_REALTIME_COARSE)
                        ? call.entry.args[1] : 0;
            else if (*result) jump(thread, *result);
        }
        int own = event || signal == SIGTRAP || signal == (SIGTRAP | 0x80);
        /* A stopped thread group stays stopped. */
        if (event == PTRACE_EVENT_STOP && signal != SIGTRAP) ptrace(PTRACE_LISTEN, thread, 0, 0);
        else ptrace(PTRACE_SYSCALL, thread, 0, own ? 0 : signal);
    }
}

int main(int count, char **arguments) {
    (void)count;
    pid_t program = getpid();
    int ready[2];
    if (pipe(ready)) return 1;
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    if (fork() == 0) {
        close(ready[0]);
        long options = PTRACE_O_TRACEEXEC | PTRACE_O_TRACECLONE | PTRACE_O_TRACESYSGOOD;
        if (ptrace(PTRACE_SEIZE, program, 0, options)) FAIL("seize");
        if (write(ready[1], "x", 1) != 1) FAIL("ready");
        close(ready[1]);
        /* The tracer must not keep the program's pipes open. */
        close(0), close(1);
        trace();
    }
    close(ready[1]);
    char x;
    if (read(ready[0], &x, 1) != 1) return 1;
    close(ready[0]);
    execv(arguments[1], arguments + 1);
    perror(arguments[1]);
    return 127;
}
