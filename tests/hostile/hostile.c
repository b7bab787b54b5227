/* The hostile programs of tests/hostile: `hostile TRICK ARGUMENTS…`.
 *
 * Each trick is one function. A trick that prints "ready" has reached the state that the test waits for. Every process
 * lives in the PID namespace of its test and is killed with it. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void fail(const char *what)
{
    fprintf(stderr, "hostile: %s: %s\n", what, strerror(errno));
    exit(99);
}

#define must(call) \
    do { \
        if ((call) < 0) fail(#call); \
    } while (0)

static void say(const char *text)
{
    dprintf(1, "%s\n", text);
}

static _Noreturn void forever(void)
{
    for (;;) pause();
}

static void ignore_stop_signals(void)
{
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGINT, SIG_IGN);
}

static void touch(const char *path)
{
    int file = open(path, O_WRONLY | O_CREAT, 0644);
    if (file >= 0) close(file);
}

/* The name of processes that no job has started. */
#define BYSTANDER "bystander"

/* ---- launchers ---- */

/* init PROGRAM…: PID 1 of the namespace, with PROGRAM as its only child. When PROGRAM has exited, prints to the file
 * "survivors" beside this program which processes are still there one second later, and exits with PROGRAM's code. */
static int init(char **argv)
{
    char path[4096];
    snprintf(path, sizeof path, "%s", argv[0]);
    strcpy(strrchr(path, '/'), "/survivors");
    pid_t child = fork();
    must(child);
    if (child == 0) {
        execvp(argv[2], argv + 2);
        fail("execvp");
    }
    int status;
    while (waitpid(child, &status, 0) != child) {}
    /* Reaped before they are counted: a zombie is not a survivor. */
    for (int tries = 0; tries < 200; tries++) {
        while (waitpid(-1, NULL, WNOHANG) > 0) {}
        if (kill(-1, 0) < 0 && errno == ESRCH) break;
        usleep(5000);
    }
    /* Processes that come and go would not be seen while the directory is read. */
    kill(-1, SIGSTOP);
    DIR *proc = opendir("/proc");
    FILE *out = fopen(path, "w");
    struct dirent *entry;
    while (proc && out && (entry = readdir(proc))) {
        pid_t pid = atoi(entry->d_name);
        char link[64], exe[4096], name[32] = "";
        snprintf(link, sizeof link, "/proc/%d/comm", pid);
        int file = open(link, O_RDONLY);
        if (file >= 0 && read(file, name, sizeof name - 1) > 0) close(file);
        snprintf(link, sizeof link, "/proc/%d/exe", pid);
        ssize_t length = pid > 1 ? readlink(link, exe, sizeof exe - 1) : -1;
        if (length >= 0 && strcmp(name, BYSTANDER "\n") != 0) fprintf(out, "%d %.*s\n", pid, (int)length, exe);
    }
    if (out) fclose(out);
    strcpy(strrchr(path, '/'), "/counted");
    touch(path);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* without SYSCALL PROGRAM…: PROGRAM and its children, with one system call that always fails. */
static int without(char **argv)
{
    int number = strcmp(argv[2], "close_range") == 0 ? SYS_close_range
                 : strcmp(argv[2], "clone3") == 0    ? SYS_clone3
                                                     : SYS_ppoll;
    int error = number == SYS_ppoll ? ENOMEM : ENOSYS;
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof code / sizeof *code, code };
    must(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
    execv(argv[3], argv + 3);
    fail("execv");
    return 1;
}

/* fuse DIRECTORY NOW READY: when the file NOW exists, mounts a file system that never answers, stays its server and creates
 * READY. No job has started it, so it may survive. */
static int fuse(char **argv)
{
    prctl(PR_SET_NAME, BYSTANDER);
    while (access(argv[3], F_OK) < 0) usleep(5000);
    int device = open("/dev/fuse", O_RDWR);
    must(device);
    char options[128];
    snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", device);
    must(mount("hostile", argv[2], "fuse", 0, options));
    touch(argv[4]);
    forever();
}

/* ---- before exec ---- */

/* storm FLAG SIGNAL: creates FLAG and sends a signal to every other process of this user, again and again. */
static int storm(char **argv)
{
    touch(argv[2]);
    for (;;) kill(-1, atoi(argv[3]));
}

/* swap A B: exchanges two files, again and again. */
static int swap(char **argv)
{
    say("ready");
    for (;;) must(renameat2(AT_FDCWD, argv[2], AT_FDCWD, argv[3], RENAME_EXCHANGE));
}

/* spy: looks for processes that are not yet their program and whose memory this user can read. Only a process that may
 * read the memory can follow a link in /proc. */
static int spy(void)
{
    say("ready");
    for (;;) {
        DIR *proc = opendir("/proc");
        struct dirent *entry;
        while (proc && (entry = readdir(proc))) {
            char path[300], exe[4096] = "";
            snprintf(path, sizeof path, "/proc/%s/exe", entry->d_name);
            ssize_t length = readlink(path, exe, sizeof exe - 1);
            if (length > 15 && strcmp(exe + length - 15, "/containerpilot") == 0) {
                say("memory is readable");
                ptrace(PTRACE_SEIZE, atoi(entry->d_name), 0, 0);
            }
        }
        closedir(proc);
    }
}

static const char *broken;

static void on_break(int signal)
{
    (void)signal;
    touch(broken);
}

/* lease FILE FLAG: holds a write lease on FILE; creates FLAG when a process opens FILE, and does not give the lease up. */
static int lease(char **argv)
{
    broken = argv[3];
    signal(SIGIO, on_break);
    int file = open(argv[2], O_RDONLY);
    must(file);
    must(fcntl(file, F_SETLEASE, F_WRLCK));
    say("ready");
    forever();
}

/* busy FILE: holds FILE open for writing, so that it cannot be executed. */
static int busy(char **argv)
{
    must(open(argv[2], O_WRONLY));
    say("ready");
    forever();
}

/* ---- escapes ---- */

/* leave-group: its child leaves the process group of the job, and it tries the same, which the leader of a session may not. */
static int leave_group(void)
{
    ignore_stop_signals();
    pid_t child = fork();
    must(child);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        forever();
    }
    must(setpgid(child, child));
    if (setpgid(0, child) == 0) say("left");
    say("ready");
    forever();
}

