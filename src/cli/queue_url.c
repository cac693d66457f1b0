/* queue_url.c: see queue_url.h. */
#include "cli/queue_url.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static const char *const schemes[] = {"amqp://", "amqps://"};

/* How long the scheme is; 0: there is none. */
static size_t scheme_of(const char *text) {
  for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++)
    if (strncmp(text, schemes[i], strlen(schemes[i])) == 0) return strlen(schemes[i]);
  return 0;
}

/* Where the host begins. A password that was not escaped may have an @ or a / of its own: all before the
 * last @ is secret. */
static const char *host_of(const char *url) {
  const char *at = strrchr(url, '@');
  return at != NULL ? at + 1 : url + scheme_of(url);
}

bool shoal_queue_url_is(const char *text) { return scheme_of(text) > 0; }

char *shoal_queue_url_take(const char *url, int argc, char **argv) {
  char *copy = strdup(url);
  for (int i = 0; i < argc; i++) {
    char *at = argv[i];
    while (*at && at != url) at++;
    if (at != url) continue;
    size_t scheme = scheme_of(at), secret = (size_t)(host_of(at) - at);
    if (secret > scheme) memset(at + scheme, '*', secret - scheme - 1);
  }
  return copy;
}

void shoal_queue_url_free(char *url) {
  if (url == NULL) return;
  explicit_bzero(url, strlen(url));
  free(url);
}

void shoal_queue_url_plain(const char *url, char *out, size_t size) {
  const char *host = host_of(url);
  char scheme[16];
  snprintf(scheme, sizeof scheme, "%.*s", (int)scheme_of(url), url);
  shoal_text_plain(out, size, scheme, strlen(scheme));
  size_t used = strlen(out);
  shoal_text_plain(out + used, size - used, host, strlen(host));
}

void shoal_queue_url_masked(const char *url, char *out, size_t size) {
  const char *user = url + scheme_of(url), *host = host_of(url);
  const char *colon = memchr(user, ':', (size_t)(host - user));
  const char *end = colon ? colon : host;
  shoal_text text = {0};
  shoal_text_addf(&text, "%.*s%s%s", (int)(end - url), url, colon ? ":PASSWORD@" : "", host);
  shoal_text_plain(out, size, text.failed ? "" : text.bytes, text.failed ? 0 : text.length);
  shoal_text_release(&text);
}
