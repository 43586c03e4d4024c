// Calls that Swift cannot import: variadic ones, and those that glibc declares only for _GNU_SOURCE.
// Nothing here decides anything: each function is one call.
#ifndef COFFER_CLINUX_H
#define COFFER_CLINUX_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline int coffer_openat(int directory, const char *name, int flags, mode_t mode) {
  return openat(directory, name, flags, mode);
}

/// renameat2 with RENAME_NOREPLACE (1): fails with EEXIST where the new name is taken.
static inline int coffer_rename_exclusively(int directory, const char *name, const char *new_name) {
  return (int)syscall(SYS_renameat2, directory, name, directory, new_name, 1u);
}

/// Makes the process undumpable: no core file, no attaching by another process of the same user.
static inline int coffer_set_undumpable(void) { return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); }

// Declared only for _GNU_SOURCE, which a module's header cannot switch on.
extern int pipe2(int ends[2], int flags);

static inline int coffer_pipe(int ends[2]) { return pipe2(ends, O_CLOEXEC); }

/// A file in memory without a name, closed when a program is executed. It can be sealed.
static inline int coffer_memfd(const char *name) {
  return (int)syscall(SYS_memfd_create, name, 3u);  // MFD_CLOEXEC | MFD_ALLOW_SEALING
}

/// The number of linux/magic.h of the file system that a path is on, or -1.
static inline long long coffer_file_system_type(const char *path) {
  struct statfs status;
  return statfs(path, &status) == 0 ? (long long)status.f_type : -1;
}

// The kernel's keyrings; numbers and meanings are those of keyctl(2).
static inline int coffer_add_key(
    const char *type, const char *description, const void *payload, size_t length, int keyring) {
  return (int)syscall(SYS_add_key, type, description, payload, length, keyring);
}

static inline long coffer_keyctl(int operation, unsigned long a, unsigned long b, unsigned long c, unsigned long d) {
  return syscall(SYS_keyctl, operation, a, b, c, d);
}

/// The environment as it is now, for a program to be started with.
extern char **environ;
static inline char **coffer_environment(void) { return environ; }

// glibc 2.30; declared only for _GNU_SOURCE, which a module's header cannot switch on.
extern int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock, const struct timespec *deadline);

static inline int coffer_mutex_clocklock(
    pthread_mutex_t *mutex, clockid_t clock, const struct timespec *deadline) {
  return pthread_mutex_clocklock(mutex, clock, deadline);
}

#endif
