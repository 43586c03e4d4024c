// Functions that Swift cannot import: variadic ones, and those that glibc declares only for _GNU_SOURCE, which the
// header of a module cannot define. Each makes one call. One function needs machine instructions.
#ifndef COFFER_CLINUX_H
#define COFFER_CLINUX_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline int coffer_openat(int directory, const char *name, int flags, mode_t mode) {
  return openat(directory, name, flags, mode);
}

// glibc names these flags of open(2) publicly only for _GNU_SOURCE, musl always.
#ifdef __O_PATH
static const int coffer_O_PATH = __O_PATH;
static const int coffer_O_TMPFILE = __O_TMPFILE;
#else
static const int coffer_O_PATH = O_PATH;
static const int coffer_O_TMPFILE = O_TMPFILE;
#endif

/// Opens a directory to find other files in it (O_PATH), without following any link in the path.
static inline int coffer_open_directory_without_links(const char *path) {
  struct { unsigned long long flags, mode, resolve; } how = {.flags = coffer_O_PATH | O_DIRECTORY | O_CLOEXEC};
  how.resolve = 0x06;  // RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS
  return (int)syscall(437, AT_FDCWD, path, &how, sizeof how);  // SYS_openat2
}

/// These two give a name to an open file, which may have none. The first needs a recent kernel or a capability, the
/// second the file's path in /proc. Neither replaces an existing file.
static inline int coffer_link_descriptor(int file, int directory, const char *name) {
  return linkat(file, "", directory, name, 0x1000);  // AT_EMPTY_PATH
}

static inline int coffer_link_path(const char *path, int directory, const char *name) {
  return linkat(AT_FDCWD, path, directory, name, AT_SYMLINK_FOLLOW);
}

/// renameat2 with RENAME_NOREPLACE (1): fails with EEXIST if the new name exists.
static inline int coffer_rename_exclusively(int directory, const char *name, const char *new_name) {
  return (int)syscall(SYS_renameat2, directory, name, directory, new_name, 1u);
}

/// Makes the process undumpable: it leaves no core file, and processes of the same user cannot attach to it.
static inline int coffer_set_undumpable(void) { return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); }

extern int pipe2(int ends[2], int flags);

static inline int coffer_pipe(int ends[2]) { return pipe2(ends, O_CLOEXEC); }

/// fork(2), which Swift cannot import. The caller must have one thread.
static inline pid_t coffer_fork(void) { return fork(); }

/// A counter that a thread can wait for together with other descriptors. Reading it does not block.
static inline int coffer_eventfd(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

/// Creates a file in memory, which is closed when a program is executed and can be sealed.
static inline int coffer_memfd(const char *name) {
  return (int)syscall(SYS_memfd_create, name, 3u);  // MFD_CLOEXEC | MFD_ALLOW_SEALING
}

/// The type of the path's file system, a number of linux/magic.h, or -1.
static inline long long coffer_file_system_type(const char *path) {
  struct statfs status;
  return statfs(path, &status) == 0 ? (long long)status.f_type : -1;
}

/// Takes the lock of one byte of an open file, or fails with EAGAIN if another open file has it. The lock ends when the
/// descriptor is closed. The byte need not exist.
static inline int coffer_lock_byte(int descriptor, long long offset) {
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = offset, .l_len = 1};
  return fcntl(descriptor, 37, &lock);  // F_OFD_SETLK
}

// The kernel keyrings. For the operations, see keyctl(2).
static inline int coffer_add_key(
    const char *type, const char *description, const void *payload, size_t length, int keyring) {
  return (int)syscall(SYS_add_key, type, description, payload, length, keyring);
}

static inline long coffer_keyctl(int operation, unsigned long a, unsigned long b, unsigned long c, unsigned long d) {
  return syscall(SYS_keyctl, operation, a, b, c, d);
}

/// Clears the vector registers, which copies of memory use. Does nothing unless on x86-64 or 64-bit ARM.
void coffer_clear_vector_registers(void);

/// The current environment of the process.
extern char **environ;
static inline char **coffer_environment(void) { return environ; }

// Since glibc 2.35. Without it, the caller sets the group after the start.
extern int posix_spawn_file_actions_addtcsetpgrp_np(posix_spawn_file_actions_t *actions, int terminal)
    __attribute__((weak));

/// Makes the started program's process group the foreground group of the terminal. Returns ENOSYS before glibc 2.35.
static inline int coffer_spawn_in_foreground(posix_spawn_file_actions_t *actions, int terminal) {
  return posix_spawn_file_actions_addtcsetpgrp_np ? posix_spawn_file_actions_addtcsetpgrp_np(actions, terminal) : ENOSYS;
}

// Since glibc 2.34, and declared only for _GNU_SOURCE.
extern int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *actions, int first);

/// The name of the process in `ps`, up to 15 bytes.
static inline int coffer_set_process_name(const char *name) {
  return prctl(PR_SET_NAME, (unsigned long)name, 0, 0, 0);
}

// Since glibc 2.30.
extern int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock, const struct timespec *deadline);

static inline int coffer_mutex_clocklock(
    pthread_mutex_t *mutex, clockid_t clock, const struct timespec *deadline) {
  return pthread_mutex_clocklock(mutex, clock, deadline);
}

#endif
