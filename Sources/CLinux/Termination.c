#include <semaphore.h>
#include <signal.h>
#include <string.h>

#include "CLinux.h"

// Set before the handler is installed.
static pid_t original;
static sem_t arrivals;
static volatile sig_atomic_t first;

// Only functions that are safe in a handler.
static void on_arrival(int number) {
  int error = errno;
  if (coffer_is_original_process()) {
    if (first == 0) first = number;
    sem_post(&arrivals);
  } else {
    // A copy by fork has no thread that waits. It ends as if there were no handler.
    signal(number, SIG_DFL);
    raise(number);
  }
  errno = error;
}

int coffer_is_original_process(void) { return getpid() == original; }

int coffer_prepare_to_catch(void) {
  original = getpid();
  return sem_init(&arrivals, 0, 0);
}

static int has_handler(const struct sigaction *action, void (*handler)(int)) {
  return (action->sa_flags & SA_SIGINFO) == 0 && action->sa_handler == handler;
}

void coffer_catch_if_default(int number) {
  struct sigaction action, previous;
  if (sigaction(number, NULL, &previous) != 0 || !has_handler(&previous, SIG_DFL)) return;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_arrival;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  if (sigaction(number, &action, &previous) != 0) return;
  // Another thread has installed an action since the first call.
  if (!has_handler(&previous, SIG_DFL)) sigaction(number, &previous, NULL);
}

int coffer_wait_for_signal(void) {
  while (sem_wait(&arrivals) != 0) {
  }
  return first;
}

void coffer_end_by(int number) {
  struct sigaction current;
  first = 0;
  if (sigaction(number, NULL, &current) != 0 || !has_handler(&current, on_arrival)) return;
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, number);
  signal(number, SIG_DFL);
  pthread_sigmask(SIG_UNBLOCK, &only, NULL);
  raise(number);
}
