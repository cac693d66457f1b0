/* link.c: see link.h. */
#include "wire/link.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"

enum { FINGERPRINT_DIGITS = SHOAL_SHA256_HEX - 1, TOKEN_FILE_MAX = 4096, SHOWN_MAX = 120 };
static const char TOKEN_CHARACTERS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* What may be shown of a link: the beginning, without the secret. */
static shoal_status fail(const char *text, const char *why, shoal_error *err) {
  char shown[SHOWN_MAX];
  shoal_text_plain(shown, sizeof shown, text, strcspn(text, "#"));
  return shoal_fail(err, SHOAL_INVALID,
                    "'%s' is no link to a server: %s; one looks like http://192.168.1.5:8080/#t=TOKEN", shown,
                    why);
}

/* ---- host and port ---- */

static const char *read_host(shoal_link *out, const char *from, size_t length) {
  bool v6 = length >= 2 && from[0] == '[' && from[length - 1] == ']' && memchr(from, ':', length) != NULL;
  if (v6) {
    from++;
    length -= 2;
  }
  if (length == 0) return "there is no host";
  if (length >= SHOAL_LINK_HOST_MAX) return "the name of the host is too long";
  for (size_t i = 0; i < length; i++) {
    unsigned char c = (unsigned char)from[i];
    bool good = v6 ? isxdigit(c) || c == ':' || c == '.' || c == '%' || isalnum(c)
                   : isalnum(c) || c == '.' || c == '-' || c == '_';
    if (!good) return "the name of the host has characters that no host has";
  }
  memcpy(out->host, from, length);
  out->host[length] = 0;
  return NULL;
}

/* HOST:PORT, or HOST alone where a scheme says which port is meant. */
static const char *read_address(shoal_link *out, const char *from, size_t length, uint16_t usual_port) {
  size_t host_length = length;
  while (host_length > 0 && from[host_length - 1] != ':' && from[host_length - 1] != ']') host_length--;
  bool has_port = host_length > 0 && from[host_length - 1] == ':';
  if (!has_port && usual_port == 0) return "there is no port";
  uint64_t port = usual_port;
  if (has_port &&
      (!shoal_read_u64(from + host_length, length - host_length, &port) || port == 0 || port > UINT16_MAX))
    return "the port is no number from 1 to 65535";
  const char *wrong = read_host(out, from, has_port ? host_length - 1 : length);
  if (wrong) return wrong;
  out->port = (uint16_t)port;
  bool v6 = strchr(out->host, ':') != NULL;
  snprintf(out->address, sizeof out->address, v6 ? "[%s]:%u" : "%s:%u", out->host, out->port);
  return NULL;
}

/* ---- what stands behind the # ---- */

static const char *read_token(shoal_link *out, const char *from, size_t length) {
  if (length == 0 || length >= sizeof out->token) return "its token is too short or too long";
  if (strspn(from, TOKEN_CHARACTERS) < length) return "its token has characters that no token has";
  memcpy(out->token, from, length);
  out->token[length] = 0;
  return NULL;
}

/* Colons between the digits are allowed, as openssl prints them. */
static const char *read_fingerprint(shoal_link *out, const char *from, size_t length) {
  size_t digits = 0;
  for (size_t i = 0; i < length; i++) {
    if (from[i] == ':') continue;
    if (!isxdigit((unsigned char)from[i]) || digits == FINGERPRINT_DIGITS)
      return "its fingerprint (fp) is not a SHA-256 of 64 hex digits";
    out->fingerprint[digits++] = (char)tolower((unsigned char)from[i]);
  }
  out->fingerprint[digits] = 0;
  return digits == FINGERPRINT_DIGITS ? NULL : "its fingerprint (fp) is not a SHA-256 of 64 hex digits";
}

static const char *read_fragment(shoal_link *out, const char *from) {
  while (*from) {
    size_t length = strcspn(from, "&");
    const char *wrong = NULL;
    if (strncmp(from, "t=", 2) == 0)
      wrong = read_token(out, from + 2, length - 2);
    else if (strncmp(from, "fp=", 3) == 0)
      wrong = read_fingerprint(out, from + 3, length - 3);
    if (wrong) return wrong; /* other words are for the page, or of a later version */
    from += length + (from[length] == '&');
  }
  return NULL;
}

shoal_status shoal_link_parse(shoal_link *out, const char *text, shoal_error *err) {
  *out = (shoal_link){0};
  const char *rest = text;
  uint16_t usual_port = 0;
  if (strncmp(text, "http://", 7) == 0) {
    rest = text + 7;
    usual_port = 80;
  } else if (strncmp(text, "https://", 8) == 0) {
    rest = text + 8;
    usual_port = 443;
    out->tls = true;
  } else if (strstr(text, "://") != NULL) {
    return fail(text, "it begins with neither http:// nor https://", err);
  }
  const char *wrong = read_address(out, rest, strcspn(rest, "/?#"), usual_port);
  const char *fragment = strchr(rest, '#');
  if (!wrong && fragment) wrong = read_fragment(out, fragment + 1);
  if (!wrong && out->fingerprint[0] && !out->tls) wrong = "a fingerprint (fp) needs https";
  if (!wrong) return SHOAL_OK;
  explicit_bzero(out, sizeof *out);
  return fail(text, wrong, err);
}

/* ---- tokens from elsewhere ---- */

static shoal_status take_token(shoal_link *out, const char *from, const char *where, shoal_error *err) {
  size_t length = strlen(from);
  while (length > 0 && isspace((unsigned char)from[length - 1])) length--;
  const char *wrong = read_token(out, from, length);
  return wrong ? shoal_fail(err, SHOAL_INVALID, "%s: %s", where, wrong) : SHOAL_OK;
}

shoal_status shoal_link_open(shoal_link *out, const char *text, const char *token_file, shoal_error *err) {
  shoal_status status = shoal_link_parse(out, text, err);
  if (status != SHOAL_OK || out->token[0] || !token_file) return status;
  uint8_t *bytes;
  size_t length;
  status = shoal_file_read(token_file, TOKEN_FILE_MAX, false, &bytes, &length, err);
  if (status != SHOAL_OK) return status;
  status = take_token(out, (char *)bytes, token_file, err);
  explicit_bzero(bytes, length);
  free(bytes);
  return status;
}

const char *shoal_link_usual(void) {
  const char *link = getenv("SHOAL_LINK");
  return link && link[0] ? link : NULL;
}

void shoal_link_wipe(int argc, char **argv, const char *text) {
  for (int i = 0; i < argc; i++) {
    char *at = argv[i];
    while (*at && at != text) at++;
    char *secret = strchr(at, '#');
    if (secret) memset(secret + 1, '*', strlen(secret + 1));
  }
}

bool shoal_link_is_numeric(const char *host) {
  uint8_t bytes[16];
  return inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1;
}
