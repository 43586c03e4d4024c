// curl_easy_setopt and curl_easy_getinfo are variadic, which Swift cannot import.
#include <curl/curl.h>
#include <sodium.h>

typedef size_t (*coffer_curl_receiver)(char *bytes, size_t size, size_t count, void *context);

static inline CURLcode coffer_curl_set_number(CURL *curl, CURLoption option, long value) {
  return curl_easy_setopt(curl, option, value);
}
static inline CURLcode coffer_curl_set_pointer(CURL *curl, CURLoption option, const void *value) {
  return curl_easy_setopt(curl, option, value);
}
static inline CURLcode coffer_curl_set_receiver(CURL *curl, CURLoption option, coffer_curl_receiver value) {
  return curl_easy_setopt(curl, option, value);
}
/// The number of bytes of requests that were sent.
static inline long coffer_curl_sent(CURL *curl) {
  long size = 0;
  curl_easy_getinfo(curl, CURLINFO_REQUEST_SIZE, &size);
  return size;
}
static inline long coffer_curl_status(CURL *curl) {
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  return status;
}
