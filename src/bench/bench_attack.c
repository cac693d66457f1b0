/* bench_attack.c: shoal bench attack: what bad workers do to a training, and what defends it.
 *
 * Every attack of bench/attack.h against every defence: as a table of the accuracies at the end, or a line of
 * JSON a training. Trainings run beside each other, one a thread, and none depends on another. With --liars
 * nothing is trained: only how soon audits find a liar is measured. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench/attack.h"
#include "bench/bench.h"
#include "bench/liars.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "cli/stop.h"

enum { DATA_MAX = 8, DEFENCES_MAX = 32, WORD_MAX = 64, DEALS = 2 };
static const char all_defences[] = "mean,median,trimmed:0.3,krum:4,multi-krum:4,clip,median/2,trimmed:0.3/2,"
                                   "krum:2/2,multi-krum:2/2,clip/2,mean+audits,clip+audits";
static const char *const deals[DEALS] = {"even", "uneven"};

typedef struct words {
  char at[DEFENCES_MAX][WORD_MAX];
  uint32_t count;
} words;

typedef struct defence {
  const char *name;
  shoal_rule rule;
  bool audits;
} defence;

typedef struct options {
  const char *data, *attacks_text, *defences_text, *deals_text, *data_dir;
  uint64_t epochs, seed, threads, liars;
  bool json;
  /* from the texts */
  words data_names, attack_names, defence_names, deal_names;
  shoal_attack_kind attacks[SHOAL_ATTACKS];
  defence defences[DEFENCES_MAX];
  bool uneven[DEALS];
} options;

/* ---- options ---- */

/* The words between commas, most of them at most, none twice. */
static shoal_status read_words(const char *option, const char *text, uint32_t most, words *out,
                               shoal_error *err) {
  for (const char *from = text;;) {
    size_t length = strcspn(from, ",");
    if (length == 0 || length >= WORD_MAX || out->count == most)
      return shoal_fail(err, SHOAL_INVALID, "--%s: '%s' is not a list of up to %u words with commas", option,
                        text, most);
    char *word = out->at[out->count++];
    memcpy(word, from, length);
    for (uint32_t i = 0; i + 1 < out->count; i++)
      if (strcmp(out->at[i], word) == 0)
        return shoal_fail(err, SHOAL_INVALID, "--%s: '%s' is there twice", option, word);
    if (from[length] == '\0') return SHOAL_OK;
    from += length + 1;
  }
}

static shoal_status choose(const char *option, const char *word, const char *const *names, uint32_t count,
                           uint32_t *out, shoal_error *err) {
  for (uint32_t i = 0; i < count; i++)
    if (strcmp(word, names[i]) == 0) {
      *out = i;
      return SHOAL_OK;
    }
  shoal_fail(err, SHOAL_INVALID, "--%s: '%s' is not one of ", option, word);
  for (uint32_t i = 0; i < count; i++) {
    size_t length = strlen(err->text);
    snprintf(err->text + length, sizeof err->text - length, "%s%s", i > 0 ? ", " : "", names[i]);
  }
  return SHOAL_INVALID;
}

static shoal_status read_defence(const char *name, defence *out, shoal_error *err) {
  static const char audits[] = "+audits";
  char rule[WORD_MAX];
  size_t length = strlen(name), tail = sizeof audits - 1;
  out->name = name;
  out->audits = length > tail && strcmp(name + length - tail, audits) == 0;
  snprintf(rule, sizeof rule, "%.*s", (int)(out->audits ? length - tail : length), name);
  shoal_status status = shoal_rule_parse(rule, &out->rule, err);
  if (status == SHOAL_OK) status = shoal_rule_check(&out->rule, SHOAL_ATTACK_WORKERS, err);
  if (status != SHOAL_OK) shoal_error_prefix(err, "--defence: ");
  return status;
}

