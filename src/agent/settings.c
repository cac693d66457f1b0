/* settings.c: what may be set in a training of an agent: names, ranges, and what is usual. */
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "agent/learner_internal.h"
#include "base/human.h"

/* ---- algorithms --------------------------------------------------------------------- */

static const struct {
  const char *name, *says;
  const shoal_algorithm_ops *ops;
  void (*defaults)(const shoal_env_kind *kind, shoal_agent_settings *settings);
} algorithms[SHOAL_ALGORITHMS] = {
    [SHOAL_PPO] = {"ppo", "proximal policy optimisation: actor and critic, a few epochs a round", &shoal_ppo,
                   shoal_ppo_defaults},
    [SHOAL_VTRACE] = {"vtrace", "actor and critic that learn from actors which lag behind", &shoal_vtrace,
                      shoal_vtrace_defaults},
    [SHOAL_DQN] = {"dqn", "values of choices, from a memory: double, duelling, n steps", &shoal_dqn,
                   shoal_dqn_defaults},
    [SHOAL_SAC] = {"sac", "soft actor-critic, from a memory: for real-valued actions", &shoal_sac,
                   shoal_sac_defaults},
    [SHOAL_CLONE] = {"clone", "imitates the best episodes so far", &shoal_clone, shoal_clone_defaults},
};

const char *shoal_algorithm_name(shoal_algorithm algorithm) { return algorithms[algorithm].name; }
const char *shoal_algorithm_says(shoal_algorithm algorithm) { return algorithms[algorithm].says; }
const shoal_algorithm_ops *shoal_algorithm_ops_of(shoal_algorithm algorithm) {
  return algorithms[algorithm].ops;
}

void shoal_algorithm_names(char out[SHOAL_ALGORITHM_NAMES_MAX]) {
  int used = 0;
  for (int i = 0; i < SHOAL_ALGORITHMS && used < SHOAL_ALGORITHM_NAMES_MAX; i++)
    used += snprintf(out + used, SHOAL_ALGORITHM_NAMES_MAX - (size_t)used, "%s%s",
                     i == 0                      ? ""
                     : i == SHOAL_ALGORITHMS - 1 ? " or "
                                                 : ", ",
                     algorithms[i].name);
}

bool shoal_algorithm_parse(const char *name, shoal_algorithm *out) {
  for (int i = 0; i < SHOAL_ALGORITHMS; i++)
    if (strcmp(algorithms[i].name, name) == 0) {
      *out = (shoal_algorithm)i;
      return true;
    }
  return false;
}

/* ---- the table ---------------------------------------------------------------------- */

typedef enum setting_type { COUNT, LONG_COUNT, REAL, YES_NO } setting_type;

/* Whom a setting is of; with others it would do nothing. */
enum {
  DQN = 1 << SHOAL_DQN,
  SAC = 1 << SHOAL_SAC,
  CLONE = 1 << SHOAL_CLONE,
  CRITICS = 1 << SHOAL_PPO | 1 << SHOAL_VTRACE,
  MEMORIES = DQN | SAC,
  ALL = CRITICS | MEMORIES | CLONE,
};