static void rename_self(void)
{
    /* What a careless parser of /proc/PID/stat takes for a zombie of PID 1. */
    prctl(PR_SET_NAME, "x) Z 1 1 1 0 -1");
}

/* daemon single|double|namespace stay|exit: leaves a process in a session of its own, which holds the output open,
 * ignores SIGTERM and has a misleading name. Then stays or exits. */
static int daemon_(char **argv)
{
    int ready[2];
    must(pipe(ready));
    pid_t child = fork();
    must(child);
    if (child == 0) {
        must(setsid());
        if (strcmp(argv[2], "namespace") == 0) unshare(CLONE_NEWUSER | CLONE_NEWPID);
        if (strcmp(argv[2], "single") != 0 && fork() > 0) _exit(0);
        ignore_stop_signals();
        rename_self();
        must(write(ready[1], "x", 1));
        forever();
    }
    char byte;
    must(read(ready[0], &byte, 1));
    if (strcmp(argv[2], "single") != 0) waitpid(child, NULL, 0);
    say("ready");
    if (strcmp(argv[3], "exit") == 0) return 0;
    forever();
}

/* member: exits, and leaves a process in its group whose parent lives in another group and adopts its orphans. */
static int member(void)
{
    int ready[2];
    must(pipe(ready));
    if (fork() == 0) {
        must(prctl(PR_SET_CHILD_SUBREAPER, 1));
        ignore_stop_signals();
        pid_t child = fork();
        if (child == 0) {
            must(write(ready[1], "x", 1));
            forever();
        }
        must(setpgid(0, 0));
        must(write(ready[1], "x", 1));
        forever();
    }
    char byte;
    must(read(ready[0], &byte, 1));
    must(read(ready[0], &byte, 1));
    say("ready");
    return 0;
}