static shoal_status read_lists(options *o, shoal_error *err) {
  shoal_status status = read_words("data", o->data, DATA_MAX, &o->data_names, err);
  if (status == SHOAL_OK)
    status = read_words("attack", o->attacks_text, SHOAL_ATTACKS, &o->attack_names, err);
  if (status == SHOAL_OK)
    status = read_words("defence", o->defences_text, DEFENCES_MAX, &o->defence_names, err);
  if (status == SHOAL_OK) status = read_words("deal", o->deals_text, DEALS, &o->deal_names, err);
  uint32_t index;
  for (uint32_t i = 0; i < o->attack_names.count && status == SHOAL_OK; i++) {
    status = choose("attack", o->attack_names.at[i], shoal_attack_names, SHOAL_ATTACKS, &index, err);
    if (status == SHOAL_OK) o->attacks[i] = (shoal_attack_kind)index;
  }
  for (uint32_t i = 0; i < o->deal_names.count && status == SHOAL_OK; i++) {
    status = choose("deal", o->deal_names.at[i], deals, DEALS, &index, err);
    if (status == SHOAL_OK) o->uneven[i] = index == 1;
  }
  for (uint32_t i = 0; i < o->defence_names.count && status == SHOAL_OK; i++)
    status = read_defence(o->defence_names.at[i], &o->defences[i], err);
  return status;
}

static bool parse(options *o, int argc, char **argv, int *status) {
  const shoal_option table[] = {
      {.name = "data",
       .value = "LIST",
       .text = &o->data,
       .help = "sets with ten classes of 28x28 images, with commas; mnist,fashion-mnist by default"},
      {.name = "deal",
       .value = "LIST",
       .text = &o->deals_text,
       .help = "even, uneven (each worker has a few classes), or both, with a comma: the default"},
      {.name = "attack",
       .value = "LIST",
       .text = &o->attacks_text,
       .help = "none, noise (random), flip (of signs), labels (flipped), alie, inner (product), copy (old "
               "results again), traitor (honest until trusted); by default all. docs/attacks.md says what "
               "they do"},
      {.name = "defence",
       .value = "LIST",
       .text = &o->defences_text,
       .help =
           "mean, median, trimmed:SHARE, krum:F, multi-krum:F, clip, each with /S behind it for groups of "
           "S, and with +audits; by default all of use here"},
      {.name = "epochs",
       .value = "N",
       .whole = &o->epochs,
       .whole_min = 1,
       .whole_max = 1000,
       .help = "of each training; 3 by default"},
      {.name = "seed", .value = "N", .whole = &o->seed, .whole_max = UINT64_MAX, .help = "1 by default"},
      {.name = "threads",
       .value = "N",
       .whole = &o->threads,
       .whole_min = 1,
       .whole_max = SHOAL_THREADS_MAX,
       .help = "trainings at a time; by default one for every processor"},
      {.name = "liars",
       .value = "N",
       .whole = &o->liars,
       .whole_min = 1,
       .whole_max = SHOAL_LIARS_MAX,
       .help =
           "instead of training: how many lies so many liars get away with until an audit finds them, and "
           "what audits cost the honest"},
      {.name = "data-dir",
       .value = "FOLDER",
       .text = &o->data_dir,
       .help = "where named sets are kept; ~/.local/share/shoal by default"},
      shoal_bench_option_json(&o->json, "JSON, one line a training"),
  };
  const shoal_usage usage = {
      .command = "bench attack",
      .synopses = (const char *[]){"[OPTION...]", NULL},
      .about =
          "Trains a network with 10 honest workers and 4 bad ones, under every attack and every defence, and "
          "prints the test accuracy of each. mean+audits is what the platform does by default: every unit of "
          "a newcomer and some of everybody's are computed again and compared bit for bit.",
      .options = table,
      .options_count = sizeof table / sizeof table[0],
      .examples =
          "  shoal bench attack\n"
          "  shoal bench attack --liars 10000\n"
          "  shoal bench attack --data mnist --deal uneven --attack alie,inner --defence median,clip/2\n",
  };
  shoal_operands operands;
  shoal_error err;
  if (!shoal_cli_parse(&usage, argc, argv, &operands, status)) return false;
  if (read_lists(o, &err) == SHOAL_OK) return true;
  *status = shoal_cli_misused("bench attack", &err);
  return false;
}

