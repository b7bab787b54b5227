/* count LINES MARKS: reads its input to the end and writes the mark ARRIVED after LINES lines (each has one `~`). */
#include "bare.h"

enum { BUFFER = 1 << 18 };
static char buffer[BUFFER];

__attribute__((used)) void begin(number *stack)
{
	char **arguments = (char **)(stack + 1);
	if (stack[0] < 3)
		leave(2);
	word wanted = digits(arguments[1]), seen = 0;
	for (number size; (size = CALL(read, 0, buffer, BUFFER, 0)) > 0;) {
		word before = seen;
		for (number i = 0; i < size; i += 128) { /* byte sums, which the compiler vectorizes, cannot overflow in 128 steps */
			unsigned char some = 0;
			number end = i + 128 < size ? i + 128 : size;
			for (number k = i; k < end; k++)
				some += buffer[k] == '~';
			seen += some;
		}
		if (before < wanted && seen >= wanted)
			write_mark(arguments[2], clock_now(), ARRIVED, seen);
	}
	leave(0);
}
