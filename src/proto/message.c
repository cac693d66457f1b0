/* message.c: see message.h. */
#include "proto/message.h"

#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/block.h"

/* ---- blobs ---- */

struct shoal_blob {
  _Atomic uint32_t users;
  size_t length;
  size_t block_bytes;
  shoal_blob *whole; /* what this is a part of, or NULL */
  uint8_t *bytes;    /* its own storage, or in the whole's */
  alignas(64) uint8_t storage[];
};

shoal_blob *shoal_blob_create(size_t length) {
  if (length > SIZE_MAX - 2 * sizeof(shoal_blob)) return NULL;
  size_t block_bytes;
  shoal_blob *blob = shoal_block_take(sizeof *blob + length, &block_bytes);
  if (blob == NULL) return NULL;
  atomic_init(&blob->users, 1);
  blob->length = length;
  blob->block_bytes = block_bytes;
  blob->whole = NULL;
  blob->bytes = blob->storage;
  return blob;
}

shoal_blob *shoal_blob_of(const void *bytes, size_t length) {
  shoal_blob *blob = shoal_blob_create(length);
  SHOAL_ASSERT(blob != NULL);
  if (length > 0) memcpy(blob->bytes, bytes, length);
  return blob;
}

shoal_blob *shoal_blob_part(shoal_blob *whole, size_t offset, size_t length) {
  SHOAL_ASSERT(offset <= whole->length && length <= whole->length - offset);
  shoal_blob *blob = shoal_blob_create(0);
  SHOAL_ASSERT(blob != NULL);
  blob->length = length;
  blob->whole = shoal_blob_share(whole);
  blob->bytes = whole->bytes + offset;
  return blob;
}

shoal_blob *shoal_blob_share(shoal_blob *blob) {
  if (blob != NULL) atomic_fetch_add(&blob->users, 1);
  return blob;
}

void shoal_blob_release(shoal_blob *blob) {
  if (blob == NULL || atomic_fetch_sub(&blob->users, 1) > 1) return;
  shoal_blob_release(blob->whole);
  shoal_block_give(blob, blob->block_bytes);
}

bool shoal_blob_is_shared(shoal_blob *blob) { return atomic_load(&blob->users) > 1; }

uint8_t *shoal_blob_bytes(shoal_blob *blob) { return blob->bytes; }
size_t shoal_blob_length(const shoal_blob *blob) { return blob->length; }

void shoal_blob_shorten(shoal_blob *blob, size_t length) {
  SHOAL_ASSERT(length <= blob->length);
  blob->length = length;
}

/* ---- kinds ---- */

/* What a kind is called, and how long its payload may be: nothing, a fixed length, text, any, or any
 * number of floats, which may be none: a small model has slices without weights. */
enum { NOTHING = 0, TEXT = -1, ANY = -2, FLOATS = -3 };

static const struct {
  const char *name;
  int payload;
} kinds[SHOAL_MSG_KINDS] = {
    [SHOAL_MSG_HELLO] = {"HELLO", TEXT},
    [SHOAL_MSG_WELCOME] = {"WELCOME", TEXT},
    [SHOAL_MSG_REFUSE] = {"REFUSE", TEXT},
    [SHOAL_MSG_ASK] = {"ASK", NOTHING},
    [SHOAL_MSG_LEASE] = {"LEASE", ANY},
    [SHOAL_MSG_WAIT] = {"WAIT", NOTHING},
    [SHOAL_MSG_DONE] = {"DONE", ANY},
    [SHOAL_MSG_RETURN] = {"RETURN", NOTHING},
    [SHOAL_MSG_PULL] = {"PULL", NOTHING},
    [SHOAL_MSG_WEIGHTS] = {"WEIGHTS", FLOATS},
    [SHOAL_MSG_PUSH] = {"PUSH", FLOATS},
    [SHOAL_MSG_SQUARES] = {"SQUARES", FLOATS},
    [SHOAL_MSG_SCALE] = {"SCALE", 4},
    [SHOAL_MSG_APPLIED] = {"APPLIED", ANY},
    [SHOAL_MSG_SAVE] = {"SAVE", ANY},
    [SHOAL_MSG_SAVED] = {"SAVED", TEXT},
    [SHOAL_MSG_RESTORE] = {"RESTORE", NOTHING},
    [SHOAL_MSG_RESTORED] = {"RESTORED", NOTHING},
    [SHOAL_MSG_GIVE] = {"GIVE", FLOATS},
    [SHOAL_MSG_BEAT] = {"BEAT", NOTHING},
    [SHOAL_MSG_END] = {"END", TEXT},
    [SHOAL_MSG_REGISTER] = {"REGISTER", TEXT},
    [SHOAL_MSG_ASSIGN] = {"ASSIGN", TEXT},
    [SHOAL_MSG_REPORT] = {"REPORT", TEXT},
    [SHOAL_MSG_HAVE] = {"HAVE", ANY},
    [SHOAL_MSG_WANT] = {"WANT", NOTHING},
    [SHOAL_MSG_CHUNK] = {"CHUNK", ANY},
    [SHOAL_MSG_PEERS] = {"PEERS", TEXT},
    [SHOAL_MSG_BLAME] = {"BLAME", TEXT},
    [SHOAL_MSG_GOT] = {"GOT", 8},
    [SHOAL_MSG_ACCEPT] = {"ACCEPT", NOTHING},
    [SHOAL_MSG_REJECT] = {"REJECT", NOTHING},
};