/* ---- trainings ---- */

/* One training of the table. */
typedef struct cell {
  uint32_t data, deal, attack, defence; /* indices into the lists */
  bool done;
  double seconds;
  shoal_attack_result result;
} cell;

typedef struct session {
  options *o;
  shoal_attack_data sets[DATA_MAX];
  cell *cells;
  uint32_t cells_count;
  pthread_mutex_t lock; /* of all below */
  uint32_t done, printed;
  double started;
  shoal_progress progress;
  shoal_status status; /* the first that is not SHOAL_OK */
  shoal_error err;
} session;

static void print_json(const session *s, const cell *c) {
  const shoal_attack_result *r = &c->result;
  const defence *d = &s->o->defences[c->defence];
  shoal_json json;
  shoal_text line;
  shoal_text_init(&line);
  shoal_json_init(&json, &line);
  shoal_json_open(&json, NULL, '{');
  shoal_json_text(&json, "data", s->o->data_names.at[c->data]);
  shoal_json_text(&json, "deal", s->o->deal_names.at[c->deal]);
  shoal_json_text(&json, "attack", s->o->attack_names.at[c->attack]);
  shoal_json_text(&json, "defence", d->name);
  shoal_json_bool(&json, "audits", d->audits);
  shoal_json_real(&json, "accuracy", r->accuracy);
  shoal_json_int(&json, "rounds", (int64_t)r->rounds);
  shoal_json_int(&json, "units", (int64_t)r->units);
  shoal_json_int(&json, "units_audited", (int64_t)r->audits);
  shoal_json_int(&json, "banned", r->banned);
  shoal_json_int(&json, "banned_honest", r->banned_honest);
  shoal_json_int(&json, "went_back", (int64_t)r->went_back);
  shoal_json_int(&json, "rounds_lost", (int64_t)r->rounds_lost);
  shoal_json_int(&json, "lies_kept", (int64_t)r->lies_kept);
  shoal_json_text(&json, "sha256", r->sha256);
  shoal_json_real(&json, "seconds", c->seconds);
  shoal_json_close(&json, '}');
  shoal_cli_print_line(&line);
  shoal_text_release(&line);
}

/* Under the lock: what is done, and the lines whose turn it is. */
static void note_done(session *s, cell *c) {
  c->done = true;
  s->done++;
  double now = shoal_clock_seconds();
  const shoal_progress_view view = {.share = (double)s->done / s->cells_count,
                                    .per_s = NAN,
                                    .loss = NAN,
                                    .metric = NAN,
                                    .eta_s = (now - s->started) / s->done * (s->cells_count - s->done)};
  if (shoal_progress_due(&s->progress, now)) shoal_progress_show(&s->progress, &view, now);
  for (; s->o->json && s->printed < s->cells_count && s->cells[s->printed].done; s->printed++) {
    shoal_progress_clear(&s->progress);
    print_json(s, &s->cells[s->printed]);
  }
}

static void run_cell(void *context, uint32_t index, uint32_t thread) {
  (void)thread;
  session *s = context;
  cell *c = &s->cells[index];
  pthread_mutex_lock(&s->lock);
  bool failed = s->status != SHOAL_OK;
  pthread_mutex_unlock(&s->lock);
  if (failed) return;
  const defence *d = &s->o->defences[c->defence];
  const shoal_attack_case what = {.attack = s->o->attacks[c->attack],
                                  .rule = d->rule,
                                  .audits = d->audits,
                                  .uneven = s->o->uneven[c->deal],
                                  .epochs = s->o->epochs,
                                  .seed = s->o->seed};
  shoal_error err;
  double start = shoal_clock_seconds();
  shoal_status status = shoal_attack_run(&s->sets[c->data], &what, shoal_stop_flag(), &c->result, &err);
  pthread_mutex_lock(&s->lock);
  c->seconds = shoal_clock_seconds() - start;
  if (status == SHOAL_OK) {
    note_done(s, c);
  } else if (s->status == SHOAL_OK) {
    s->status = status;
    s->err = err;
  }
  pthread_mutex_unlock(&s->lock);
}

