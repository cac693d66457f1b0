/* played.c: see played.h. */
#include "cli/played.h"

#include <math.h>
#include <string.h>

#include "base/json_at.h"
#include "cli/remote.h"

double shoal_played_left(double seconds_all, double seconds, uint64_t steps_all, uint64_t steps,
                         double steps_per_second) {
  double left = seconds_all > 0 ? seconds_all - seconds : INFINITY;
  if (steps_all > steps && steps_per_second > 0)
    left = fmin(left, (double)(steps_all - steps) / steps_per_second);
  return isfinite(left) ? fmax(left, 0) : NAN;
}

/* Of the steps or of the time, whichever is nearer to its end. */
static double share_of(const shoal_played *p, double seconds_all, uint64_t steps_all, const cJSON *job) {
  double share = 0;
  if (strcmp(shoal_text_at(job, "state"), "finished") == 0) return 1;
  if (steps_all > 0) share = (double)p->steps / (double)steps_all;
  if (seconds_all > 0 && isfinite(p->seconds)) share = fmax(share, p->seconds / seconds_all);
  return fmin(1, share);
}

static void read_agent(shoal_played *out, const cJSON *agent) {
  out->steps = shoal_whole_at(agent, "steps");
  out->episodes = shoal_whole_at(agent, "episodes");
  out->refused = shoal_whole_at(agent, "refused");
  out->lost = shoal_whole_at(agent, "lost");
  out->actors = shoal_whole_at(agent, "actors");
  out->seconds = shoal_number_at(agent, "seconds");
  out->steps_per_second = shoal_number_at(agent, "steps_per_second");
  out->lag = shoal_number_at(agent, "lag");
  out->return_mean = shoal_number_at(agent, "return_mean");
  out->return_deviation = shoal_number_at(agent, "return_deviation");
  out->score = shoal_number_at(agent, "score");
  out->score_deviation = shoal_number_at(agent, "score_deviation");
  out->goal = shoal_number_at(agent, "goal");
  out->solved = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(agent, "solved"));
}

void shoal_played_read(shoal_played *out, const cJSON *job) {
  const cJSON *spec = cJSON_GetObjectItemCaseSensitive(job, "spec");
  const cJSON *agent = cJSON_GetObjectItemCaseSensitive(job, "agent");
  *out = (shoal_played){.is_agent = strcmp(shoal_text_at(job, "kind"), "agent") == 0};
  if (!out->is_agent) return;
  shoal_plain_at(spec, "env", out->env, sizeof out->env);
  shoal_plain_at(spec, "algorithm", out->algorithm, sizeof out->algorithm);
  out->runs = strcmp(shoal_text_at(job, "state"), "running") == 0;
  read_agent(out, agent);
  double seconds = shoal_number_at(spec, "seconds");
  uint64_t steps = shoal_whole_at(agent, "steps_all");
  out->share = share_of(out, seconds, steps, job);
  out->left_s = shoal_played_left(seconds, out->seconds, steps, out->steps, out->steps_per_second);
  out->until_solved = !cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(spec, "until_solved"));
}

shoal_human shoal_played_number(double value) {
  static const double whole_max = 1e15; /* above, all are */
  shoal_human human = {.text = "-"};
  double size = fabs(value);
  if (size < whole_max && size == floor(size)) {
    shoal_human digits = shoal_human_count((uint64_t)size);
    if (value >= 0) return digits;
    memcpy(human.text + 1, digits.text, sizeof human.text - 1);
    return human;
  }
  snprintf(human.text, sizeof human.text, size >= 10 && size < whole_max ? "%.1f" : "%.3g", value);
  return human;
}

void shoal_played_add(shoal_text *out, double mean, double deviation) {
  shoal_text_addf(out, " %s", shoal_played_number(mean).text);
  if (isfinite(deviation)) shoal_text_addf(out, " +- %s", shoal_played_number(deviation).text);
}

static void add_line(shoal_text *line, const shoal_played *p) {
  shoal_text_addf(line, "%s steps", shoal_human_count(p->steps).text);
  if (isfinite(p->steps_per_second))
    shoal_text_addf(line, "  %s/s", shoal_human_count((uint64_t)fmax(0, p->steps_per_second)).text);
  if (isfinite(p->return_mean)) {
    shoal_text_addf(line, "  return");
    shoal_played_add(line, p->return_mean, p->return_deviation);
  }
  if (isfinite(p->lag) && p->lag > 0) shoal_text_addf(line, "  lag %.1f", p->lag);
  if (p->actors > 0)
    shoal_text_addf(line, "  %s actor%s", shoal_human_count(p->actors).text, p->actors == 1 ? "" : "s");
  if (isfinite(p->left_s))
    shoal_text_addf(line, "  %s left%s", shoal_human_seconds(p->left_s).text,
                    p->until_solved ? " at most" : "");
}

void shoal_played_show(shoal_progress *progress, const shoal_played *p, double now) {
  if (!shoal_progress_due(progress, now)) return;
  shoal_text line;
  shoal_text_init(&line);
  add_line(&line, p);
  int width = (int)shoal_terminal_of(progress->stream).width - 1;
  if (!line.failed && progress->is_terminal)
    fprintf(progress->stream, "\r%.*s\x1b[K", width, line.bytes);
  else if (!line.failed)
    fprintf(progress->stream, "%s\n", line.bytes);
  fflush(progress->stream);
  progress->drawn = progress->is_terminal;
  progress->last = now;
  shoal_text_release(&line);
}

double shoal_played_worth(const shoal_played *p) {
  bool by_score = isfinite(p->score) && (p->solved || !p->runs || !isfinite(p->return_mean));
  return by_score ? p->score : p->return_mean;
}
