/* The least that a supervisor must do: start, wait, reap, forward the stop signal. No configuration and no log.
 *
 *   floor plain N CHILD WORD          runs N times CHILD WORD; if N is more than 1, the number of each is appended to WORD
 *   floor again N CHILD WORD          the same, and restarts each at once when it exits
 *   floor check N CHILD WORD CHECK    the same as plain, and runs CHILD CHECK for each of them every second
 *   floor relay 1 CHILD WORD          one, whose output is copied to standard output
 */
#include "bare.h"

enum { MOST = 2048, WORD = 128, BUFFER = 1 << 16 };
static int living[MOST];
static char words[MOST][WORD], checks[MOST][WORD], buffer[BUFFER];
static char **environment;

static void numbered(char *to, const char *word_, word number, int with)
{
	char reversed[8];
	int n = 0;
	while (*word_)
		*to++ = *word_++;
	if (with) {
		do
			reversed[n++] = (char)('0' + number % 10);
		while (number /= 10);
		while (n)
			*to++ = reversed[--n];
	}
	*to = 0;
}

static inline __attribute__((always_inline, noreturn)) void become(char *program, char *word_)
{
	char *arguments[] = {program, word_, 0};
	CALL(execve, program, arguments, environment, 0);
	leave(127);
}

/* The child shares our memory until it has executed CHILD, as after vfork, so it must not return from here. */
static inline __attribute__((always_inline)) long start(char *program, char *word_)
{
	word none = 0;
	long process = call(__NR_clone, 0x4100 /* CLONE_VM | CLONE_VFORK */ | SIGCHLD, 0, 0, 0, 0);
	if (process == 0) {
		CALL(rt_sigprocmask, 2 /* SIG_SETMASK */, &none, 0, 8);
		become(program, word_);
	}
	return process;
}

static void relay(char *program, char *word_)
{
	int pipe[2];
	CALL(pipe2, pipe, 0, 0, 0);
	long process = duplicate();
	if (process == 0) {
		CALL(dup3, pipe[1], 1, 0, 0);
		CALL(close, pipe[0], 0, 0, 0);
		CALL(close, pipe[1], 0, 0, 0);
		become(program, word_);
	}
	CALL(close, pipe[1], 0, 0, 0);
	for (number size; (size = CALL(read, pipe[0], buffer, BUFFER, 0)) > 0;)
		for (number done = 0, written; done < size; done += written)
			if ((written = CALL(write, 1, buffer + done, size - done, 0)) <= 0)
				leave(1);
	leave(0);
}

__attribute__((used)) void begin(number *stack)
{
	char **arguments = (char **)(stack + 1);
	environment = arguments + stack[0] + 1;
	if (stack[0] < 5)
		leave(2);
	char *mode = arguments[1], *program = arguments[3];
	int count = (int)digits(arguments[2]), alive = 0, stopping = 0;
	int again = same(mode, "again"), check = same(mode, "check");
	if (count > MOST)
		leave(2);
	for (int i = 0; i < count; i++) {
		numbered(words[i], arguments[4], (word)i, count > 1);
		if (check)
			numbered(checks[i], arguments[5], (word)i, 1);
	}
	if (same(mode, "relay"))
		relay(program, words[0]);
	block(BIT(SIGTERM) | BIT(SIGCHLD));
	word due = clock_now() + 1000000000UL;
	for (int i = 0; i < count; i++, alive++)
		living[i] = (int)start(program, words[i]);
	while (alive) {
		struct __kernel_timespec left = {0, 0};
		if (check) {
			word now = clock_now();
			if (now >= due) {
				for (int i = 0; i < count; i++)
					start(program, checks[i]);
				due += 1000000000UL;
				now = clock_now();
			}
			word rest = due > now ? due - now : 0;
			left.tv_sec = (number)(rest / 1000000000UL);
			left.tv_nsec = (number)(rest % 1000000000UL);
		}
		number signal = await(BIT(SIGTERM) | BIT(SIGCHLD), check ? &left : 0);
		if (signal == SIGTERM) {
			stopping = 1;
			for (int i = 0; i < count; i++)
				if (living[i])
					CALL(kill, living[i], SIGTERM, 0, 0);
		}
		if (signal != SIGCHLD)
			continue;
		int strangers = 0;
		for (number ended; (ended = CALL(wait4, -1, 0, 1 /* WNOHANG */, 0)) > 0;) {
			int i = 0;
			while (i < count && living[i] != ended)
				i++;
			if (i == count)
				strangers++;
			else if (again && !stopping)
				living[i] = (int)start(program, words[i]);
			else
				living[i] = 0, alive--;
		}
		/* Every wait4 scans all running children: wait a little if many exit at once. */
		if (strangers)
			nap(50000);
	}
	leave(0);
}