static shoal_status make_cells(session *s, shoal_error *err) {
  const options *o = s->o;
  uint32_t count = o->data_names.count * o->deal_names.count * o->attack_names.count * o->defence_names.count;
  s->cells = calloc(count, sizeof *s->cells);
  if (s->cells == NULL) return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  for (uint32_t i = 0; i < o->data_names.count; i++)
    for (uint32_t k = 0; k < o->deal_names.count; k++)
      for (uint32_t a = 0; a < o->attack_names.count; a++)
        for (uint32_t d = 0; d < o->defence_names.count; d++)
          s->cells[s->cells_count++] = (cell){.data = i, .deal = k, .attack = a, .defence = d};
  return SHOAL_OK;
}

static shoal_status run_cells(session *s, shoal_error *err) {
  shoal_pool *pool;
  shoal_status status = shoal_pool_create(&pool, (uint32_t)s->o->threads, err);
  if (status != SHOAL_OK) return status;
  s->started = shoal_clock_seconds();
  shoal_progress_init(&s->progress, stderr, s->started);
  shoal_pool_run(pool, s->cells_count, run_cell, s);
  shoal_pool_destroy(pool);
  shoal_progress_clear(&s->progress);
  if (s->status != SHOAL_OK) *err = s->err;
  return s->status;
}

/* ---- the table ---- */

static const cell *cell_at(const session *s, uint32_t data, uint32_t deal, uint32_t attack,
                           uint32_t defence_index) {
  const options *o = s->o;
  uint32_t row = (data * o->deal_names.count + deal) * o->attack_names.count + attack;
  return &s->cells[row * o->defence_names.count + defence_index];
}

static int width_of(const defence *d) { return strlen(d->name) > 6 ? (int)strlen(d->name) : 6; }

/* What the audits of a table did, a line a defence that has them. */
static void print_audits(const session *s, uint32_t data, uint32_t deal) {
  for (uint32_t d = 0; d < s->o->defence_names.count; d++) {
    if (!s->o->defences[d].audits) continue;
    shoal_attack_result sum = {0};
    double least = 1;
    for (uint32_t a = 0; a < s->o->attack_names.count; a++) {
      const shoal_attack_result *r = &cell_at(s, data, deal, a, d)->result;
      sum.units += r->units;
      sum.audits += r->audits;
      sum.banned += r->banned;
      sum.banned_honest += r->banned_honest;
      sum.went_back += r->went_back;
      if (r->accuracy < least) least = r->accuracy;
    }
    printf("%s: lowest %.2f%%; %.1f%% of the units audited, %u workers banned (%u honest), went back %llu "
           "times\n",
           s->o->defences[d].name, 100 * least, 100 * (double)sum.audits / (double)sum.units, sum.banned,
           sum.banned_honest, (unsigned long long)sum.went_back);
  }
}

static void print_table(const session *s, uint32_t data, uint32_t deal) {
  const options *o = s->o;
  shoal_terminal terminal = shoal_terminal_of(stdout);
  const char *bold = terminal.colour ? "\x1b[1m" : "", *off = terminal.colour ? "\x1b[0m" : "";
  printf("\n%s, %s: test accuracy, %%\n%s%-8s", o->data_names.at[data], o->deal_names.at[deal], bold,
         "attack");
  for (uint32_t d = 0; d < o->defence_names.count; d++)
    printf("  %*s", width_of(&o->defences[d]), o->defences[d].name);
  printf("%s\n", off);
  for (uint32_t a = 0; a < o->attack_names.count; a++) {
    printf("%-8s", o->attack_names.at[a]);
    for (uint32_t d = 0; d < o->defence_names.count; d++)
      printf("  %*.2f", width_of(&o->defences[d]), 100 * cell_at(s, data, deal, a, d)->result.accuracy);
    printf("\n");
  }
  print_audits(s, data, deal);
}

