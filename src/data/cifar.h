/* cifar.h: the binary version of CIFAR-10.
 *
 * data_batch_1.bin to data_batch_5.bin and test_batch.bin hold records of 3,073 bytes: the
 * label, 0 to 9, then 32 x 32 bytes of red, of green and of blue. */
#ifndef SHOAL_DATA_CIFAR_H
#define SHOAL_DATA_CIFAR_H

#include "data/images.h"
#include "data/manifest.h"

extern const char *const shoal_cifar_names[10];

/* Its files are cut into chunks between records. */
void shoal_cifar_cut(shoal_cut *cut);

/* True when the folder holds data_batch_1.bin. */
bool shoal_cifar_is_folder(const char *folder);
/* With a store labels are not looked at, since they are not here yet. */
shoal_status shoal_cifar_open(shoal_images *images, const char *folder, const shoal_chunk_store *store,
                              shoal_error *err);

#endif
