#include "CEarlyInit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

extern char **environ;

static const char *was_set;
static int count;
static char **arguments;

// In a static executable, Swift's runtime reads the executable's path from /proc to find the program that prints
// backtraces, which is not installed there. The search takes nineteen system calls, and ends the process if there is no
// /proc, as in an empty root directory. With SWIFT_BACKTRACE set so, the runtime does not search, nor look for a terminal;
// beside a value of the user's, SWIFT_ROOT shortens the search. A static executable has no interpreter, whose address is
// AT_BASE.
//
// glibc passes the arguments of main to constructors. Priority 101 runs before the runtime's constructors, which have
// no priority.
__attribute__((constructor(101))) static void prepare(int argc, char **argv) {
  count = argc;
  arguments = argv;
  if (getauxval(AT_BASE) != 0) return;
  if (getenv("SWIFT_BACKTRACE") == NULL) {
    was_set = "SWIFT_BACKTRACE";
    setenv(was_set, "enable=no,color=no,interactive=no,swift-backtrace=/nonexistent", 0);
  } else if (getenv("SWIFT_ROOT") == NULL) {
    was_set = "SWIFT_ROOT";
    setenv(was_set, "/nonexistent", 0);
  }
}

void coffer_started(void) {
  if (was_set) unsetenv(was_set);
}

void coffer_conceal(const char *name) {
  size_t length = strlen(name);
  char **kept = environ;
  for (char **entry = environ; entry != NULL && *entry != NULL; entry++) {
    if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=') {
      explicit_bzero(*entry, strlen(*entry));
    } else {
      *kept++ = *entry;
    }
  }
  if (kept != NULL) *kept = NULL;
}

// Where the runtime is linked statically, this takes the place of its function for the arguments. A constructor in the
// file of that function searches /proc/self/maps at each start, which takes time, and finds no arguments without /proc.
// The linker does not take that file from the runtime's archive unless something else in it is used. Then this weak
// function gives way.
__attribute__((weak)) char **_swift_stdlib_getUnsafeArgvArgc(int *length) {
  *length = count;
  return arguments;
}
