/* device.h: where tensors live and what computes with them.
 *
 * A device is one table: memory, copies in and out, kernels, waiting, a name, what it can do. The engine (nn/) holds
 * pointers to a device's memory and passes them to that device's kernels. It never looks at what they point to, unless
 * the device says that its memory is the host's. An operation (nn/op.h) runs by calling kernels, so it runs on every
 * device; a new device is a folder with its table. What trains with the trainer's own weights (agents, searches, `weights
 * best`, ranks of MPI) reads and writes them as the host's today: that code must use place and gather
 * (engine.h) before it runs on a device with memory of its own.
 *
 * What every device keeps to:
 *   1. A kernel gives the bits that kernels.h states, in the order of sums that it states.
 *   2. All pointers that a kernel gets are memory of the device. Structs such as shoal_gemm, and lists of pointers such
 *      as the parts of sum_parts, are the host's and are read before the kernel returns. Numbers that a kernel finds, a
 *      loss or a sum of squares, go to memory of the device.
 *   3. Kernels and copies that one thread asks for take effect in the order of asking. Copies return when they are done.
 *      With `threads_max` 1 a kernel may return before it is done, and `wait` returns when all kernels are. Other devices'
 *      kernels are done when they return, because threads go on with what others have computed.
 *   4. What kernels answer at once (sizes of scratch, sparse_rows) they know without waiting: a device that would have to
 *      wait in order to look for zeros answers that there are too many.
 *
 * How a GPU fits: take and give are its allocator, copies are its copies on the stream of the calling thread, kernels are
 * launches on that stream, wait is the stream's. A kernel is not told its device: each GPU has a range of addresses of its
 * own, and the first pointer to device memory among its arguments says which GPU is meant. It says `threads_max` 1,
 * because one thread of the host keeps it busy: the engine then has one crew and shares nothing between threads. Tiles are
 * those of the processor, since they decide the bits. Kernels that are called piece after piece (losses, runs of weights
 * in apply) are short for it: it may record them, and launch one for all when the next other kernel or wait comes.
 * How a browser fits: the memory of WebAssembly is the host's, so it is the processor below with kernels compiled for
 * its vectors; threads are its workers.
 *
 * Ownership: a device outlives everything made on it. Threads: any. */
#ifndef SHOAL_DEVICE_DEVICE_H
#define SHOAL_DEVICE_DEVICE_H

#include "base/status.h"
#include "kernels/kernels.h"

typedef struct shoal_device shoal_device;

struct shoal_device {
  const char *name; /* "processor" */
  const shoal_kernels *kernels;
  bool is_host_memory;  /* after wait the host may read and write its memory: nothing needs to be copied */
  uint32_t threads_max; /* so many threads of the host may work for it at once and gain by it */
  /* At least so many bytes, on a boundary of 64; their contents are anything. *bytes is what give needs. NULL: there is
   * no memory. */
  void *(*take)(const shoal_device *device, size_t least_bytes, size_t *bytes);
  void (*give)(const shoal_device *device, void *memory, size_t bytes);
  void (*copy_in)(const shoal_device *device, void *to, const void *from, size_t bytes);
  void (*copy_out)(const shoal_device *device, void *to, const void *from, size_t bytes);
  void (*wait)(const shoal_device *device);
};

/* The processor with the kernels that suit it best, or those that SHOAL_KERNELS names. SHOAL_UNSUPPORTED: the variable
 * names kernels that are unknown or that cannot run here. */
shoal_status shoal_device_processor(shoal_device *out, shoal_error *err);
/* The processor with these kernels. */
shoal_device shoal_device_with(const shoal_kernels *kernels);

#endif
