/* found.c: see found.h. */
#include "cli/found.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/human.h"
#include "base/json_at.h"
#include "cli/remote.h"

/* Of the time, or where it has none of the trials. */
static double share_of(const shoal_found *found, const cJSON *job) {
  const cJSON *spec = cJSON_GetObjectItemCaseSensitive(job, "spec");
  double budget = shoal_number_at(spec, "budget_s"), trials = shoal_number_at(spec, "trials");
  double share = NAN;
  if (strcmp(shoal_text_at(job, "state"), "finished") == 0) return 1;
  if (budget > 0)
    share = found->spent_s / budget;
  else if (trials > 0)
    share = (double)found->trials / trials;
  return isfinite(share) ? fmin(1, fmax(0, share)) : 0;
}

void shoal_found_read(shoal_found *out, const cJSON *job) {
  const cJSON *search = cJSON_GetObjectItemCaseSensitive(job, "search");
  *out = (shoal_found){.is_search = strcmp(shoal_text_at(job, "kind"), "search") == 0};
  if (!out->is_search) return;
  out->trials = shoal_whole_at(search, "trials");
  out->best = shoal_whole_at(search, "best");
  out->score = out->best > 0 ? shoal_number_at(search, "best_score") : NAN;
  /* One that goes on has the test of the model before. */
  bool is_over = strcmp(shoal_text_at(search, "phase"), "ended") == 0;
  out->test = is_over ? shoal_number_at(search, "test_score") : NAN;
  out->expected = is_over ? shoal_number_at(search, "estimate") : NAN;
  out->higher_is_better = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(search, "higher_is_better"));
  shoal_plain_at(search, "metric", out->metric, sizeof out->metric);
  out->spent_s = shoal_number_at(search, "spent_s");
  out->left_s = shoal_number_at(search, "left_s");
  out->share = share_of(out, job);
}

const char *shoal_found_worth(const shoal_found *found, char *out, size_t size) {
  bool tested = isfinite(found->test), expected = isfinite(found->expected);
  double worth = tested ? found->test : expected ? found->expected : found->score;
  const char *rows = tested ? "test" : expected ? "expected" : "validation";
  snprintf(out, size, "-");
  if (isfinite(worth)) snprintf(out, size, "%s %s %s", rows, found->metric, shoal_human_number(worth).text);
  return out;
}

bool shoal_found_is_better(const shoal_found *found, double score) {
  if (!isfinite(score)) return false;
  if (!isfinite(found->score)) return true;
  return found->higher_is_better ? score > found->score : score < found->score;
}
