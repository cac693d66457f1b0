/* link.h: where a server is and what lets one in, from an invitation link.
 *
 *   http://HOST:PORT/#t=TOKEN               as a server makes it; https with TLS
 *   https://HOST:PORT/#t=TOKEN&fp=SHA256    with the fingerprint of its key, whose certificate nobody vouches
 *                                           for; of the certificate itself in links of earlier versions
 *   HOST:PORT                               without either
 *
 * A path before the # is the page's and says nothing here. The token is a secret: no error text repeats what
 * stands behind a #, and the word of the command line is wiped once it is read.
 *
 * Ownership: a link is plain storage of the caller's. Threads: any. */
#ifndef SHOAL_WIRE_LINK_H
#define SHOAL_WIRE_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/status.h"

enum { SHOAL_LINK_HOST_MAX = 254, SHOAL_LINK_ADDRESS_MAX = 264, SHOAL_TOKEN_MAX = 129 };

typedef struct shoal_link {
  bool tls;
  char host[SHOAL_LINK_HOST_MAX]; /* without the brackets of IPv6 */
  uint16_t port;
  char address[SHOAL_LINK_ADDRESS_MAX]; /* HOST:PORT, with brackets */
  char token[SHOAL_TOKEN_MAX];          /* "": none */
  char fingerprint[SHOAL_SHA256_HEX];   /* lower case; "": the certificate must be valid */
} shoal_link;

shoal_status shoal_link_parse(shoal_link *out, const char *text, shoal_error *err);

/* The same; a link without a token gets the one in the file, unless that is NULL. */
shoal_status shoal_link_open(shoal_link *out, const char *text, const char *token_file, shoal_error *err);

/* The link in the environment (SHOAL_LINK), which all commands take that are given none; NULL: there is none. */
const char *shoal_link_usual(void);

/* Overwrites what stands behind the # of a link, so that nobody reads it in the list of processes. `text` is
 * the link as it lies in one of the words: a word, or the end of --server=LINK; other words are left alone.
 * NULL is fine. */
void shoal_link_wipe(int argc, char **argv, const char *text);

/* Whether a host is an address in figures, of IPv4 or IPv6 without brackets: one that nobody looks up. */
bool shoal_link_is_numeric(const char *host);

#endif
