/* processor.c: the processor as a device: its memory is the host's, and kernels are done when they return. */
#include <string.h>

#include "base/block.h"
#include "device/device.h"

/* Large pieces come in huge pages (base/block.h): a matrix is walked down its columns too, and each row would be another
 * small page for the processor to look up. Pages are placed when they are first written, so what one thread works with
 * is near the core that it runs on. */
static void *take(const shoal_device *device, size_t least_bytes, size_t *bytes) {
  (void)device;
  return shoal_block_take(least_bytes, bytes);
}

static void give(const shoal_device *device, void *memory, size_t bytes) {
  (void)device;
  shoal_block_give(memory, bytes);
}

static void copy(const shoal_device *device, void *to, const void *from, size_t bytes) {
  (void)device;
  memcpy(to, from, bytes);
}

static void wait(const shoal_device *device) { (void)device; }

shoal_device shoal_device_with(const shoal_kernels *kernels) {
  return (shoal_device){.name = "processor",
                        .kernels = kernels,
                        .is_host_memory = true,
                        .threads_max = UINT32_MAX,
                        .take = take,
                        .give = give,
                        .copy_in = copy,
                        .copy_out = copy,
                        .wait = wait};
}

shoal_status shoal_device_processor(shoal_device *out, shoal_error *err) {
  const shoal_kernels *kernels = shoal_kernels_get();
  *out = shoal_device_with(kernels);
  if (kernels != NULL) return SHOAL_OK;
  return shoal_fail(
      err, SHOAL_UNSUPPORTED,
      "SHOAL_KERNELS names kernels that are unknown or that this processor cannot run: unset it, or name "
      "baseline, avx2, avx512 or neon");
}
