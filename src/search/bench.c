/* bench.c: a brief at work: rows, parts, encoded rows; see trial.h.
 *
 * Encoded rows are kept in memory, by encoding and fold, as long as there is room: those that no trial
 * uses go first, the longest unused before others. Where a table is too large, its rows are encoded
 * whenever they are fetched. Neither changes a result. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/random.h"
#include "search/topology.h"
#include "search/trial_internal.h"

struct shoal_bench {
  const shoal_brief *brief;
  shoal_rows *rows;
  shoal_table_split split;
  int32_t *labels[SHOAL_FOLDS_MAX];
  double *right[SHOAL_FOLDS_MAX];
  uint64_t keep_bytes;
  pthread_mutex_t mutex; /* for what follows */
  pthread_cond_t ready;
  shoal_encoding_entry *entries;
  uint64_t kept_bytes, uses;
};

/* ---- encoded rows ------------------------------------------------------------------- */

static void entry_free(shoal_encoding_entry *e) {
  shoal_encoded_destroy(e->train);
  shoal_encoded_destroy(e->valid);
  shoal_encoder_destroy(e->encoder);
  free(e);
}

static bool same_choice(const shoal_encoding_choice *a, const shoal_encoding_choice *b) {
  return a->numbers == b->numbers && a->pieces == b->pieces && a->categories == b->categories &&
         a->one_hot_max == b->one_hot_max && a->text_values == b->text_values;
}

static shoal_encoding_entry *find(shoal_bench *b, const shoal_encoding_choice *choice, uint32_t fold) {
  for (shoal_encoding_entry *e = b->entries; e; e = e->next)
    if (!e->broken && e->fold == fold && same_choice(&e->choice, choice)) return e;
  return NULL;
}

static void unlink_entry(shoal_bench *b, shoal_encoding_entry *entry) {
  shoal_encoding_entry **at = &b->entries;
  while (*at != entry) at = &(*at)->next;
  *at = entry->next;
  b->kept_bytes -= entry->bytes;
}

/* Makes room for so many bytes if that can be, and says whether there is. */
static bool make_room(shoal_bench *b, uint64_t bytes) {
  while (b->kept_bytes + bytes > b->keep_bytes) {
    shoal_encoding_entry *oldest = NULL;
    for (shoal_encoding_entry *e = b->entries; e; e = e->next)
      if (e->users == 0 && e->bytes > 0 && (oldest == NULL || e->used_at < oldest->used_at)) oldest = e;
    if (oldest == NULL) return false;
    unlink_entry(b, oldest);
    entry_free(oldest);
  }
  return true;
}

/* Without the lock, but for the room. */
static shoal_status build(shoal_bench *b, shoal_encoding_entry *e, shoal_error *err) {
  const shoal_brief *brief = b->brief;
  const shoal_row_list *train = &b->split.train[e->fold], *valid = &b->split.valid[e->fold];
  shoal_status status =
      shoal_encoder_fit(&e->encoder, &brief->profile, &e->choice, &brief->target, b->rows, train, err);
  if (status != SHOAL_OK) return status;
  uint64_t bytes = shoal_encoded_bytes(train->count + valid->count, e->encoder);
  pthread_mutex_lock(&b->mutex);
  if (make_room(b, bytes)) {
    e->bytes = bytes;
    b->kept_bytes += bytes;
  }
  uint64_t keep_bytes = e->bytes;
  pthread_mutex_unlock(&b->mutex);
  shoal_encoded_options options = {.encoder = e->encoder,
                                   .target = &brief->target,
                                   .rows = b->rows,
                                   .list = train,
                                   .order = true,
                                   .epoch_rows = brief->epoch_rows,
                                   .keep_bytes = keep_bytes};
  status = shoal_encoded_create(&e->train, &options, err);
  options.list = valid;
  options.order = false;
  return status == SHOAL_OK ? shoal_encoded_create(&e->valid, &options, err) : status;
}