static shoal_status measure(session *s, shoal_error *err) {
  shoal_status status = SHOAL_OK;
  for (uint32_t i = 0; i < s->o->data_names.count && status == SHOAL_OK; i++)
    status = shoal_attack_open(&s->sets[i], s->o->data_names.at[i], s->o->data_dir, err);
  if (status == SHOAL_OK) status = make_cells(s, err);
  if (status == SHOAL_OK) status = run_cells(s, err);
  if (status != SHOAL_OK || s->o->json) return status;
  for (uint32_t i = 0; i < s->o->data_names.count; i++)
    for (uint32_t k = 0; k < s->o->deal_names.count; k++) print_table(s, i, k);
  return SHOAL_OK;
}

/* ---- liars ---- */

static void print_liars_json(const shoal_liars *l) {
  shoal_json json;
  shoal_text line;
  shoal_text_init(&line);
  shoal_json_init(&json, &line);
  shoal_json_open(&json, NULL, '{');
  shoal_json_int(&json, "honest_units", (int64_t)l->honest);
  shoal_json_real(&json, "audited", l->audited);
  shoal_json_real(&json, "audited_lately", l->audited_lately);
  shoal_json_int(&json, "lies_50", (int64_t)l->half);
  shoal_json_int(&json, "lies_90", (int64_t)l->most_90);
  shoal_json_int(&json, "lies_99", (int64_t)l->most_99);
  shoal_json_int(&json, "lies_100", (int64_t)l->all);
  shoal_json_close(&json, '}');
  shoal_cli_print_line(&line);
  shoal_text_release(&line);
}

/* The longer somebody was honest, the fewer of its units are audited. */
static shoal_status measure_liars(const options *o, shoal_error *err) {
  static const uint64_t honest[] = {0, 4, 10, 30, 100, 1000, 10000};
  if (!o->json)
    printf("%12s  %8s  %14s   lies until found: %6s  %6s  %6s  %6s\n", "honest units", "audited",
           "of last 1,000", "50%", "90%", "99%", "100%");
  for (size_t i = 0; i < sizeof honest / sizeof honest[0]; i++) {
    shoal_liars l;
    shoal_status status = shoal_liars_measure(honest[i], (uint32_t)o->liars, o->seed, &l, err);
    if (status != SHOAL_OK) return status;
    if (*shoal_stop_flag() != 0) return shoal_fail(err, SHOAL_STOPPED, "stopped");
    if (o->json)
      print_liars_json(&l);
    else
      printf("%12llu  %7.1f%%  %13.1f%%  %24llu  %6llu  %6llu  %6llu\n", (unsigned long long)l.honest,
             100 * l.audited, 100 * l.audited_lately, (unsigned long long)l.half,
             (unsigned long long)l.most_90, (unsigned long long)l.most_99, (unsigned long long)l.all);
  }
  return SHOAL_OK;
}

int shoal_bench_attack(int argc, char **argv) {
  options o = {.data = "mnist,fashion-mnist",
               .attacks_text = "none,noise,flip,labels,alie,inner,copy,traitor",
               .defences_text = all_defences,
               .deals_text = "even,uneven",
               .epochs = 3,
               .seed = 1,
               .threads = shoal_cli_threads()};
  int exit_status;
  if (!parse(&o, argc, argv, &exit_status)) return exit_status;
  shoal_error err;
  session s = {.o = &o, .lock = PTHREAD_MUTEX_INITIALIZER};
  shoal_stop_catch();
  shoal_status status = o.liars > 0 ? measure_liars(&o, &err) : measure(&s, &err);
  for (uint32_t i = 0; i < DATA_MAX; i++) shoal_attack_close(&s.sets[i]);
  free(s.cells);
  if (status == SHOAL_STOPPED) return 128 + shoal_stop_signal();
  if (status != SHOAL_OK) return shoal_cli_failed("bench attack", &err);
  return shoal_cli_finish("bench attack", SHOAL_EXIT_OK);
}
