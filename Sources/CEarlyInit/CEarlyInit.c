#include "CEarlyInit.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

static int was_set;
static int count;
static char **arguments;

// In a static executable, Swift's runtime first reads the executable's path from /proc, to find the program that
// prints backtraces, and ends the process if there is no /proc, as in an empty root directory. With SWIFT_ROOT set it
// does not read /proc; its value does not matter, because no such program is installed. The runtime reads the
// arguments from /proc as well.
//
// glibc passes the arguments of main to constructors. Priority 101 runs before the runtime's constructors, which have
// no priority.
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

char **coffer_arguments(void) { return arguments; }

int coffer_argument_count(void) { return count; }
