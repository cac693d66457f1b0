/* fuzz_fetch.c: any bytes as what a server answers to shoal_fetch: one request, and a stream of events.
 *
 * The functions of fetch_wire.h are here, in the place of a socket: reading gives the input, in pieces whose
 * length the first byte says. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "wire/fetch.h"
#include "wire/fetch_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

enum { ANSWER_MAX = 4096 };

static struct {
  const uint8_t *bytes;
  size_t length, at, piece;
} input;

shoal_status fetch_wire_open(fetch_wire *wire, double seconds, shoal_error *err) {
  (void)seconds, (void)err;
  wire->fd = 0;
  return SHOAL_OK;
}

void fetch_wire_close(fetch_wire *wire) { wire->fd = -1; }

/* It is asked before a pause: there is none here. */
bool fetch_wire_stops(const fetch_wire *wire) {
  (void)wire;
  return true;
}

shoal_status fetch_wire_read(fetch_wire *wire, void *to, size_t room, double deadline, size_t *got,
                             shoal_error *err) {
  (void)wire, (void)deadline, (void)err;
  size_t left = input.length - input.at;
  SHOAL_ASSERT(room > 0);
  *got = left < input.piece ? left : input.piece;
  if (*got > room) *got = room;
  memcpy(to, input.bytes + input.at, *got);
  input.at += *got;
  return SHOAL_OK;
}

shoal_status fetch_wire_write(fetch_wire *wire, const void *bytes, size_t length, double silence_s,
                              shoal_error *err) {
  (void)wire, (void)bytes, (void)length, (void)silence_s, (void)err;
  return SHOAL_OK;
}

bool fetch_wire_has_input(const fetch_wire *wire) {
  (void)wire;
  return input.at < input.length;
}

/* ---- what is asked ---- */

static void check_text(const char *text) {
  for (; *text != 0; text++) SHOAL_ASSERT((unsigned char)*text >= ' ' && *text != 127);
}

static bool hear(void *self, const char *name, const char *data) {
  (void)self;
  check_text(name);
  return data[0] != '!';
}

static void ask(shoal_fetch *fetch) {
  shoal_reply reply;
  shoal_error err = {0};
  const shoal_ask what = {.path = "/api/v1/server", .answer_max = ANSWER_MAX};
  if (shoal_fetch_ask(fetch, &what, &reply, &err) == SHOAL_OK)
    SHOAL_ASSERT(reply.status >= 200 && reply.status <= 299 && reply.body.length <= ANSWER_MAX);
  else
    SHOAL_ASSERT(err.text[0] != 0);
  check_text(err.text);
  shoal_reply_release(&reply);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
  if (length == 0) return 0;
  const shoal_link link = {.host = "h", .port = 1, .address = "h:1"};
  shoal_fetch *fetch;
  SHOAL_ASSERT(shoal_fetch_create(&fetch, &(shoal_fetch_config){.link = &link}, NULL) == SHOAL_OK);
  input.bytes = bytes + 1;
  input.length = length - 1;
  input.piece = (size_t)bytes[0] + 1;
  input.at = 0;
  ask(fetch);
  ask(fetch); /* what is left is the answer to the next one */
  input.at = 0;
  (void)shoal_fetch_events(fetch, "/api/v1/live", NULL, hear, NULL);
  shoal_fetch_destroy(fetch);
  return 0;
}
