#include "CEarlyInit.h"

#include <stdlib.h>
#include <unistd.h>

static int was_set;
static int count;
static char **arguments;

// Before it does anything else, the runtime in a static executable asks /proc where it is, to find the program that
// prints backtraces; and ends the process where there is no /proc, as in an empty root directory. This variable
// spares it the question. There is no such program here, wherever it looks. It takes the arguments from /proc, too.
//
// glibc gives a constructor what it gives main. 101 is before the runtime's own constructors, which have no priority.
__attribute__((constructor(101))) static void prepare(int argc, char **argv) {
  count = argc;
  arguments = argv;
  if (access("/proc/self/exe", F_OK) != 0 && getenv("SWIFT_ROOT") == NULL) {
    was_set = setenv("SWIFT_ROOT", "/nonexistent", 0) == 0;
  }
}

void coffer_started(void) {
  if (was_set) unsetenv("SWIFT_ROOT");
}

char **coffer_arguments(void) { return arguments; }

int coffer_argument_count(void) { return count; }
