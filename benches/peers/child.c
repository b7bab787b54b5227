/* The supervised program. It takes one argument, `VERB:MARKS[:ARGUMENT[:ARGUMENT]]`, so that the first line of a `run` file can
 * start it (`#!/…/child hold:/…/marks:7`) without a shell.
 *
 *   hold:MARKS:N            write the mark STARTED, wait for a stop signal, write the mark SIGNALLED, exit
 *   leave:MARKS:N           write the mark STARTED and exit
 *   write:MARKS:LINES:EACH  after a pause write LINES lines of 100 bytes, EACH of them per write; then hold
 *   orphans:MARKS:N         create N orphans, let them all exit at once, and wait until the last one is reaped; then hold
 */
#include "bare.h"

enum { LINE = 100, MOST = 1 << 17 };
static char lines[MOST];

static void hold(const char *marks, word number)
{
	await(STOPS, 0);
	write_mark(marks, clock_now(), SIGNALLED, number);
	leave(0);
}

static void write_lines(word count, word each)
{
	if (each * LINE > MOST)
		each = MOST / LINE;
	for (word i = 0; i < each * LINE; i++) {
		word column = i % LINE;
		lines[i] = column == LINE - 1 ? '\n' : column == LINE - 2 ? '~' : (char)('a' + column % 26);
	}
	while (count) {
		word now = count < each ? count : each;
		for (word done = 0; done < now * LINE;) {
			number written = CALL(write, 1, lines + done, now * LINE - done, 0);
			if (written <= 0)
				leave(3);
			done += (word)written;
		}
		count -= now;
	}
}

/* The process in between exits, and PID 1 inherits its children. They are one process group, which exists as long as one of them
 * does, also as a zombie: that shows when the last one is reaped. */
static void make_orphans(const char *marks, word count)
{
	int pipe[2];
	CALL(pipe2, pipe, 0, 0, 0);
	long nest = duplicate();
	if (nest == 0) {
		CALL(setpgid, 0, 0, 0, 0);
		for (word i = 0; i < count; i++) {
			long orphan = duplicate();
			if (orphan == 0) {
				char byte;
				CALL(close, pipe[1], 0, 0, 0);
				CALL(read, pipe[0], &byte, 1, 0);
				leave(0);
			}
			if (orphan < 0)
				leave(4);
		}
		leave(0);
	}
	int status = 0;
	CALL(wait4, nest, &status, 0, 0);
	write_mark(marks, clock_now(), READY, (word)status);
	nap(300000);
	write_mark(marks, clock_now(), BEGIN, 0);
	CALL(close, pipe[1], 0, 0, 0);
	while (CALL(kill, -nest, 0, 0, 0) == 0)
		nap(1000);
	write_mark(marks, clock_now(), FINISHED, 0);
}

__attribute__((used)) void begin(number *stack)
{
	word started = clock_now();
	char **arguments = (char **)(stack + 1), *part[4] = {0};
	int parts = 0;
	for (char *p = stack[0] > 1 ? arguments[1] : ""; *p && parts < 4;) {
		part[parts++] = p;
		while (*p && *p != ':')
			p++;
		if (*p)
			*p++ = 0;
	}
	if (parts < 3)
		leave(2);
	char *verb = part[0], *marks = part[1];
	word first = digits(part[2]);
	block(STOPS);
	write_mark(marks, started, STARTED, first);
	if (same(verb, "leave"))
		leave(0);
	if (same(verb, "write")) {
		nap(150000);
		write_mark(marks, clock_now(), BEGIN, 0);
		write_lines(first, parts > 3 ? digits(part[3]) : 1);
		write_mark(marks, clock_now(), FINISHED, 0);
	} else if (same(verb, "orphans")) {
		nap(150000);
		make_orphans(marks, first);
	}
	hold(marks, first);
}
