/* fuzz_job.c: any bytes as the job that a chief sends. What is taken writes the same job again, and
 * its numbers can be reckoned with. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "cluster/job.h"
#include "nn/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void check_job(const shoal_job *job) {
  SHOAL_ASSERT(job->owners_count > 0 && job->owners_count <= SHOAL_OWNERS_MAX);
  SHOAL_ASSERT(job->parts > 0 && job->parts <= SHOAL_SHARDS_MAX);
  SHOAL_ASSERT(job->rounds > 0 && job->rounds <= job->inner_rounds && job->samples > 0);
  SHOAL_ASSERT(strlen(job->fitted_sha256) + 1 == sizeof job->fitted_sha256);
  for (uint32_t s = 0; s < job->owners_count; s++)
    SHOAL_ASSERT(memchr(job->owners[s], 0, SHOAL_ADDRESS_MAX) != NULL);
  uint64_t first, version;
  shoal_job_unit(job, UINT64_MAX, job->parts - 1, &first);
  shoal_job_version(job, shoal_job_step(job, UINT32_MAX), &version);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
  shoal_job job, again;
  shoal_error err = {0};
  /* Where no zero byte is behind them, as in a message. */
  char *text = malloc(length + 1);
  SHOAL_ASSERT(text != NULL);
  memcpy(text, bytes, length);
  text[length] = '}';
  if (shoal_job_parse(&job, text, length, &err) != SHOAL_OK) {
    SHOAL_ASSERT(err.text[0] != 0 && job.owners == NULL);
    free(text);
    return 0;
  }
  free(text);
  check_job(&job);
  shoal_text json = {0};
  shoal_job_write(&job, &json);
  SHOAL_ASSERT(!json.failed);
  SHOAL_ASSERT(shoal_job_parse(&again, json.bytes, json.length, &err) == SHOAL_OK);
  SHOAL_ASSERT(shoal_job_digest(&job) == shoal_job_digest(&again));
  shoal_text_release(&json);
  shoal_job_release(&job);
  shoal_job_release(&again);
  return 0;
}
