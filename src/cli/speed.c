/* speed.c: see speed.h. */
#include "cli/speed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/version.h"
#include "cli/networks.h"
#include "data/noise.h"
#include "nn/trainer.h"

enum { BATCH = 64, ROUNDS_IN_EPOCH = 1000, FILE_MAX = 512, NAME_MAX_BYTES = 128, WARM_UP_ROUNDS = 2 };
static const double MEASURE_S = 0.25, KEPT_S = 86400;

/* ---- what was kept ---- */

/* What the system calls the processor; "" where it does not. */
static void read_processor(char out[NAME_MAX_BYTES]) {
  char line[FILE_MAX];
  FILE *file = fopen("/proc/cpuinfo", "r");
  out[0] = 0;
  while (file && !out[0] && fgets(line, sizeof line, file)) {
    const char *colon = strncmp(line, "model name", 10) == 0 ? strchr(line, ':') : NULL;
    if (colon) shoal_text_plain(out, NAME_MAX_BYTES, colon + 1, strcspn(colon + 1, "\n"));
  }
  if (file) fclose(file);
}

static void write_key(uint32_t threads, char out[FILE_MAX]) {
  char processor[NAME_MAX_BYTES], host[NAME_MAX_BYTES] = "";
  read_processor(processor);
  gethostname(host, sizeof host - 1);
  snprintf(out, FILE_MAX, "%s %s %u %s%s: ", SHOAL_VERSION, shoal_kernels_get()->name, threads, host,
           processor);
}

static bool is_recent(const char *file) {
  struct stat about;
  if (stat(file, &about) != 0) return false;
  double age = shoal_clock_wall_seconds() - (double)about.st_mtime;
  return age > -KEPT_S && age < KEPT_S;
}

static bool read_kept(const char *file, uint32_t threads, double *batches_per_s) {
  char key[FILE_MAX];
  uint8_t *bytes;
  size_t length;
  write_key(threads, key);
  if (!is_recent(file) || shoal_file_read(file, FILE_MAX, false, &bytes, &length, NULL) != SHOAL_OK)
    return false;
  size_t key_length = strlen(key);
  const char *number = (const char *)bytes + key_length;
  bool good = length > key_length && memcmp(bytes, key, key_length) == 0 &&
              shoal_read_f64(number, strcspn(number, "\n"), batches_per_s) && *batches_per_s > 0;
  free(bytes);
  return good;
}

/* Where it cannot be kept, it is measured again next time. */
static void keep(const char *file, uint32_t threads, double batches_per_s) {
  char text[FILE_MAX];
  write_key(threads, text);
  size_t length = strlen(text);
  length += (size_t)snprintf(text + length, sizeof text - length, "%.6g\n", batches_per_s);
  (void)shoal_file_write(file, text, length, NULL);
}

/* ---- measuring ---- */

static void fetch(const void *self, uint64_t epoch, uint64_t first, uint32_t n, const shoal_batch *into) {
  (void)epoch;
  shoal_noise_fetch(self, first, n, into);
}

static shoal_status train(shoal_trainer *trainer, const shoal_source *source, double *batches_per_s,
                          shoal_error *err) {
  shoal_result result;
  shoal_status status = SHOAL_OK;
  for (int i = 0; i < WARM_UP_ROUNDS && status == SHOAL_OK; i++)
    status = shoal_trainer_round(trainer, source, &result, err);
  double start = shoal_clock_seconds(), now = start;
  uint64_t rounds = 0;
  while (status == SHOAL_OK && now - start < MEASURE_S) {
    status = shoal_trainer_round(trainer, source, &result, err);
    now = shoal_clock_seconds();
    rounds++;
  }
  *batches_per_s = (double)rounds / (now - start);
  return status;
}

static shoal_status measure(uint32_t threads, double *batches_per_s, shoal_error *err) {
  shoal_model *model = NULL;
  shoal_graph *graph = NULL;
  shoal_trainer *trainer = NULL;
  shoal_noise *noise = NULL;
  shoal_status status = shoal_network_named(&model, "lenet5", err);
  if (status == SHOAL_OK) status = shoal_graph_create(&graph, model, err);
  shoal_trainer_config config = {
      .graph = graph, .threads = threads, .batch = BATCH, .samples = (uint64_t)BATCH * ROUNDS_IN_EPOCH};
  if (status == SHOAL_OK) status = shoal_trainer_create(&trainer, &config, err);
  if (status == SHOAL_OK) status = shoal_noise_create(&noise, model, err);
  if (status == SHOAL_OK) {
    shoal_source source = {.self = noise, .samples = config.samples, .fetch = fetch};
    status = train(trainer, &source, batches_per_s, err);
  }
  shoal_trainer_destroy(trainer);
  shoal_noise_destroy(noise);
  shoal_graph_destroy(graph);
  shoal_model_destroy(model);
  return status;
}

shoal_status shoal_speed_measure(const char *file, uint32_t threads, double *batches_per_s,
                                 shoal_error *err) {
  if (file && read_kept(file, threads, batches_per_s)) return SHOAL_OK;
  shoal_status status = measure(threads, batches_per_s, err);
  if (status == SHOAL_OK && file) keep(file, threads, *batches_per_s);
  return status;
}
