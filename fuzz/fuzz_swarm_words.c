/* fuzz_swarm_words.c: any text as what the server and the members of a swarm tell each other. What is taken
 * can be written and read again, and gives the same. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "cluster/swarm_words.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void try_hello(const char *text, size_t length) {
  shoal_swarm_hello hello, again;
  shoal_text written = {0};
  if (shoal_swarm_hello_read(&hello, text, length, NULL) != SHOAL_OK) return;
  shoal_swarm_hello_write(&hello, &written);
  SHOAL_ASSERT(shoal_swarm_hello_read(&again, written.bytes, written.length, NULL) == SHOAL_OK);
  SHOAL_ASSERT(memcmp(&again, &hello, sizeof hello) == 0);
  shoal_text_release(&written);
}

static void try_contacts(const char *text, size_t length) {
  static shoal_swarm_contacts contacts, again;
  shoal_text written = {0};
  if (shoal_swarm_contacts_read(&contacts, text, length, NULL) != SHOAL_OK) return;
  shoal_swarm_contacts_write(&contacts, &written);
  SHOAL_ASSERT(shoal_swarm_contacts_read(&again, written.bytes, written.length, NULL) == SHOAL_OK);
  SHOAL_ASSERT(again.you == contacts.you && again.count == contacts.count);
  SHOAL_ASSERT(memcmp(again.list, contacts.list, contacts.count * sizeof *contacts.list) == 0);
  shoal_text_release(&written);
}

static void try_report(const char *text, size_t length) {
  shoal_swarm_report report, again;
  shoal_text written = {0};
  if (shoal_swarm_report_read(&report, text, length, NULL) != SHOAL_OK) return;
  shoal_swarm_report_write(&report, &written);
  SHOAL_ASSERT(shoal_swarm_report_read(&again, written.bytes, written.length, NULL) == SHOAL_OK);
  SHOAL_ASSERT(memcmp(&again, &report, sizeof report) == 0);
  shoal_text_release(&written);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
  char *text = malloc(length > 0 ? length : 1); /* what reads beyond the end is seen */
  SHOAL_ASSERT(text != NULL);
  memcpy(text, bytes, length);
  try_hello(text, length);
  try_contacts(text, length);
  try_report(text, length);
  free(text);
  return 0;
}