/* traced stay|exit: a tracer in a session of its own withholds the exit status of this process. */
static int traced(char **argv)
{
    int ready[2];
    must(pipe(ready));
    pid_t self = getpid();
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    if (fork() == 0) {
        must(setsid());
        ignore_stop_signals();
        must(ptrace(PTRACE_SEIZE, self, 0, 0));
        must(write(ready[1], "x", 1));
        forever();
    }
    char byte;
    must(read(ready[0], &byte, 1));
    say("ready");
    if (strcmp(argv[2], "exit") == 0) return 0;
    forever();
}

static void *stay(void *nothing)
{
    (void)nothing;
    say("ready");
    forever();
}

/* headless: the main thread ends and another one goes on: the process looks like a zombie. */
static int headless(void)
{
    pthread_t thread;
    ignore_stop_signals();
    pthread_create(&thread, NULL, stay, NULL);
    pthread_exit(NULL);
}

/* bomb: forks without end; every process leaves its session. At the limit, which the configuration sets, every
 * second one exits, so that processes come and go. */
static int bomb(void)
{
    signal(SIGCHLD, SIG_IGN);
    ignore_stop_signals();
    say("ready");
    for (;;) {
        pid_t child = fork();
        if (child == 0) setsid();
        if (child < 0 && getpid() % 2) _exit(0);
        if (child < 0) usleep(1000);
    }
}

/* fill: forks until no further process is allowed, and again when one of another job has exited. The children ignore
 * SIGTERM. */
static int fill(void)
{
    signal(SIGCHLD, SIG_IGN);
    ignore_stop_signals();
    for (int is_full = 0;;) {
        pid_t child = fork();
        if (child == 0) forever();
        if (child > 0) continue;
        if (!is_full) say("ready");
        is_full = 1;
        usleep(1000);
    }
}

/* unreadable LONG-ARGUMENT: a process that reads this command line waits forever. */
static int unreadable(char **argv)
{
    long page = sysconf(_SC_PAGESIZE);
    unsigned long begin = ((unsigned long)argv[2] + page - 1) / page * page;
    unsigned long end = ((unsigned long)argv[2] + strlen(argv[2])) / page * page;
    int handler = syscall(SYS_userfaultfd, O_CLOEXEC);
    if (handler < 0) {
        say("refused");
        say("ready");
        forever();
    }
    struct uffdio_api api = { .api = UFFD_API };
    must(ioctl(handler, UFFDIO_API, &api));
    struct uffdio_register range = { .range = { begin, end - begin }, .mode = UFFDIO_REGISTER_MODE_MISSING };
    must(ioctl(handler, UFFDIO_REGISTER, &range));
    must(madvise((void *)begin, end - begin, MADV_DONTNEED));
    ignore_stop_signals();
    say("ready");
    forever();
}

/* ---- output ---- */

#define LINE 78

/* Writes numbered lines, as many at a time as `batch` says. Counts those that were written, if `count` is not null. */
static void lines(long from, long to, long batch, volatile long *count)
{
    static char buffer[(1 << 16) + LINE + 1];
    long bytes = 0;
    while (from < to) {
        size_t used = 0;
        for (; from < to && used < (size_t)batch * LINE; from++)
            used += sprintf(buffer + used, "line %07ld %064ld\n", from, from);
        for (size_t done = 0; done < used;) {
            ssize_t written = write(1, buffer + done, used - done);
            must(written);
            done += written;
            bytes += written;
            if (count) *count = bytes / LINE;
        }
    }
}

#define MANY ((1 << 16) / LINE)

/* write COUNT: writes COUNT lines and exits. */
static int write_(char **argv)
{
    lines(0, atol(argv[2]), MANY, NULL);
    return 0;
}