/* One user less; with the lock. A broken entry goes with its last one. */
static void leave(shoal_bench *b, shoal_encoding_entry *e) {
  if (--e->users > 0 || !e->broken) return;
  unlink_entry(b, e);
  entry_free(e);
}

static shoal_encoding_entry *new_entry(shoal_bench *b, const shoal_encoding_choice *choice, uint32_t fold) {
  shoal_encoding_entry *e = calloc(1, sizeof *e);
  if (e == NULL) return NULL;
  e->choice = *choice;
  e->fold = fold;
  e->next = b->entries;
  b->entries = e;
  return e;
}

shoal_status shoal_bench_take(shoal_bench *b, const shoal_encoding_choice *choice, uint32_t fold,
                              shoal_encoding_entry **out, shoal_error *err) {
  pthread_mutex_lock(&b->mutex);
  shoal_encoding_entry *e = find(b, choice, fold);
  bool mine = e == NULL;
  if (mine) e = new_entry(b, choice, fold);
  if (e == NULL) {
    pthread_mutex_unlock(&b->mutex);
    return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  }
  e->users++;
  e->used_at = ++b->uses;
  shoal_status status = SHOAL_OK;
  if (mine) {
    pthread_mutex_unlock(&b->mutex);
    status = build(b, e, &e->trouble);
    pthread_mutex_lock(&b->mutex);
    e->ready = status == SHOAL_OK;
    e->broken = !e->ready;
    pthread_cond_broadcast(&b->ready);
  } else {
    while (!e->ready && !e->broken) pthread_cond_wait(&b->ready, &b->mutex);
    if (e->broken) status = e->trouble.status;
  }
  if (status == SHOAL_OK) {
    *out = e;
  } else {
    if (err) *err = e->trouble;
    leave(b, e);
  }
  pthread_mutex_unlock(&b->mutex);
  return status;
}

void shoal_bench_give(shoal_bench *b, shoal_encoding_entry *entry) {
  if (entry == NULL) return;
  pthread_mutex_lock(&b->mutex);
  leave(b, entry);
  pthread_mutex_unlock(&b->mutex);
}

/* ---- open and close ----------------------------------------------------------------- */

static uint64_t fourth_of_memory(void) {
  long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
  const uint64_t usual = (uint64_t)1 << 30;
  return pages > 0 && page_bytes > 0 ? (uint64_t)pages / 4 * (uint64_t)page_bytes : usual;
}

static shoal_status read_rows(shoal_bench *b, const shoal_bench_options *o, shoal_error *err) {
  b->rows = o->rows;
  if (b->rows) return SHOAL_OK;
  shoal_rows_options options = {.path = o->path,
                                .profile = &b->brief->profile,
                                .target = b->brief->target.column,
                                .folder = o->folder,
                                .progress = o->progress,
                                .self = o->self,
                                .stop = o->stop};
  return shoal_rows_open(&b->rows, &options, err);
}

/* What is right for the validation rows. */
static bool read_answers(shoal_bench *b) {
  const shoal_target *target = &b->brief->target;
  bool numbers = target->problem == SHOAL_REGRESSION;
  for (uint32_t f = 0; f < b->split.folds; f++) {
    const shoal_row_list *valid = &b->split.valid[f];
    if (numbers)
      b->right[f] = malloc((valid->count + 1) * sizeof *b->right[f]);
    else
      b->labels[f] = malloc((valid->count + 1) * sizeof *b->labels[f]);
    if (b->right[f] == NULL && b->labels[f] == NULL) return false;
    for (uint64_t i = 0; i < valid->count; i++) {
      if (numbers)
        b->right[f][i] = shoal_rows_number(b->rows, valid->at[i], target->column);
      else
        b->labels[f][i] = shoal_target_label(target, b->rows, valid->at[i]);
    }
  }
  return true;
}