static const struct setting {
  const char *name;
  size_t offset;
  setting_type type;
  double least, most;
  unsigned algorithms;
} table[] = {
#define SETTING(name, type, least, most, algorithms) \
  { #name, offsetof(shoal_agent_settings, name), type, least, most, algorithms }
    SETTING(streams, COUNT, 1, 1024, ALL),
    SETTING(envs, COUNT, 1, 4096, ALL),
    SETTING(steps, COUNT, 1, 65536, ALL),
    SETTING(lag, COUNT, 0, 7, ALL),
    SETTING(lag_max, COUNT, 0, 1e6, ALL),
    SETTING(budget, LONG_COUNT, 1, 1e15, ALL),
    SETTING(discount, REAL, 0, 1, CRITICS | MEMORIES),
    SETTING(rate, REAL, 0, 10, ALL),
    SETTING(clip, REAL, 0, 1e9, ALL),
    SETTING(anneal, YES_NO, 0, 1, ALL),
    SETTING(scale_observations, YES_NO, 0, 1, ALL),
    SETTING(scale_rewards, YES_NO, 0, 1, CRITICS | MEMORIES),
    SETTING(lambda, REAL, 0, 1, CRITICS),
    SETTING(entropy, REAL, 0, 100, CRITICS | SAC),
    SETTING(value_weight, REAL, 0, 1e6, CRITICS),
    SETTING(ratio_clip, REAL, 1e-3, 10, CRITICS),
    SETTING(epochs, COUNT, 1, 1000, CRITICS | CLONE),
    SETTING(minibatch, COUNT, 1, 1 << 20, CRITICS | CLONE),
    SETTING(memory, COUNT, 1, 100000000, MEMORIES),
    SETTING(batch, COUNT, 1, 1 << 20, MEMORIES),
    SETTING(warmup, COUNT, 0, 100000000, MEMORIES),
    SETTING(n_step, COUNT, 1, 1000, MEMORIES),
    SETTING(updates, REAL, 0, 1000, MEMORIES),
    SETTING(follow, REAL, 0, 1e6, MEMORIES),
    SETTING(epsilon_from, REAL, 0, 1, DQN),
    SETTING(epsilon_to, REAL, 0, 1, DQN),
    SETTING(epsilon_steps, REAL, 0, 1e12, DQN),
    SETTING(hold, COUNT, 1, 100000, MEMORIES),
    SETTING(duelling, YES_NO, 0, 1, DQN),
    SETTING(keep_share, REAL, -1000, 1000, CLONE),
    SETTING(keep_steps, COUNT, 1, 100000000, CLONE),
#undef SETTING
};
enum { SETTINGS_COUNT = sizeof table / sizeof table[0], BODY_LINE_MAX = 256 };
static const double ROUND_ROWS_MAX = 1 << 24;

static double value_of(const shoal_agent_settings *settings, const struct setting *setting) {
  const void *at = (const char *)settings + setting->offset;
  switch (setting->type) {
  case COUNT: return *(const uint32_t *)at;
  case LONG_COUNT: return (double)*(const uint64_t *)at;
  case REAL: return *(const float *)at;
  case YES_NO: return *(const bool *)at;
  }
  return NAN;
}

static void put_value(shoal_agent_settings *settings, const struct setting *setting, double value) {
  void *at = (char *)settings + setting->offset;
  switch (setting->type) {
  case COUNT: *(uint32_t *)at = (uint32_t)value; return;
  case LONG_COUNT: *(uint64_t *)at = (uint64_t)value; return;
  case REAL: *(float *)at = (float)value; return;
  case YES_NO: *(bool *)at = value != 0; return;
  }
}

static bool read_value(const struct setting *setting, const char *word, double *out) {
  size_t length = strlen(word);
  uint64_t whole;
  switch (setting->type) {
  case COUNT:
  case LONG_COUNT:
    if (!shoal_read_u64(word, length, &whole)) return false;
    *out = (double)whole;
    return true;
  case REAL: return shoal_read_f64(word, length, out);
  case YES_NO: *out = strcmp(word, "yes") == 0; return *out != 0 || strcmp(word, "no") == 0;
  }
  return false;
}

/* Of a range: 1,048,576 and not 1.04858e+06. */
static shoal_human bound(double value) {
  if (value >= 1000 && value == floor(value)) return shoal_human_count((uint64_t)value);
  shoal_human human;
  snprintf(human.text, sizeof human.text, "%g", value);
  return human;
}

static shoal_status out_of_range(const struct setting *setting, const char *value, shoal_error *err) {
  return shoal_fail(err, SHOAL_INVALID, "%s: %.64s is not within %s to %s", setting->name, value,
                    bound(setting->least).text, bound(setting->most).text);
}

/* "dqn and sac", of a mask. */
static void name_algorithms(unsigned mask, char *out, size_t size) {
  unsigned left = mask;
  size_t used = 0;
  out[0] = 0;
  for (int i = 0; i < SHOAL_ALGORITHMS; i++) {
    if (!(mask & 1u << i)) continue;
    left &= ~(1u << i);
    const char *between = used == 0 ? "" : left == 0 ? " and " : ", ";
    int length = snprintf(out + used, size - used, "%s%s", between, algorithms[i].name);
    if (length < 0 || (size_t)length >= size - used) return;
    used += (size_t)length;
  }
}

static shoal_status of_no_use(const shoal_agent_settings *settings, const struct setting *setting,
                              shoal_error *err) {
  static const char *const twins[2] = {"batch", "minibatch"}; /* what the one has, the other calls so */
  char names[64];
  const char *twin = strcmp(setting->name, twins[0]) == 0   ? twins[1]
                     : strcmp(setting->name, twins[1]) == 0 ? twins[0]
                                                            : NULL;
  name_algorithms(setting->algorithms, names, sizeof names);
  return shoal_fail(err, SHOAL_INVALID, "%s: is a setting of %s, and does nothing with %s%s%s%s",
                    setting->name, names, algorithms[settings->algorithm].name,
                    twin ? "; did you mean '" : "", twin ? twin : "", twin ? "'?" : "; leave it out");
}

static const struct setting *find(const char *name) {
  for (int i = 0; i < SETTINGS_COUNT; i++)
    if (strcmp(table[i].name, name) == 0) return &table[i];
  return NULL;
}

/* What users of other programs write. The first of these that the algorithm has is meant. */
static const shoal_synonyms synonyms[] = {
    {"rate", "lr learning-rate actor-lr critic-lr q-lr policy-lr"},
    {"discount", "gamma"},
    {"minibatch", "batch-size mini-batch-size bs"},
    {"batch", "batch-size mini-batch-size bs"},
    {"entropy", "ent-coef entropy-coef entropy-coeff alpha temperature"},
    {"ratio_clip", "clip-range clip-coef clip-ratio clip-param eps-clip"},
    {"clip", "max-grad-norm grad-clip"},
    {"memory", "buffer-size buffer replay-size replay-buffer-size memory-size"},
    {"follow", "tau polyak target-update target-update-interval target-network-frequency"},
    {"lambda", "gae-lambda lam"},
    {"value_weight", "vf-coef vf-coeff value-coef"},
    {"anneal", "anneal-lr"},
    {"epochs", "n-epochs num-epochs update-epochs noptepochs"},
    {"n_step", "n-steps"},
    {"steps", "n-steps num-steps rollout-length rollout-steps horizon"},
    {"envs", "n-envs num-envs"},
    {"budget", "total-timesteps timesteps max-steps n-timesteps"},
    {"warmup", "learning-starts start-steps"},
    {"updates", "gradient-steps utd-ratio"},
    {"epsilon_from", "exploration-initial-eps start-e eps-start epsilon-start"},
    {"epsilon_to", "exploration-final-eps end-e eps-end epsilon-end epsilon-min"},
    {"epsilon_steps", "epsilon-decay eps-decay"},
    {"scale_observations", "norm-obs normalize normalize-observations"},
    {"scale_rewards", "norm-reward normalize-rewards reward-scale"},
    {"body", "net-arch hidden hidden-size hidden-sizes hidden-layers layers policy"},
};

static shoal_status unknown_setting(const shoal_agent_settings *settings, const char *name,
                                    shoal_error *err) {
  const size_t rows = sizeof synonyms / sizeof synonyms[0], length = strlen(name);
  const char *names[SETTINGS_COUNT + 1]; /* those of the algorithm first */
  size_t own = 0, others = 0;
  shoal_text list = {0};
  for (int i = 0; i < SETTINGS_COUNT; i++) {
    bool is_own = table[i].algorithms & 1u << settings->algorithm;
    names[is_own ? own++ : SETTINGS_COUNT - others++] = table[i].name;
    if (is_own) shoal_text_addf(&list, "%s, ", table[i].name);
  }
  names[own++] = "body";
  const char *near = shoal_synonym(name, length, synonyms, rows, names, own), *other = NULL;
  if (!near) near = shoal_nearest(name, length, names, own);
  if (!near) other = shoal_synonym(name, length, synonyms, rows, names, SETTINGS_COUNT + 1);
  if (near)
    shoal_fail(err, SHOAL_INVALID, "there is no setting '%.64s'; did you mean '%s'?", name, near);
  else if (other)
    of_no_use(settings, find(other), err);
  else
    shoal_fail(err, SHOAL_INVALID, "there is no setting '%.64s'; %s has %sbody", name,
               algorithms[settings->algorithm].name, list.bytes ? list.bytes : "");
  shoal_text_release(&list);
  return SHOAL_INVALID;
}

/* "dense 64 tanh; dense 64 tanh" as lines. */
static shoal_status set_body(shoal_agent_settings *settings, const char *value, shoal_error *err) {
  size_t length = strlen(value);
  if (length >= sizeof settings->body)
    return shoal_fail(err, SHOAL_INVALID, "body: longer than %zu characters", sizeof settings->body - 1);
  memcpy(settings->body, value, length + 1);
  for (char *at = settings->body; *at; at++)
    if (*at == ';') *at = '\n';
  return SHOAL_OK;
}

static shoal_status set(shoal_agent_settings *settings, const char *name, const char *value,
                        shoal_error *err) {
  const struct setting *setting = find(name);
  if (setting == NULL) return unknown_setting(settings, name, err);
  double number;
  if (!read_value(setting, value, &number)) {
    static const char *const wanted[] = {"a whole number", "a whole number", "a number", "yes or no"};
    return shoal_fail(err, SHOAL_INVALID, "%s: '%.64s' is not %s", name, value, wanted[setting->type]);
  }
  if (!(number >= setting->least && number <= setting->most)) return out_of_range(setting, value, err);
  put_value(settings, setting, number);
  return SHOAL_OK;
}

shoal_status shoal_agent_set(shoal_agent_settings *settings, const char *name, const char *value,
                             shoal_error *err) {
  if (strcmp(name, "body") == 0) return set_body(settings, value, err);
  const struct setting *setting = find(name);
  if (setting != NULL && !(setting->algorithms & 1u << settings->algorithm))
    return of_no_use(settings, setting, err);
  return set(settings, name, value, err);
}

shoal_status shoal_agent_settings_check(const shoal_agent_settings *settings, shoal_error *err) {
  for (int i = 0; i < SETTINGS_COUNT; i++) {
    double value = value_of(settings, &table[i]);
    if (!(value >= table[i].least && value <= table[i].most))
      return out_of_range(&table[i], bound(value).text, err);
  }
  if (settings->algorithm == SHOAL_DQN && settings->follow > 1 &&
      settings->follow != floorf(settings->follow))
    return shoal_fail(err, SHOAL_INVALID,
                      "follow: %g is neither a share of at most 1 nor a whole number of updates",
                      (double)settings->follow);
  if (settings->lag > settings->lag_max)
    return shoal_fail(err, SHOAL_INVALID, "lag: %u is more than lag_max, %u: every rollout would be refused",
                      settings->lag, settings->lag_max);
  double rows = (double)settings->streams * settings->envs * settings->steps;
  if (rows > ROUND_ROWS_MAX)
    return shoal_fail(err, SHOAL_LIMIT,
                      "streams x envs x steps: a round of %s steps; %s is the most, lower one of them",
                      bound(rows).text, bound(ROUND_ROWS_MAX).text);
  return SHOAL_OK;
}

/* ---- as text ------------------------------------------------------------------------ */

void shoal_agent_settings_write(const shoal_agent_settings *settings, shoal_text *out) {
  shoal_text_addf(out, "algorithm %s\n", shoal_algorithm_name(settings->algorithm));
  for (int i = 0; i < SETTINGS_COUNT; i++) {
    double value = value_of(settings, &table[i]);
    switch (table[i].type) {
    case COUNT:
    case LONG_COUNT: shoal_text_addf(out, "%s %.0f\n", table[i].name, value); break;
    case REAL: shoal_text_addf(out, "%s %.9g\n", table[i].name, shoal_human_float((float)value)); break;
    case YES_NO: shoal_text_addf(out, "%s %s\n", table[i].name, value != 0 ? "yes" : "no"); break;
    }
  }
  for (const char *line = settings->body; *line;) {
    size_t length = strcspn(line, "\n");
    shoal_text_addf(out, "body %.*s\n", (int)length, line);
    line += length + (line[length] != 0);
  }
}

/* Lines "body ..." follow each other. */
static shoal_status add_body_line(shoal_agent_settings *settings, const char *line, bool first,
                                  shoal_error *err) {
  size_t used = first ? 0 : strlen(settings->body), length = strlen(line);
  if (used + length + 2 > sizeof settings->body)
    return shoal_fail(err, SHOAL_INVALID, "body: longer than %zu characters", sizeof settings->body - 1);
  if (used > 0) settings->body[used++] = '\n';
  memcpy(settings->body + used, line, length + 1);
  return SHOAL_OK;
}

static shoal_status read_line(shoal_agent_settings *settings, char *line, bool *body, shoal_error *err) {
  char *space = strchr(line, ' ');
  const char *value = space ? space + 1 : "";
  if (space) *space = 0;
  if (strcmp(line, "algorithm") == 0) {
    if (shoal_algorithm_parse(value, &settings->algorithm)) return SHOAL_OK;
    return shoal_fail(err, SHOAL_INVALID, "'%.64s' is no algorithm", value);
  }
  if (strcmp(line, "body") == 0) {
    bool first = !*body;
    *body = true;
    return add_body_line(settings, value, first, err);
  }
  return set(settings, line, value, err); /* those of other algorithms, too */
}

shoal_status shoal_agent_settings_read(shoal_agent_settings *settings, const char *text, shoal_error *err) {
  shoal_agent_settings read = *settings;
  bool body = false;
  for (uint32_t number = 1; *text; number++) {
    char line[BODY_LINE_MAX + 16];
    size_t length = strcspn(text, "\n");
    if (length >= sizeof line)
      return shoal_fail(err, SHOAL_INVALID, "line %" PRIu32 " of the settings is too long", number);
    memcpy(line, text, length);
    line[length] = 0;
    text += length + (text[length] != 0);
    if (length == 0) continue;
    shoal_status status = read_line(&read, line, &body, err);
    if (status != SHOAL_OK) {
      shoal_error_prefix(err, "line %" PRIu32 " of the settings: ", number);
      return status;
    }
  }
  *settings = read;
  return SHOAL_OK;
}

/* ---- what is usual ------------------------------------------------------------------ */

static shoal_algorithm usual_algorithm(const shoal_env_kind *kind) {
  bool sparse = strncmp(kind->name, "MountainCar", 11) == 0;
  if (kind->choices == 0) return SHOAL_SAC;
  if (sparse) return SHOAL_DQN;
  return SHOAL_PPO;
}

/* Good enough nearly everywhere; an algorithm's own `defaults` knows better. */
static const shoal_agent_settings usual = {
    .body = "dense 64 tanh\ndense 64 tanh",
    .streams = 4,
    .envs = 8,
    .steps = 64,
    .lag = 0,
    .lag_max = 4,
    .budget = 2000000,
    .discount = 0.99f,
    .rate = 1e-3f,
    .clip = 0.5f,
    .anneal = true,
    .scale_observations = true,
    .scale_rewards = true,
    .lambda = 0.95f,
    .entropy = 0,
    .value_weight = 0.5f,
    .ratio_clip = 0.2f,
    .epochs = 10,
    .minibatch = 256,
    .memory = 100000,
    .batch = 256,
    .warmup = 1000,
    .n_step = 1,
    .updates = 0.25f,
    .follow = 0.005f,
    .epsilon_from = 1,
    .epsilon_to = 0.05f,
    .epsilon_steps = 20000,
    .hold = 1,
    .duelling = false,
    .keep_share = 0.5f,
    .keep_steps = 100000,
};

/* Where what is seen is not all that matters, those that can remember do. */
static void remember(const shoal_env_kind *kind, shoal_agent_settings *settings) {
  bool hides = strcmp(kind->name, "CartPole-NoVelocity") == 0, can = settings->algorithm != SHOAL_DQN;
  if (hides && can) memcpy(settings->body, "gru 32\ndense 32 tanh", sizeof "gru 32\ndense 32 tanh");
}

shoal_status shoal_agent_defaults(const shoal_env_kind *kind, shoal_algorithm algorithm,
                                  shoal_agent_settings *out, shoal_error *err) {
  if (algorithm == SHOAL_ALGORITHMS) algorithm = usual_algorithm(kind);
  const shoal_algorithm_ops *ops = shoal_algorithm_ops_of(algorithm);
  *out = usual;
  out->algorithm = algorithm;
  algorithms[algorithm].defaults(kind, out);
  remember(kind, out);
  const shoal_learner_config config = {.kind = kind, .settings = *out};
  shoal_policy_spec spec = {0};
  return ops->spec(&config, &spec, err);
}