/* Writes numbered lines; the file always holds how many were written, as 8 bytes. */
static void count_lines(const char *path, long limit, long batch)
{
    int file = open(path, O_RDWR | O_CREAT, 0644);
    must(file);
    must(ftruncate(file, sizeof(long)));
    volatile long *count = mmap(NULL, sizeof(long), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (count == MAP_FAILED) fail("mmap");
    lines(0, limit, batch, count);
}

/* count FILE LIMIT: writes LIMIT counted lines and stays. */
static int count(char **argv)
{
    count_lines(argv[2], atol(argv[3]), 1);
    forever();
}

/* enlarge FILE LIMIT: makes its pipe hold 1 MiB, writes LIMIT counted lines and exits. */
static int enlarge(char **argv)
{
    must(fcntl(1, F_SETPIPE_SZ, 1 << 20));
    count_lines(argv[2], atol(argv[3]), MANY);
    return 0;
}

/* long-line BYTES TEXT: one line of BYTES bytes and then TEXT, and a second line. */
static int long_line(char **argv)
{
    long bytes = atol(argv[2]);
    char *line = malloc(bytes);
    memset(line, 'x', bytes);
    for (long done = 0; done < bytes;) {
        ssize_t count = write(1, line + done, bytes - done);
        must(count);
        done += count;
    }
    dprintf(1, "%s\nsecond line\n", argv[3]);
    forever();
}

/* packets COUNT: every write is a packet of its own. */
static int packets(char **argv)
{
    must(fcntl(1, F_SETFL, O_WRONLY | O_DIRECT));
    for (long number = 0; number < atol(argv[2]); number++) lines(number, number + 1, 1, NULL);
    return 0;
}

/* thief FLAG: creates FLAG and then reads its own output pipe, so that what was readable is gone when the supervisor reads. */
static int thief(char **argv)
{
    char buffer[4096];
    int end = open("/proc/self/fd/1", O_RDONLY | O_NONBLOCK);
    must(end);
    touch(argv[2]);
    for (;;) {
        if (write(1, "stolen\n", 7) < 0) return 1;
        while (read(end, buffer, sizeof buffer) > 0) {}
    }
}

/* nonblock: makes the output that it shares with the supervisor non-blocking. */
static int nonblock(void)
{
    must(fcntl(1, F_SETFL, fcntl(1, F_GETFL) | O_NONBLOCK));
    must(fcntl(2, F_SETFL, fcntl(2, F_GETFL) | O_NONBLOCK));
    forever();
}

/* keep-pipes: exits, and leaves a process in a session of its own that holds its output open. */
static int keep_pipes(void)
{
    if (fork() == 0) {
        setsid();
        forever();
    }
    return 0;
}

static void address(struct sockaddr_un *to, const char *path)
{
    memset(to, 0, sizeof *to);
    to->sun_family = AF_UNIX;
    snprintf(to->sun_path, sizeof to->sun_path, "%s", path);
}

/* receive PATH: takes descriptors from others and keeps them open. */
static int receive(char **argv)
{
    struct sockaddr_un own;
    int socket_ = socket(AF_UNIX, SOCK_DGRAM, 0);
    must(socket_);
    address(&own, argv[2]);
    must(bind(socket_, (struct sockaddr *)&own, sizeof own));
    must(chmod(argv[2], 0777));
    say("ready");
    for (;;) {
        char byte, control[CMSG_SPACE(2 * sizeof(int))];
        struct iovec part = { &byte, 1 };
        struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control,
                                  .msg_controllen = sizeof control };
        must(recvmsg(socket_, &message, 0));
    }
}

/* send PATH: gives its output to another process and exits. */
static int send_(char **argv)
{
    struct sockaddr_un other;
    int socket_ = socket(AF_UNIX, SOCK_DGRAM, 0), ends[2] = { 1, 2 };
    must(socket_);
    address(&other, argv[2]);
    union {
        char bytes[CMSG_SPACE(2 * sizeof(int))];
        struct cmsghdr align;
    } control = { 0 };
    struct iovec part = { "x", 1 };
    struct msghdr message = { .msg_name = &other, .msg_namelen = sizeof other, .msg_iov = &part, .msg_iovlen = 1,
                              .msg_control = control.bytes, .msg_controllen = sizeof control.bytes };
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof ends);
    memcpy(CMSG_DATA(head), ends, sizeof ends);
    must(sendmsg(socket_, &message, 0));
    return 0;
}

