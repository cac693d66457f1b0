/* codec.h: floats as bytes: exact, or fewer of them.
 *
 *   f32    4 bytes a value, exact
 *   bf16   2 bytes: the upper half of the float, rounded to nearest even
 *   int8   for every block of 1024 a scale of 4 bytes, then 1 byte a value: value = byte * scale
 *   topk   the largest values only, one in SHOAL_TOPK_SHARE but at least one: 4 bytes for how
 *          many there are, then for each its place (4 bytes) and its bf16
 *
 * What a lossy format leaves out is not lost: encode adds `residual` to the values first and
 * leaves in it what was not sent, for the next time (error feedback). A value that is not finite
 * is sent as such, for the receiver to refuse, and leaves nothing.
 *
 * Bytes from outside are checked: a length that does not fit, a place beyond the end, places
 * that do not rise, and values that are not finite are errors. Results are the same on every
 * machine. Ownership: the caller's buffers. Threads: any. */
#ifndef SHOAL_PROTO_CODEC_H
#define SHOAL_PROTO_CODEC_H

#include "proto/message.h"

enum { SHOAL_INT8_BLOCK = 1024, SHOAL_TOPK_SHARE = 50 };

/* The most bytes that `count` values take. */
size_t shoal_codec_bytes(shoal_wire_format format, size_t count);

/* Writes at most that many bytes to `out` and returns how many. residual: count floats, or NULL
 * to forget what is not sent. */
size_t shoal_codec_encode(shoal_wire_format format, size_t count, const float *values, float *residual,
                          uint8_t *out);

shoal_status shoal_codec_decode(shoal_wire_format format, size_t count, const uint8_t *bytes, size_t length,
                                float *values, shoal_error *err);

/* Whether all values are: then decode does not refuse what encode makes of them. */
bool shoal_codec_finite(size_t count, const float *values);

/* "f32", "bf16", "int8", "topk"; false for another word. */
const char *shoal_codec_name(shoal_wire_format format);
bool shoal_codec_named(const char *name, shoal_wire_format *out);

#endif
