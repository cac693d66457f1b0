/* train_mpi.h: shoal train --transport mpi: this process is one of the ranks that mpirun started.
 *
 * All ranks run the same command. Rank 0 leads: it alone reads and writes checkpoints, prints, and runs
 * the training loop, on the rounds that join gives it. The others prepare the same task, quietly, and
 * follow. They ignore the signals that ask a process to end, because mpirun sends them to all ranks and it
 * is rank 0 that saves the state and tells the others; when rank 0 dies, mpirun kills them.
 *
 *   open    first of all: who leads is known from then on
 *   join    when the task is ready, or could not be made ready: all ranks go on, or none
 *   follow  all but rank 0
 *   close   before the task is closed
 *
 * Functions that take the handle also take NULL: a training without MPI, which leads itself.
 *
 * Ownership: open, then close; the task is borrowed from join to close. Threads: one. */
#ifndef SHOAL_CLI_TRAIN_MPI_H
#define SHOAL_CLI_TRAIN_MPI_H

#include "nn/rounds.h"
#include "train/task.h"

typedef struct shoal_train_mpi shoal_train_mpi;

shoal_status shoal_train_mpi_open(shoal_train_mpi **out, shoal_error *err);

/* Whether this is rank 0. */
bool shoal_train_mpi_leads(const shoal_train_mpi *mpi);
uint32_t shoal_train_mpi_ranks(const shoal_train_mpi *mpi); /* how many there are */
/* Whether there is one rank only, because nobody has started this with mpirun. */
bool shoal_train_mpi_was_forgotten(const shoal_train_mpi *mpi);
/* Whether an error is this rank's to print: rank 0's, and what rank 0 cannot have heard of. */
bool shoal_train_mpi_speaks(const shoal_train_mpi *mpi);

/* `prepared` is how this rank's preparations went, with the reason in err. Rank 0's state, from a
 * checkpoint or fresh, becomes that of all, and *rounds (rank 0) makes the rounds. */
shoal_status shoal_train_mpi_join(shoal_train_mpi *mpi, shoal_status prepared, const shoal_task *task,
                                  shoal_rounds *rounds, shoal_error *err);

/* Takes part until rank 0 closes, or the loss is not a number. Prints what has to be said and returns the
 * exit status. */
int shoal_train_mpi_follow(shoal_train_mpi *mpi);

/* After a failure of MPI it does not return: all ranks end. */
void shoal_train_mpi_close(shoal_train_mpi *mpi);

#endif