/* ---- resources ---- */

/* spin: two processes that never sleep, with the highest priority the system allows. */
static int spin(void)
{
    setpriority(PRIO_PROCESS, 0, -20);
    fork();
    say("ready");
    for (;;) {}
}

/* descriptors: prints every open descriptor, without /proc. */
static int descriptors(void)
{
    for (int fd = 0; fd < 1024; fd++)
        if (fcntl(fd, F_GETFD) >= 0) dprintf(1, "open %d.\n", fd);
    say("ready");
    forever();
}

/* Sends connections that take 100 s to close to its NOTIFY_SOCKET, so that the receiver closes them. */
static int linger(void)
{
    const char *name = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    socklen_t length = offsetof(struct sockaddr_un, sun_path) + strlen(name);
    memcpy(to.sun_path + 1, name + 1, strlen(name) - 1);
    int notify = socket(AF_UNIX, SOCK_DGRAM, 0);
    struct sockaddr_in any = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof any;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    must(bind(listener, (struct sockaddr *)&any, size));
    must(listen(listener, 100));
    must(getsockname(listener, (struct sockaddr *)&any, &size));
    for (int i = 0; i < 20; i++) {
        int near = socket(AF_INET, SOCK_STREAM, 0);
        must(connect(near, (struct sockaddr *)&any, size));
        static char bytes[65536];
        while (send(near, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
            ;
        struct linger wait = { .l_onoff = 1, .l_linger = 100 };
        must(setsockopt(near, SOL_SOCKET, SO_LINGER, &wait, sizeof wait));
        char text[] = "STATUS=slow", control[CMSG_SPACE(sizeof(int))] = { 0 };
        struct iovec part = { text, i % 2 ? strlen(text) : 0 };
        struct msghdr message = { &to, length, &part, 1, control, sizeof control, 0 };
        struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(rights), &near, sizeof near);
        /* From Linux 6.16 on it is refused. */
        if (sendmsg(notify, &message, MSG_DONTWAIT) >= 0)
            close(near);
        else if (errno != EPERM && errno != EAGAIN)
            fail("sendmsg");
    }
    say("ready");
    forever();
}

int main(int argc, char **argv)
{
    const char *trick = argc > 1 ? argv[1] : "";
#define TRICK(name, call) \
    if (strcmp(trick, name) == 0) return call
    TRICK("init", init(argv));
    TRICK("without", without(argv));
    TRICK("fuse", fuse(argv));
    TRICK("storm", storm(argv));
    TRICK("swap", swap(argv));
    TRICK("lease", lease(argv));
    TRICK("spy", spy());
    TRICK("busy", busy(argv));
    TRICK("leave-group", leave_group());
    TRICK("daemon", daemon_(argv));
    TRICK("member", member());
    TRICK("traced", traced(argv));
    TRICK("headless", headless());
    TRICK("bomb", bomb());
    TRICK("fill", fill());
    TRICK("unreadable", unreadable(argv));
    TRICK("enlarge", enlarge(argv));
    TRICK("write", write_(argv));
    TRICK("count", count(argv));
    TRICK("long-line", long_line(argv));
    TRICK("packets", packets(argv));
    TRICK("thief", thief(argv));
    TRICK("nonblock", nonblock());
    TRICK("keep-pipes", keep_pipes());
    TRICK("receive", receive(argv));
    TRICK("send", send_(argv));
    TRICK("spin", spin());
    TRICK("descriptors", descriptors());
    TRICK("linger", linger());
    fprintf(stderr, "hostile: there is no trick `%s`\n", trick);
    return 98;
}
