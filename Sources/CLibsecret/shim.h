// libsecret declares the calls that take D-Bus paths, and those that encrypt a secret for the bus, only if this is
// defined. They have not changed since libsecret 0.18.
#define SECRET_API_SUBJECT_TO_CHANGE 1
#include <libsecret/secret.h>
