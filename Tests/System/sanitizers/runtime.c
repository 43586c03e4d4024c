// Tells the thread sanitizer what Swift's Mutex does when a thread has to wait. The part of Mutex that finds the lock
// free is compiled into each program, where the sanitizer sees it. The other part is in libswiftSynchronization, which
// is not compiled for the sanitizer. Without this file, each lock that a thread waited for looks like no lock at all.
//
// It also tells it what a continuation does that was resumed before its task waited for it: the task then goes on at
// once, and the runtime tells the sanitizer only of tasks that start to run. The checked continuations resume inside the
// library, where nothing can come between; so only the unsafe ones are seen.
//
// sanitize.sh links this file into the programs, where its functions come before those of the library.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

// Of the sanitizer's runtime: what came before a release of an address has happened when it is acquired.
void __tsan_acquire(void *address);
void __tsan_release(void *address);

#define SWIFT __attribute__((swiftcall))
#define SELF __attribute__((swift_context)) void *

static void *original(const char *name) {
  void *function = dlsym(RTLD_NEXT, name);
  if (!function) abort();
  return function;
}

// _MutexHandle._lockSlow(_:) and _MutexHandle._unlockSlow()
#define LOCK "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define UNLOCK "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"

SWIFT void coffer_lock(uint32_t state, SELF mutex) __asm__(LOCK);
SWIFT void coffer_lock(uint32_t state, SELF mutex) {
  ((SWIFT void (*)(uint32_t, SELF))original(LOCK))(state, mutex);
  __tsan_acquire(mutex);
}

SWIFT void coffer_unlock(SELF mutex) __asm__(UNLOCK);
SWIFT void coffer_unlock(SELF mutex) {
  __tsan_release(mutex);
  ((SWIFT void (*)(SELF))original(UNLOCK))(mutex);
}

SWIFT void *swift_task_getCurrent(void);

SWIFT void swift_continuation_resume(void *task);
SWIFT void swift_continuation_resume(void *task) {
  __tsan_release(task);
  ((SWIFT void (*)(void *))original("swift_continuation_resume"))(task);
}

static __attribute__((swiftasynccall)) void (*wait)(void *);

__attribute__((constructor)) static void findWait(void) { wait = original("swift_continuation_await"); }

__attribute__((swiftasynccall)) void swift_continuation_await(void *context);
__attribute__((swiftasynccall)) void swift_continuation_await(void *context) {
  __tsan_acquire(swift_task_getCurrent());
  __attribute__((musttail)) return wait(context);
}
