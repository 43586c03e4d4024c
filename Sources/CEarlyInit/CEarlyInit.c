#include "CEarlyInit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

extern char **environ;

static const char *was_set;
static int count;
static char **arguments;

// In a static executable, Swift's runtime reads the executable's path from /proc to search for the program that prints
// backtraces, which is not installed. The search takes nineteen system calls. Without /proc, as in an empty root
// directory, it ends the process. With this value of SWIFT_BACKTRACE, the runtime does not search, and does not look
// for a terminal. If the user has set SWIFT_BACKTRACE, SWIFT_ROOT shortens the search. AT_BASE, the address of the
// interpreter, is 0 in a static executable.
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

// Replaces the function of the same name in a runtime that is linked statically. The object file of that function has a
// constructor that searches /proc/self/maps at each start: it is slow, and finds no arguments without /proc. The linker
// takes that file only if something else in it is used. Then the runtime's function replaces this weak one.
__attribute__((weak)) char **_swift_stdlib_getUnsafeArgvArgc(int *length) {
  *length = count;
  return arguments;
}
