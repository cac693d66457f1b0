/* safetensors.h: named tensors and text in one file, in the safetensors format.
 *
 *   offset  bytes  what
 *   0       8      n, the header's length, little-endian
 *   8       n      JSON: {"__metadata__": {key: text}, name: {"dtype", "shape", "data_offsets"}}
 *   8 + n   ...    the tensors' bytes, without gaps, in the order of their offsets
 *
 * The header is padded with spaces so that the data starts at a multiple of 64.
 *
 * Ownership: a loaded file owns its bytes; tensors point into them. Threads: none. */
#ifndef SHOAL_NN_SAFETENSORS_H
#define SHOAL_NN_SAFETENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/status.h"

enum { SHOAL_TENSOR_DIMS_MAX = 8, SHOAL_SAFETENSORS_HEADER_MAX = 64 << 20 };

typedef enum shoal_dtype { SHOAL_F32, SHOAL_I64, SHOAL_I32, SHOAL_U8, SHOAL_F64 } shoal_dtype;

typedef struct shoal_tensor {
  const char *name;
  shoal_dtype dtype;
  uint32_t dims_count;
  uint64_t dims[SHOAL_TENSOR_DIMS_MAX];
  const void *data; /* aligned as the file has it, so copy before use as numbers */
  size_t bytes;
} shoal_tensor;

/* A tensor of these dimensions, or of one; its bytes follow from them. */
shoal_tensor shoal_tensor_of(const char *name, shoal_dtype dtype, uint32_t dims_count, const uint32_t *dims,
                             const void *data);
shoal_tensor shoal_tensor_vector(const char *name, shoal_dtype dtype, uint64_t count, const void *data);
/* Whether a tensor, or NULL, has the type and the shape of another. */
bool shoal_tensor_fits(const shoal_tensor *found, const shoal_tensor *wanted);
/* Of the bytes of all of them, one after the other. False without memory. */
bool shoal_tensor_sha256(const shoal_tensor *tensors, size_t count, char out[SHOAL_SHA256_HEX]);

typedef struct shoal_meta {
  const char *key, *value;
} shoal_meta;

/* Written atomically. Names and keys each differ from the others. */
shoal_status shoal_safetensors_save(const char *path, const shoal_tensor *tensors, size_t tensors_count,
                                    const shoal_meta *meta, size_t meta_count, shoal_error *err);

/* The tensors in the order of their data; made by load and parse only. */
typedef struct shoal_safetensors {
  shoal_tensor *tensors;
  size_t tensors_count;
  shoal_meta *meta;
  size_t meta_count;
} shoal_safetensors;

/* From a file, or from bytes (copied). Every offset, size, shape and name is checked. */
shoal_status shoal_safetensors_load(shoal_safetensors **out, const char *path, shoal_error *err);
shoal_status shoal_safetensors_parse(shoal_safetensors **out, const char *name, const uint8_t *bytes,
                                     size_t length, shoal_error *err);
void shoal_safetensors_destroy(shoal_safetensors *file);
/* Whether there is such a file, and metadata of this key in it. */
bool shoal_safetensors_has(const char *path, const char *key);

const shoal_tensor *shoal_safetensors_find(const shoal_safetensors *file, const char *name); /* or NULL */
const char *shoal_safetensors_meta(const shoal_safetensors *file, const char *key);          /* or NULL */

/* A number of JSON in metadata, where null stands for NaN and infinity and is read as NaN. */
struct cJSON;
bool shoal_safetensors_real(const struct cJSON *item, double *out);

#endif
