/* train.h: the command line of shoal train, for those who write one. */
#ifndef SHOAL_CLI_TRAIN_H
#define SHOAL_CLI_TRAIN_H

#include "base/status.h"

/* Whether shoal train would take these words, as far as can be said without looking at any file. argv[0] is
 * the first word after "train"; --help is not among them. */
shoal_status shoal_train_check(int argc, char **argv, shoal_error *err);

#endif
