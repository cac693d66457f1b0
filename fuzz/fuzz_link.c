/* fuzz_link.c: any text as a link. What is taken can be written and read again, and gives the same; what is
 * refused is told without what stands behind the #. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "wire/link.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void check_again(const shoal_link *link) {
  char text[1024];
  snprintf(text, sizeof text, "%s://%s/#%s%s%s%s", link->tls ? "https" : "http", link->address,
           link->token[0] ? "t=" : "", link->token, link->fingerprint[0] ? "&fp=" : "", link->fingerprint);
  shoal_link again;
  SHOAL_ASSERT(shoal_link_parse(&again, text, NULL) == SHOAL_OK);
  SHOAL_ASSERT(again.tls == link->tls && again.port == link->port && strcmp(again.host, link->host) == 0);
  SHOAL_ASSERT(strcmp(again.address, link->address) == 0 && strcmp(again.token, link->token) == 0);
  SHOAL_ASSERT(strcmp(again.fingerprint, link->fingerprint) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
  static const char secret[] = "Se_cret-token";
  char *text = malloc(length + 64);
  SHOAL_ASSERT(text != NULL);
  memcpy(text, bytes, length);
  text[length] = 0;
  shoal_link link;
  shoal_error err = {0};
  if (shoal_link_parse(&link, text, &err) == SHOAL_OK)
    check_again(&link);
  else
    SHOAL_ASSERT(err.text[0] != 0);
  if (strstr(text, secret) == NULL) {
    snprintf(text + strlen(text), 64, "#t=%s%%", secret); /* no token has a % */
    err.text[0] = 0;
    SHOAL_ASSERT(shoal_link_parse(&link, text, &err) != SHOAL_OK || strcmp(link.token, secret) != 0);
    SHOAL_ASSERT(strstr(err.text, secret) == NULL);
  }
  free(text);
  return 0;
}
