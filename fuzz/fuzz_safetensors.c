/* fuzz_safetensors.c: any bytes are refused, or make tensors that lie inside the file. */
#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"
#include "nn/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
  shoal_safetensors *file;
  shoal_error err;
  if (shoal_safetensors_parse(&file, "fuzz", bytes, length, &err) != SHOAL_OK) return 0;
  uint64_t sum = 0;
  for (size_t i = 0; i < file->tensors_count; i++) {
    const shoal_tensor *tensor = &file->tensors[i];
    for (size_t b = 0; b < tensor->bytes; b++) sum += ((const uint8_t *)tensor->data)[b];
    SHOAL_ASSERT(shoal_safetensors_find(file, tensor->name) == tensor);
  }
  for (size_t i = 0; i < file->meta_count; i++)
    SHOAL_ASSERT(shoal_safetensors_meta(file, file->meta[i].key) == file->meta[i].value);
  SHOAL_ASSERT(sum <= 255 * (uint64_t)length); /* every byte belongs to one tensor at most */
  shoal_safetensors_destroy(file);
  return 0;
}
