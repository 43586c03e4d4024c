// The part of libsecret that CofferKeyring calls, declared here and not included from <libsecret/secret.h>: the flags of
// libsecret-1.pc contain -pthread, which SwiftPM reports in every build of every package that depends on this one. The
// flags of gobject-2.0.pc do not, and lead to the headers of GLib and GIO. libsecret's soname has not changed since these
// functions appeared in 0.18. A test compares the declarations with those of the installed libsecret.
#include <gio/gio.h>

typedef struct _SecretService SecretService;
typedef struct _SecretValue SecretValue;

GType secret_service_get_type(void);
gboolean secret_service_ensure_session_sync(SecretService *service, GCancellable *cancellable, GError **error);
const gchar *secret_service_get_session_dbus_path(SecretService *service);
GVariant *secret_service_encode_dbus_secret(SecretService *service, SecretValue *value);
SecretValue *secret_service_decode_dbus_secret(SecretService *service, GVariant *value);

SecretValue *secret_value_new(const gchar *secret, gssize length, const gchar *content_type);
const gchar *secret_value_get(SecretValue *value, gsize *length);
void secret_value_unref(gpointer value);
