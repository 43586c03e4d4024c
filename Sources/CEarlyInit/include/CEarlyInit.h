// What must happen in `secret` before Swift's runtime starts, for a root directory without /proc.
#ifndef COFFER_CEARLYINIT_H
#define COFFER_CEARLYINIT_H

/// Takes back what was put into the environment for the runtime's start. To be called first, on the only thread.
void coffer_started(void);

/// The process's arguments with its name, as they came; and how many.
char *_Nullable *_Nonnull coffer_arguments(void);
int coffer_argument_count(void);

#endif
