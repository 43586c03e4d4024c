// libsecret keeps the calls that work on D-Bus paths, and those that seal a secret for the bus, behind this
// name. They have not changed since 0.18.
#define SECRET_API_SUBJECT_TO_CHANGE 1
#include <libsecret/secret.h>
