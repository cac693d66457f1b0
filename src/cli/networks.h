/* networks.h: the networks that are measured: known by a name, or read from a file.
 *
 * Ownership: the model is the caller's. Threads: any. */
#ifndef SHOAL_CLI_NETWORKS_H
#define SHOAL_CLI_NETWORKS_H

#include "nn/model.h"

/* lenet5, mlp, lstm-ptb, or the file of a model. */
shoal_status shoal_network_named(shoal_model **out, const char *name, shoal_error *err);

#endif
