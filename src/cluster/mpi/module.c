/* module.c: the fabric on MPI, as a library of its own that the program loads. See cluster/fabric.h.
 *
 * Every call posts what it has to receive, then what it has to send, and waits for all of it. MPI's own
 * waits turn round and round on a processor, which pays between two halves of a round and hurts while
 * rank 0 evaluates or saves: other ranks' threads may need that processor. So waiting is done here:
 * a while at full speed, then giving way, then asleep for a moment at a time.
 *
 * Pieces above a gigabyte are cut, since MPI counts in ints. */
#include <mpi.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "cluster/fabric.h"

enum { CHUNK_BYTES = 1 << 30, TAG = 0 };

/* How long a wait spins, then yields; after that it sleeps. */
static const double SPIN_S = 0.0002, YIELD_S = 0.01;
static const struct timespec NAP = {.tv_nsec = 200 * 1000};

typedef struct fabric {
  int rank, size;
  bool failed;
  MPI_Request *requests;
  int requests_count, requests_max;
} fabric;

/* There is one MPI in a process, so there is one of these. */
static fabric own;

static shoal_status failed(fabric *f, int code, const char *doing, shoal_error *err) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) length = 0;
  f->failed = true;
  return shoal_fail(err, SHOAL_IO, "MPI, rank %d of %d, %s: %.*s", f->rank, f->size, doing, length, text);
}

/* ---- waiting ---- */

static shoal_status wait_for(fabric *f, const char *doing, shoal_error *err) {
  double started = MPI_Wtime();
  for (;;) {
    int done = 0;
    int code = MPI_Testall(f->requests_count, f->requests, &done, MPI_STATUSES_IGNORE);
    if (code != MPI_SUCCESS) return failed(f, code, doing, err);
    if (done) break;
    double waited = MPI_Wtime() - started;
    if (waited > YIELD_S)
      nanosleep(&NAP, NULL);
    else if (waited > SPIN_S)
      sched_yield();
  }
  f->requests_count = 0;
  return SHOAL_OK;
}

static MPI_Request *next_request(fabric *f) {
  if (f->requests_count == f->requests_max) {
    int most = f->requests_max == 0 ? 64 : 2 * f->requests_max;
    MPI_Request *larger = realloc(f->requests, (size_t)most * sizeof *larger);
    if (larger == NULL) return NULL;
    f->requests = larger;
    f->requests_max = most;
  }
  return &f->requests[f->requests_count];
}

/* ---- calls ---- */

typedef int (*post)(char *bytes, int length, int rank, MPI_Request *request);

static int post_send(char *bytes, int length, int rank, MPI_Request *request) {
  return MPI_Isend(bytes, length, MPI_BYTE, rank, TAG, MPI_COMM_WORLD, request);
}

static int post_receive(char *bytes, int length, int rank, MPI_Request *request) {
  return MPI_Irecv(bytes, length, MPI_BYTE, rank, TAG, MPI_COMM_WORLD, request);
}

static int post_broadcast(char *bytes, int length, int rank, MPI_Request *request) {
  return MPI_Ibcast(bytes, length, MPI_BYTE, rank, MPI_COMM_WORLD, request);
}

/* Posts a piece in chunks; `doing` is what a failure was about. */
static shoal_status post_piece(fabric *f, post how, const shoal_piece *piece, const char *doing,
                               shoal_error *err) {
  char *bytes = piece->bytes;
  for (size_t left = piece->length; left > 0;) {
    size_t length = left < CHUNK_BYTES ? left : CHUNK_BYTES;
    MPI_Request *request = next_request(f);
    if (request == NULL) {
      f->failed = true;
      return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory to send to other ranks");
    }
    int code = how(bytes, (int)length, (int)piece->rank, request);
    if (code != MPI_SUCCESS) return failed(f, code, doing, err);
    f->requests_count++;
    bytes += length;
    left -= length;
  }
  return SHOAL_OK;
}

static shoal_status exchange(void *self, const shoal_piece *sends, uint32_t sends_count,
                             const shoal_piece *receives, uint32_t receives_count, shoal_error *err) {
  fabric *f = self;
  shoal_status status = SHOAL_OK;
  for (uint32_t i = 0; i < receives_count && status == SHOAL_OK; i++)
    status = post_piece(f, post_receive, &receives[i], "receiving", err);
  for (uint32_t i = 0; i < sends_count && status == SHOAL_OK; i++)
    status = post_piece(f, post_send, &sends[i], "sending", err);
  return status == SHOAL_OK ? wait_for(f, "exchanging with other ranks", err) : status;
}

static shoal_status broadcast(void *self, void *bytes, size_t length, shoal_error *err) {
  fabric *f = self;
  const shoal_piece piece = {.rank = 0, .bytes = bytes, .length = length};
  shoal_status status = post_piece(f, post_broadcast, &piece, "broadcasting", err);
  return status == SHOAL_OK ? wait_for(f, "waiting for rank 0", err) : status;
}

static void close_fabric(void *self) {
  fabric *f = self;
  free(f->requests);
  f->requests = NULL;
  if (f->failed) MPI_Abort(MPI_COMM_WORLD, 1);
  MPI_Finalize();
}

/* Only the thread that opens will call. Errors are returned to us, where MPI can. */
static shoal_status open_fabric(shoal_fabric *out, shoal_error *err) {
  int level;
  int code = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level);
  if (code == MPI_SUCCESS) code = MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (code == MPI_SUCCESS) code = MPI_Comm_rank(MPI_COMM_WORLD, &own.rank);
  if (code == MPI_SUCCESS) code = MPI_Comm_size(MPI_COMM_WORLD, &own.size);
  if (code != MPI_SUCCESS) return failed(&own, code, "starting", err);
  *out = (shoal_fabric){.self = &own,
                        .rank = (uint32_t)own.rank,
                        .size = (uint32_t)own.size,
                        .exchange = exchange,
                        .broadcast = broadcast,
                        .close = close_fabric};
  return SHOAL_OK;
}

extern __attribute__((visibility("default"))) const shoal_fabric_module shoal_fabric_module_mpi;
const shoal_fabric_module shoal_fabric_module_mpi = {.version = SHOAL_FABRIC_VERSION, .open = open_fabric};
