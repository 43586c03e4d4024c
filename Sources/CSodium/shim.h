#include <sodium.h>

// X-Wing is in libsodium since 1.0.22. The references are weak, so that a program is built with an older library too, and
// uses what it finds when it starts.
int crypto_kem_seed_keypair(unsigned char *public_key, unsigned char *secret_key, const unsigned char *seed)
    __attribute__((weak));
int crypto_kem_enc(unsigned char *share, unsigned char *secret, const unsigned char *public_key) __attribute__((weak));
int crypto_kem_dec(unsigned char *secret, const unsigned char *share, const unsigned char *secret_key)
    __attribute__((weak));

static inline int coffer_has_xwing(void) {
    return crypto_kem_seed_keypair != 0 && crypto_kem_enc != 0 && crypto_kem_dec != 0;
}
