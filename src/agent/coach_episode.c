/* coach_episode.c: an episode of a policy's file, as pictures for the page; see coach.h. */
#include <stdlib.h>

#include "agent/coach.h"
#include "base/json.h"

typedef struct player {
  shoal_policy *policy;
  const shoal_env_kind *kind;
  shoal_vector *vector;
  float *memory, *action;
  shoal_canvas canvas;
  shoal_text pictures, rewards;
  uint64_t steps; /* that the policy has learned from */
  double sum;
  uint8_t end;
} player;

static shoal_status open_player(player *p, const char *path, shoal_error *err) {
  shoal_agent_file *file = calloc(1, sizeof *file);
  if (file == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory for an episode");
  shoal_status status = shoal_agent_open(path, file, &p->policy, err);
  if (status == SHOAL_OK) status = shoal_env_need(&p->kind, file->env, err);
  p->steps = file->steps;
  free(file);
  if (status == SHOAL_OK) status = shoal_vector_create(&p->vector, p->kind, 1, err);
  if (status != SHOAL_OK) return status;
  p->memory = calloc(shoal_policy_memory_floats(p->policy) + 1, sizeof *p->memory);
  p->action = calloc(p->kind->action_width, sizeof *p->action);
  if (p->memory && p->action) return SHOAL_OK;
  return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory for an episode");
}

static void close_player(player *p) {
  shoal_policy_destroy(p->policy);
  shoal_vector_destroy(p->vector);
  shoal_canvas_release(&p->canvas);
  shoal_text_release(&p->pictures);
  shoal_text_release(&p->rewards);
  free(p->memory);
  free(p->action);
}

static void add_picture(player *p, shoal_json *pictures, shoal_text *scratch) {
  shoal_text_clear(scratch);
  shoal_canvas_json(&p->canvas, scratch);
  shoal_json_raw(pictures, NULL, scratch->bytes, scratch->length);
}

/* A picture before every step, and one of how it ended: one more than there are rewards. */
static void play(player *p, uint64_t seed, uint32_t pictures_max) {
  shoal_key key = shoal_key_make(seed, SHOAL_FOR_EPISODES, 0, 0);
  shoal_json pictures, rewards;
  shoal_json_init(&pictures, &p->pictures);
  shoal_json_init(&rewards, &p->rewards);
  shoal_json_open(&pictures, NULL, '[');
  shoal_json_open(&rewards, NULL, '[');
  shoal_text picture = {0};
  for (uint32_t step = 0; step + 1 < pictures_max && p->end == SHOAL_GOES_ON; step++) {
    float reward;
    p->kind->draw(shoal_vector_state(p->vector, 0), &p->canvas);
    add_picture(p, &pictures, &picture);
    shoal_policy_act(p->policy, 1, shoal_vector_observations(p->vector), p->memory, key, step, true,
                     p->action, NULL);
    shoal_vector_step(p->vector, p->action, &reward, &p->end);
    shoal_json_real(&rewards, NULL, (double)reward);
    p->sum += (double)reward;
  }
  if (p->end == SHOAL_GOES_ON) p->kind->draw(shoal_vector_state(p->vector, 0), &p->canvas);
  add_picture(p, &pictures, &picture);
  p->pictures.failed |= picture.failed;
  shoal_text_release(&picture);
  shoal_json_close(&pictures, ']');
  shoal_json_close(&rewards, ']');
}

static void write_episode(const player *p, shoal_text *out) {
  static const char *const ends[] = {"goes on", "terminated", "truncated"};
  shoal_json json;
  shoal_json_init(&json, out);
  shoal_json_open(&json, NULL, '{');
  shoal_json_text(&json, "env", p->kind->name);
  shoal_json_int(&json, "steps", (int64_t)p->steps);
  shoal_json_real(&json, "pace", p->kind->pace);
  shoal_json_real(&json, "return", p->sum);
  shoal_json_text(&json, "end", ends[p->end]);
  shoal_json_raw(&json, "rewards", p->rewards.bytes, p->rewards.length);
  shoal_json_raw(&json, "pictures", p->pictures.bytes, p->pictures.length);
  shoal_json_close(&json, '}');
}

shoal_status shoal_coach_episode(const char *path, uint64_t seed, uint32_t pictures_max, shoal_text *json,
                                 shoal_error *err) {
  player p = {0};
  shoal_canvas_init(&p.canvas);
  shoal_status status = open_player(&p, path, err);
  if (status == SHOAL_OK) {
    shoal_vector_reset(p.vector, seed);
    shoal_vector_watch(p.vector, &p.canvas);
    play(&p, seed, pictures_max);
    if (p.pictures.failed || p.rewards.failed || p.canvas.failed)
      status = shoal_fail(err, SHOAL_NO_MEMORY, "out of memory for an episode");
    else
      write_episode(&p, json);
  }
  close_player(&p);
  return status;
}