static shoal_status check_brief(const shoal_brief *brief, shoal_error *err) {
  if (brief->epochs < 1 || brief->epochs > SHOAL_CURVE_MAX)
    return shoal_fail(err, SHOAL_INVALID, "%u epochs; a search trains for 1 to %d", brief->epochs,
                      SHOAL_CURVE_MAX);
  return SHOAL_OK;
}

shoal_status shoal_bench_open(shoal_bench **out, const shoal_bench_options *options, shoal_error *err) {
  *out = NULL;
  shoal_bench *b = calloc(1, sizeof *b);
  if (b == NULL) {
    shoal_rows_close(options->rows);
    return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  }
  b->brief = options->brief;
  b->keep_bytes = options->keep_bytes > 0 ? options->keep_bytes : fourth_of_memory();
  pthread_mutex_init(&b->mutex, NULL);
  pthread_cond_init(&b->ready, NULL);
  shoal_status status = read_rows(b, options, err);
  if (status == SHOAL_OK) status = check_brief(b->brief, err);
  if (status == SHOAL_OK)
    status = shoal_table_split_make(&b->split, b->rows, &b->brief->target, &b->brief->split, err);
  if (status == SHOAL_OK && !read_answers(b)) status = shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
  if (status == SHOAL_OK)
    *out = b;
  else
    shoal_bench_close(b);
  return status;
}

void shoal_bench_close(shoal_bench *b) {
  if (b == NULL) return;
  while (b->entries) {
    shoal_encoding_entry *e = b->entries;
    b->entries = e->next;
    entry_free(e);
  }
  for (uint32_t f = 0; f < SHOAL_FOLDS_MAX; f++) {
    free(b->labels[f]);
    free(b->right[f]);
  }
  shoal_table_split_release(&b->split);
  shoal_rows_close(b->rows);
  pthread_cond_destroy(&b->ready);
  pthread_mutex_destroy(&b->mutex);
  free(b);
}

const shoal_rows *shoal_bench_rows(const shoal_bench *b) { return b->rows; }
const shoal_table_split *shoal_bench_split(const shoal_bench *b) { return &b->split; }
const shoal_brief *shoal_bench_brief(const shoal_bench *b) { return b->brief; }
const int32_t *shoal_bench_labels(const shoal_bench *b, uint32_t fold) { return b->labels[fold]; }
const double *shoal_bench_right(const shoal_bench *b, uint32_t fold) { return b->right[fold]; }

/* ---- networks ----------------------------------------------------------------------- */

uint32_t shoal_bench_seed(const shoal_bench *b, uint64_t trial, uint32_t fold) {
  return shoal_random_u32(shoal_key_make(b->brief->seed, SHOAL_FOR_SAMPLING, trial, 1 + (uint64_t)fold), 0);
}

shoal_status shoal_bench_model(const shoal_bench *b, const shoal_values *values, uint64_t trial,
                               uint32_t fold, const shoal_encoder *encoder, shoal_model **out,
                               shoal_text *text, shoal_error *err) {
  const shoal_brief *brief = b->brief;
  uint64_t rows = b->split.train[fold].count;
  shoal_topology_io io = {.inputs = shoal_encoder_values(encoder),
                          .lookups = shoal_encoder_lookups(encoder),
                          .vocabulary = shoal_encoder_vocabulary(encoder),
                          .problem = brief->target.problem,
                          .classes = brief->target.classes.count,
                          .rows =
                              brief->epoch_rows > 0 && brief->epoch_rows < rows ? brief->epoch_rows : rows,
                          .epochs = brief->epochs,
                          .seed = shoal_bench_seed(b, trial, fold)};
  shoal_text_clear(text);
  shoal_status status = shoal_topology_write(&brief->space, values, &io, text, err);
  if (status != SHOAL_OK) return status;
  status = shoal_model_parse(out, "a trial's network", text->bytes, text->length, err);
  /* A trial has one thread, so a round's batch is best worked off as a whole. */
  if (status == SHOAL_OK) (*out)->recipe.shards = 1;
  return status;
}
