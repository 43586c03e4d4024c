// Reads which mutation is on, and where to record which mutations are reached, before any other code runs:
//   COFFER_MUTANT           the number of the mutation
//   COFFER_MUTANTS_REACHED  a file of REACHED_SIZE bytes, which every process maps, so that a killed one counts too
// A child whose environment a test has replaced takes both from the environment of its nearest ancestor that has them.
#include "CMutants.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { REACHED_SIZE = 16384 };

static unsigned char unrecorded[REACHED_SIZE];
int coffer_mutant_on = 0;
unsigned char *coffer_mutants_reached = unrecorded;

static size_t read_file(const char *path, char *buffer, size_t size) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  size_t length = 0;
  ssize_t count;
  while (length < size && (count = read(file, buffer + length, size - length)) > 0) length += (size_t)count;
  close(file);
  return length;
}

static const char *variable(const char *environment, size_t length, const char *name) {
  for (size_t at = 0; at < length; at += strlen(environment + at) + 1)
    if (strncmp(environment + at, name, strlen(name)) == 0) return environment + at + strlen(name);
  return NULL;
}

static void begin(const char *number, const char *path) {
  coffer_mutant_on = atoi(number);
  if (path == NULL) return;
  int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return;
  void *bytes = mmap(NULL, REACHED_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (bytes != MAP_FAILED) coffer_mutants_reached = bytes;
}

__attribute__((constructor(101))) static void start(void) {
  const char *number = getenv("COFFER_MUTANT");
  if (number != NULL) return begin(number, getenv("COFFER_MUTANTS_REACHED"));
  static char text[262144];
  for (long process = getppid(); process > 1;) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/environ", process);
    size_t length = read_file(path, text, sizeof text - 1);
    text[length] = 0;
    if ((number = variable(text, length, "COFFER_MUTANT=")) != NULL)
      return begin(number, variable(text, length, "COFFER_MUTANTS_REACHED="));
    snprintf(path, sizeof path, "/proc/%ld/status", process);
    length = read_file(path, text, sizeof text - 1);
    text[length] = 0;
    const char *parent = strstr(text, "\nPPid:");
    process = parent == NULL ? 0 : atol(parent + 6);
  }
}
