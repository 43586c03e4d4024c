// Initialization of `secret` before Swift's runtime starts, for a root directory without /proc and a fast start.
#ifndef COFFER_CEARLYINIT_H
#define COFFER_CEARLYINIT_H

/// Removes the environment variable that was set for the runtime's start. Call it first, while there is one thread.
void coffer_started(void);

/// Removes a variable from the environment and overwrites its memory with zeros, because `/proc/PID/environ` shows the
/// memory of the initial environment. Only for a process with one thread.
void coffer_conceal(const char *_Nonnull name);

#endif