const char *shoal_message_name(shoal_message_kind kind) {
  SHOAL_ASSERT(kind > 0 && kind < SHOAL_MSG_KINDS);
  return kinds[kind].name;
}

bool shoal_message_has_floats(shoal_message_kind kind) { return kinds[kind].payload == FLOATS; }

void shoal_message_release(shoal_message *message) {
  shoal_blob_release(message->payload);
  message->payload = NULL;
}

/* ---- header ---- */

static const uint8_t magic[4] = {'S', 'H', 'L', SHOAL_WIRE_VERSION};

/* Offsets of the fields; docs/wire.md is the same table in words. */
enum {
  AT_MAGIC = 0,
  AT_KIND = 4,
  AT_FORMAT = 6,
  AT_LENGTH = 8,
  AT_GENERATION = 16,
  AT_LEASE = 24,
  AT_ROUND = 32,
  AT_VERSION = 40,
  AT_SHARD = 48,
  AT_SLICE = 52,
  AT_COUNT = 56,
  AT_CHECK = 60,
};

static void put(uint8_t *at, unsigned bytes, uint64_t value) {
  for (unsigned i = 0; i < bytes; i++) at[i] = (uint8_t)(value >> 8 * i);
}

static uint64_t get(const uint8_t *at, unsigned bytes) {
  uint64_t value = 0;
  for (unsigned i = 0; i < bytes; i++) value |= (uint64_t)at[i] << 8 * i;
  return value;
}

/* FNV-1a over all that stands before it: tells a header from bytes that lost their place. */
static uint32_t check_of(const uint8_t *header) {
  uint32_t hash = 2166136261u;
  for (unsigned i = 0; i < AT_CHECK; i++) hash = (hash ^ header[i]) * 16777619u;
  return hash;
}

void shoal_message_encode(const shoal_message *m, uint8_t header[SHOAL_HEADER_BYTES]) {
  SHOAL_ASSERT(m->kind > 0 && m->kind < SHOAL_MSG_KINDS);
  memcpy(header + AT_MAGIC, magic, sizeof magic);
  put(header + AT_KIND, 2, m->kind);
  put(header + AT_FORMAT, 2, m->format);
  put(header + AT_LENGTH, 8, m->payload != NULL ? shoal_blob_length(m->payload) : 0);
  put(header + AT_GENERATION, 8, m->generation);
  put(header + AT_LEASE, 8, m->lease);
  put(header + AT_ROUND, 8, m->round);
  put(header + AT_VERSION, 8, m->version);
  put(header + AT_SHARD, 4, m->shard);
  put(header + AT_SLICE, 4, m->slice);
  put(header + AT_COUNT, 4, m->count);
  put(header + AT_CHECK, 4, check_of(header));
}

static shoal_status check_length(shoal_message_kind kind, uint64_t length, uint64_t payload_max,
                                 shoal_error *err) {
  int rule = kinds[kind].payload;
  uint64_t most = rule == ANY || rule == FLOATS ? payload_max
                  : rule == TEXT                ? SHOAL_TEXT_PAYLOAD_MAX
                                                : (uint64_t)rule;
  uint64_t least = rule > 0 ? (uint64_t)rule : 0;
  if (length >= least && length <= most) return SHOAL_OK;
  return shoal_fail(err, SHOAL_INVALID, "a %s message with a payload of %llu bytes; it may have %llu to %llu",
                    kinds[kind].name, (unsigned long long)length, (unsigned long long)least,
                    (unsigned long long)most);
}

bool shoal_message_may_begin(const uint8_t *bytes, size_t length) {
  return memcmp(bytes, magic, length < 3 ? length : 3) == 0;
}

shoal_status shoal_message_decode(const uint8_t header[SHOAL_HEADER_BYTES], uint64_t payload_max,
                                  shoal_message *out, uint64_t *payload_length, shoal_error *err) {
  if (memcmp(header + AT_MAGIC, magic, 3) != 0)
    return shoal_fail(err, SHOAL_INVALID, "what came is no Shoal message");
  if (header[AT_MAGIC + 3] != SHOAL_WIRE_VERSION)
    return shoal_fail(err, SHOAL_UNSUPPORTED, "a message of wire version %u; this program speaks version %d",
                      header[AT_MAGIC + 3], SHOAL_WIRE_VERSION);
  if (get(header + AT_CHECK, 4) != check_of(header))
    return shoal_fail(err, SHOAL_INVALID, "a message whose header is damaged");
  uint64_t kind = get(header + AT_KIND, 2), format = get(header + AT_FORMAT, 2);
  if (kind == 0 || kind >= SHOAL_MSG_KINDS)
    return shoal_fail(err, SHOAL_INVALID, "a message of unknown kind %u", (unsigned)kind);
  if (format >= SHOAL_WIRE_FORMATS)
    return shoal_fail(err, SHOAL_INVALID, "a %s message in unknown format %u", kinds[kind].name,
                      (unsigned)format);
  *payload_length = get(header + AT_LENGTH, 8);
  *out = (shoal_message){
      .kind = (shoal_message_kind)kind,
      .format = (shoal_wire_format)format,
      .generation = get(header + AT_GENERATION, 8),
      .lease = get(header + AT_LEASE, 8),
      .round = get(header + AT_ROUND, 8),
      .version = get(header + AT_VERSION, 8),
      .shard = (uint32_t)get(header + AT_SHARD, 4),
      .slice = (uint32_t)get(header + AT_SLICE, 4),
      .count = (uint32_t)get(header + AT_COUNT, 4),
  };
  return check_length(out->kind, *payload_length, payload_max, err);
}
