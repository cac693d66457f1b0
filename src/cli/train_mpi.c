/* train_mpi.c: see train_mpi.h. The rounds themselves are cluster/ranks.h. */
#include "cli/train_mpi.h"

#include <signal.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "cluster/ranks.h"

struct shoal_train_mpi {
  shoal_fabric fabric;
  shoal_ranks *ranks;
  bool broken;    /* MPI failed: rank 0 may not know why */
  bool forgotten; /* nobody has started this as a rank */
};

static void ignore_signals(void) {
  static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) signal(numbers[i], SIG_IGN);
}

/* Those who start ranks say so in the environment: Open MPI, and others that speak PMI. MPI itself adds to it
 * when it starts, so this is asked before. */
static bool is_started_as_rank(void) {
  static const char *const marks[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE"};
  for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++)
    if (getenv(marks[i])) return true;
  return false;
}

shoal_status shoal_train_mpi_open(shoal_train_mpi **out, shoal_error *err) {
  *out = NULL;
  shoal_train_mpi *mpi = calloc(1, sizeof *mpi);
  if (!mpi) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  bool as_rank = is_started_as_rank();
  shoal_status status = shoal_fabric_open_mpi(&mpi->fabric, err);
  if (status != SHOAL_OK) {
    shoal_error_prefix(err, "--transport mpi: ");
    free(mpi);
    return status;
  }
  mpi->forgotten = mpi->fabric.size == 1 && !as_rank;
  if (mpi->fabric.rank > 0) ignore_signals();
  *out = mpi;
  return SHOAL_OK;
}

bool shoal_train_mpi_leads(const shoal_train_mpi *mpi) { return !mpi || mpi->fabric.rank == 0; }

uint32_t shoal_train_mpi_ranks(const shoal_train_mpi *mpi) { return mpi ? mpi->fabric.size : 1; }

bool shoal_train_mpi_was_forgotten(const shoal_train_mpi *mpi) { return mpi && mpi->forgotten; }

bool shoal_train_mpi_speaks(const shoal_train_mpi *mpi) { return shoal_train_mpi_leads(mpi) || mpi->broken; }

/* What must be the same on all ranks, or the result would be nobody's. */
static void describe(const shoal_task *task, shoal_text *out) {
  shoal_text_addf(out, "%s\n%llu\n%s\n", SHOAL_VERSION,
                  (unsigned long long)task->sources[SHOAL_TRAIN].samples, task->fitted.bytes);
  shoal_model_write(task->model, out);
}

static shoal_status create_ranks(shoal_train_mpi *mpi, const shoal_task *task, shoal_text *job,
                                 shoal_error *err) {
  describe(task, job);
  if (job->failed) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  shoal_ranks_config config = {.graph = task->graph,
                               .trainer = task->trainer,
                               .source = &task->sources[SHOAL_TRAIN],
                               .fabric = &mpi->fabric};
  return shoal_ranks_create(&mpi->ranks, &config, err);
}

shoal_status shoal_train_mpi_join(shoal_train_mpi *mpi, shoal_status prepared, const shoal_task *task,
                                  shoal_rounds *rounds, shoal_error *err) {
  shoal_text job;
  shoal_text_init(&job);
  shoal_status ready = prepared;
  if (ready == SHOAL_OK) ready = create_ranks(mpi, task, &job, err);
  shoal_status status = shoal_ranks_agree(&mpi->fabric, &ready, ready == SHOAL_OK ? job.bytes : "", err);
  shoal_text_release(&job);
  if (status == SHOAL_OK && ready != SHOAL_OK) return ready;
  if (status == SHOAL_OK) status = shoal_ranks_start(mpi->ranks, err);
  mpi->broken = status != SHOAL_OK;
  if (status == SHOAL_OK && mpi->fabric.rank == 0) *rounds = shoal_ranks_rounds(mpi->ranks);
  return status;
}

int shoal_train_mpi_follow(shoal_train_mpi *mpi) {
  shoal_error err;
  shoal_status status = shoal_ranks_follow(mpi->ranks, &err);
  if (status == SHOAL_OK) return SHOAL_EXIT_OK;
  if (status == SHOAL_INVALID) return SHOAL_EXIT_FAILED; /* the loss, of which rank 0 knows */
  mpi->broken = true;
  return shoal_cli_failed("train", &err);
}

void shoal_train_mpi_close(shoal_train_mpi *mpi) {
  if (!mpi) return;
  shoal_error err;
  /* A failure here leaves a fabric that knows it, and ends everybody when it is closed. */
  if (mpi->ranks && mpi->fabric.rank == 0) (void)shoal_ranks_end(mpi->ranks, &err);
  shoal_ranks_destroy(mpi->ranks);
  mpi->fabric.close(mpi->fabric.self);
  free(mpi);
}
