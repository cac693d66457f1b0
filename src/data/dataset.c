/* dataset.c: finds what --data means, checks that the model fits it, and feeds the engine.
 *
 * There are six kinds. Images, tables and the toys are samples with numbers of their own
 * (parts.h says which belong to what); a text is streams of tokens (text.h). Each kind has one
 * fetch function below, which is a pure function of the position, the epoch and the seed. */
#include "data/dataset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/assert.h"
#include "base/file.h"
#include "data/cifar.h"
#include "data/idx.h"
#include "data/named.h"
#include "data/noise.h"
#include "data/table.h"
#include "data/text.h"
#include "data/toy.h"

typedef enum kind { IMAGES, TABLE, TEXT, REVERSE, WAVE, NOISE, KINDS } kind;
static const char *const kind_names[KINDS] = {"images",      "table",    "text",
                                              "toy:reverse", "toy:wave", "toy:noise"};

/* What self of a source points at. */
typedef struct view {
  const shoal_dataset *dataset;
  shoal_split split;
  uint64_t seed;
  shoal_streams streams; /* TEXT */
  shoal_lanes *lanes;    /* or NULL */
  uint64_t *stored;      /* with lanes and validation: the training samples' numbers, ascending; else NULL */
  uint64_t *blocks;      /* with lanes: where blocks begin, as lanes.h has them */
  struct view *older;
} view;

struct shoal_dataset {
  kind kind;
  char *name; /* as the user gave it */
  shoal_shape input, output;
  shoal_loss_kind loss;
  bool one_hot; /* classes as targets: 1 for the right one, 0 for the others */

  shoal_images images;
  const shoal_kernels *kernels; /* IMAGES */
  shoal_table table;
  shoal_tokens tokens;
  uint32_t alphabet;  /* REVERSE */
  shoal_noise *noise; /* NOISE */

  shoal_parts parts;        /* all but TEXT */
  shoal_chunk_store *store; /* where it is opened piece by piece; else NULL */
  uint32_t classes;
  shoal_names class_names; /* IMAGES; the others keep theirs elsewhere */
  uint64_t *class_counts;  /* in TRAIN */
  view *views;             /* newest first */
};

static shoal_status fail_memory(shoal_error *err) {
  return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
}

/* ---- fetching ----------------------------------------------------------------------- */

/* The numbers of the samples that a fetch is about. */
typedef struct chosen {
  uint64_t numbers[SHOAL_FETCH_MAX];
} chosen;

static void choose(chosen *c, const view *v, uint64_t epoch, uint64_t first, uint32_t n) {
  SHOAL_ASSERT(n <= SHOAL_FETCH_MAX);
  const shoal_parts *parts = &v->dataset->parts;
  if (v->lanes) {
    shoal_lanes_at(v->lanes, epoch, first, n, c->numbers);
    for (uint32_t i = 0; v->stored && i < n; i++) c->numbers[i] = v->stored[c->numbers[i]];
    return;
  }
  shoal_order order;
  bool shuffled = v->split == SHOAL_TRAIN;
  if (shuffled) shoal_order_init(&order, parts->count[SHOAL_TRAIN], v->seed, epoch);
  for (uint32_t i = 0; i < n; i++) {
    uint64_t position = shuffled ? shoal_order_at(&order, first + i) : first + i;
    c->numbers[i] = shoal_parts_number(parts, v->split, position);
  }
}

/* Images and tables: the class of a sample, 0 where it has none. */
static int32_t label_of(const shoal_dataset *d, uint64_t number) {
  return d->kind == IMAGES ? shoal_images_label(&d->images, number) : d->table.labels[number];
}

/* What the network should answer to one sample, as a label or as numbers. */
static void write_answer(const shoal_dataset *d, uint64_t number, uint32_t i, const shoal_batch *into) {
  int32_t label = label_of(d, number);
  float target = d->kind == IMAGES ? (float)label : d->table.targets[number];
  if (into->labels) into->labels[i] = label;
  if (into->targets) {
    uint64_t outputs = shoal_shape_values(&d->output);
    float *to = into->targets + i * outputs;
    for (uint64_t j = 0; j < outputs; j++) to[j] = d->one_hot ? (float)(j == (uint64_t)label) : target;
  }
}

static void write_ids(const chosen *c, uint32_t n, uint32_t steps, const shoal_batch *into) {
  if (into->ids) memcpy(into->ids, c->numbers, n * sizeof *into->ids);
  for (uint64_t i = 0; into->weight && i < (uint64_t)steps * n; i++) into->weight[i] = 1;
}

static void images_to_x(const shoal_dataset *d, const uint8_t **images, uint32_t n, float *x) {
  const shoal_kernels *kernels = d->kernels;
  const shoal_images *from = &d->images;
  uint32_t plane = from->h * from->w;
  if (d->input.kind == SHOAL_IMAGE) {
    kernels->bytes_to_lanes(from->c, plane, shoal_lanes_for(n), n, images, from->scale, from->shift, x);
  } else if (d->input.kind == SHOAL_VECTOR) {
    kernels->bytes_to_rows(from->c, plane, n, images, from->scale, from->shift, x);
  } else {
    /* A sequence, of an image with one channel: step after step, a piece of every image. */
    uint32_t features = d->input.features;
    for (uint32_t step = 0; step < d->input.steps; step++) {
      kernels->bytes_to_rows(1, features, n, images, from->scale, from->shift, x);
      x += (size_t)features * n;
      for (uint32_t i = 0; i < n; i++) images[i] += features;
    }
  }
}

static void fetch_images(const void *self, uint64_t epoch, uint64_t first, uint32_t n,
                         const shoal_batch *into) {
  const view *v = self;
  const shoal_dataset *d = v->dataset;
  chosen c;
  choose(&c, v, epoch, first, n);
  const uint8_t *images[SHOAL_FETCH_MAX];
  for (uint32_t i = 0; i < n; i++) {
    uint64_t number = c.numbers[i];
    images[i] = shoal_images_at(&d->images, number);
    write_answer(d, number, i, into);
  }
  if (into->x) images_to_x(d, images, n, into->x);
  write_ids(&c, n, 1, into);
}

static void fetch_table(const void *self, uint64_t epoch, uint64_t first, uint32_t n,
                        const shoal_batch *into) {
  const view *v = self;
  const shoal_dataset *d = v->dataset;
  chosen c;
  choose(&c, v, epoch, first, n);
  uint32_t features = d->table.columns.count;
  for (uint32_t i = 0; i < n; i++) {
    uint64_t number = c.numbers[i];
    if (into->x)
      memcpy(into->x + (size_t)i * features, d->table.values + number * features, features * sizeof(float));
    write_answer(d, number, i, into);
  }
  write_ids(&c, n, 1, into);
}

static void fetch_reverse(const void *self, uint64_t epoch, uint64_t first, uint32_t n,
                          const shoal_batch *into) {
  const view *v = self;
  const shoal_dataset *d = v->dataset;
  chosen c;
  choose(&c, v, epoch, first, n);
  uint32_t steps = d->input.steps;
  for (uint32_t i = 0; i < n; i++) {
    uint64_t number = c.numbers[i];
    for (uint32_t step = 0; step < steps; step++) {
      int32_t token = shoal_toy_token(number, step, d->alphabet);
      if (into->tokens) into->tokens[(size_t)step * n + i] = token;
      if (into->labels) into->labels[(size_t)(steps - 1 - step) * n + i] = token;
    }
  }
  write_ids(&c, n, steps, into);
}

static void fetch_wave(const void *self, uint64_t epoch, uint64_t first, uint32_t n,
                       const shoal_batch *into) {
  const view *v = self;
  const shoal_dataset *d = v->dataset;
  chosen c;
  choose(&c, v, epoch, first, n);
  uint32_t steps = d->output.steps;
  for (uint32_t i = 0; i < n; i++) {
    float input[SHOAL_TOY_WAVE_INPUTS];
    shoal_toy_wave_input(c.numbers[i], input);
    if (into->x) memcpy(into->x + (size_t)i * SHOAL_TOY_WAVE_INPUTS, input, sizeof input);
    for (uint32_t step = 0; into->targets && step < steps; step++)
      into->targets[(size_t)step * n + i] = shoal_toy_wave(input, step, steps);
  }
  write_ids(&c, n, steps, into);
}

/* Any of them is as good as another, so they come in the order of their numbers. */
static void fetch_noise(const void *self, uint64_t epoch, uint64_t first, uint32_t n,
                        const shoal_batch *into) {
  (void)epoch;
  const view *v = self;
  shoal_noise_fetch(v->dataset->noise, first, n, into);
}

static void fetch_text(const void *self, uint64_t epoch, uint64_t first, uint32_t n,
                       const shoal_batch *into) {
  const view *v = self;
  const shoal_streams *streams = &v->streams;
  bool every_step = v->dataset->output.kind == SHOAL_SEQUENCE;
  uint32_t steps = streams->steps;
  (void)epoch; /* a text is read in its order, every time */
  for (uint32_t i = 0; i < n; i++) {
    uint32_t places;
    uint64_t start = shoal_streams_window(streams, first + i, &places);
    const int32_t *tokens = streams->tokens + (places ? start : 0);
    for (uint32_t step = 0; step < steps; step++) {
      size_t to = (size_t)step * n + i;
      bool there = step < places;
      if (into->tokens) into->tokens[to] = there ? tokens[step] : 0;
      if (into->labels && every_step) into->labels[to] = there ? tokens[step + 1] : 0;
      if (into->weight && every_step) into->weight[to] = there;
    }
    /* One answer to the whole window: what comes after it. */
    bool whole = places == steps;
    if (into->labels && !every_step) into->labels[i] = whole ? tokens[steps] : 0;
    if (into->weight && !every_step) into->weight[i] = whole;
    if (into->ids) into->ids[i] = first + i;
  }
}

shoal_status shoal_dataset_source(shoal_dataset *dataset, shoal_split split, uint32_t batch, uint64_t seed,
                                  shoal_source *out, shoal_error *err) {
  static void (*const fetch[KINDS])(const void *, uint64_t, uint64_t, uint32_t, const shoal_batch *) = {
      fetch_images, fetch_table, fetch_text, fetch_reverse, fetch_wave, fetch_noise};
  static const char *const split_names[SHOAL_SPLITS] = {"training", "validation", "test"};
  SHOAL_ASSERT(split >= 0 && split < SHOAL_SPLITS && batch > 0);
  view *v = malloc(sizeof *v);
  if (!v) return fail_memory(err);
  *v = (view){.dataset = dataset, .split = split, .seed = seed, .older = dataset->views};
  uint64_t samples = dataset->parts.count[split];
  if (dataset->kind == TEXT) {
    const shoal_tokens *text = &dataset->tokens;
    shoal_streams_init(&v->streams, text->part[split], text->count[split], batch, dataset->input.steps);
    samples = v->streams.windows * batch;
  }
  if (samples == 0) {
    free(v);
    return shoal_fail(err, SHOAL_NOT_FOUND, "%s: there are no samples for %s", dataset->name,
                      split_names[split]);
  }
  dataset->views = v;
  *out = (shoal_source){.self = v, .samples = samples, .fetch = fetch[dataset->kind]};
  return SHOAL_OK;
}

/* ---- lanes --------------------------------------------------------------------------- */

enum { BLOCK_SAMPLES = 1024 }; /* of what is not read piece by piece */

/* The first number behind the block that a sample is in: as many images as go into a chunk, of one file. */
static uint64_t block_end(const shoal_dataset *d, uint64_t number) {
  if (d->kind != IMAGES) return number - number % BLOCK_SAMPLES + BLOCK_SAMPLES;
  const shoal_image_run *run = d->images.runs;
  while (number - run->first >= run->count) run++;
  uint64_t most = run->record_bytes < SHOAL_CHUNK_BYTES ? SHOAL_CHUNK_BYTES / run->record_bytes : 1;
  uint64_t place = number - run->first, end = place - place % most + most;
  return run->first + (end < run->count ? end : run->count);
}

/* The training samples in the order of their numbers, without those for validation. */
static shoal_status list_stored(view *v, shoal_error *err) {
  const shoal_parts *parts = &v->dataset->parts;
  uint64_t valid = parts->count[SHOAL_VALID], all = parts->count[SHOAL_TRAIN] + valid, count = 0;
  if (valid == 0) return SHOAL_OK;
  uint8_t *held = calloc(all, 1);
  v->stored = malloc(parts->count[SHOAL_TRAIN] * sizeof *v->stored);
  for (uint64_t i = 0; held && i < valid; i++) held[shoal_parts_number(parts, SHOAL_VALID, i)] = 1;
  for (uint64_t i = 0; held && v->stored && i < all; i++)
    if (!held[i]) v->stored[count++] = i;
  bool ok = held && v->stored;
  free(held);
  return ok ? SHOAL_OK : fail_memory(err);
}

static uint64_t number_of(const view *v, uint64_t stored) { return v->stored ? v->stored[stored] : stored; }

/* Where blocks begin among the training samples; those without any are left out. */
static uint64_t cut_blocks(const view *v, uint64_t samples, uint64_t *blocks) {
  uint64_t count = 0, end = 0;
  for (uint64_t i = 0; i < samples; i++) {
    uint64_t number = number_of(v, i);
    if (i > 0 && number < end) continue;
    if (blocks) blocks[count] = i;
    count++;
    end = block_end(v->dataset, number);
  }
  if (blocks) blocks[count] = samples;
  return count;
}

static view *view_of(shoal_dataset *d, const shoal_source *source) {
  view *v = d->views;
  while (v && v != source->self) v = v->older;
  SHOAL_ASSERT(v && v->split == SHOAL_TRAIN);
  return v;
}

static void forget_lanes(view *v) {
  shoal_lanes_destroy(v->lanes);
  free(v->stored);
  free(v->blocks);
  v->lanes = NULL;
  v->stored = v->blocks = NULL;
}

shoal_status shoal_dataset_deal(shoal_dataset *dataset, const shoal_source *source, uint32_t batch,
                                const shoal_deal *deal, shoal_error *err) {
  view *v = view_of(dataset, source);
  forget_lanes(v);
  if (dataset->kind == TEXT || dataset->kind == NOISE) return SHOAL_OK;
  shoal_status status = list_stored(v, err);
  if (status != SHOAL_OK) return status;
  uint64_t count = cut_blocks(v, source->samples, NULL);
  v->blocks = malloc((count + 1) * sizeof *v->blocks);
  if (!v->blocks) return fail_memory(err);
  cut_blocks(v, source->samples, v->blocks);
  const shoal_lanes_config config = {.seed = v->seed,
                                     .samples = source->samples,
                                     .batch = batch,
                                     .blocks = v->blocks,
                                     .blocks_count = count,
                                     .deal = *deal};
  return shoal_lanes_create(&v->lanes, &config, err);
}

/* ---- piece by piece -------------------------------------------------------------------- */

enum { EXPECTED_CHUNKS = 8 };

bool shoal_dataset_is_lazy(const shoal_dataset *dataset) { return dataset->store != NULL; }

/* Calls `what` for the chunks of the samples, one after the other, each at least once. False when it said
 * so. */
typedef bool chunk_call(void *self, uint32_t first, uint32_t count);

static bool each_chunk(const shoal_dataset *d, const view *v, uint64_t epoch, uint64_t first, uint64_t n,
                       chunk_call *what, void *self) {
  uint32_t last = UINT32_MAX;
  bool go_on = true;
  for (uint64_t done = 0; done < n && go_on; done += SHOAL_FETCH_MAX) {
    uint32_t some = n - done < SHOAL_FETCH_MAX ? (uint32_t)(n - done) : SHOAL_FETCH_MAX;
    chosen c;
    choose(&c, v, epoch, first + done, some);
    for (uint32_t i = 0; i < some && go_on; i++) {
      uint32_t chunk, count;
      if (!shoal_images_chunks(&d->images, c.numbers[i], &chunk, &count)) continue;
      if (chunk == last && count == 1) continue;
      go_on = what(self, chunk, count);
      last = chunk;
    }
  }
  return go_on;
}

typedef struct wanting {
  shoal_chunk_store *store;
  const volatile sig_atomic_t *stop;
  bool all_here;
  shoal_status status;
  shoal_error *err;
} wanting;

static bool want_chunks(void *self, uint32_t first, uint32_t count) {
  wanting *w = self;
  shoal_chunk_store_want(w->store, first, count, true);
  for (uint32_t i = 0; i < count; i++) w->all_here &= shoal_chunk_store_has(w->store, first + i);
  return true;
}

static bool wait_for_chunks(void *self, uint32_t first, uint32_t count) {
  wanting *w = self;
  w->status = shoal_chunk_store_wait(w->store, first, count, w->stop, w->err);
  return w->status == SHOAL_OK;
}

bool shoal_dataset_want(const shoal_dataset *dataset, const shoal_source *source, uint64_t epoch,
                        uint64_t first, uint64_t n) {
  wanting w = {.store = dataset->store, .all_here = true};
  if (dataset->store) each_chunk(dataset, source->self, epoch, first, n, want_chunks, &w);
  return w.all_here;
}

shoal_status shoal_dataset_wait(const shoal_dataset *dataset, const shoal_source *source, uint64_t epoch,
                                uint64_t first, uint64_t n, const volatile sig_atomic_t *stop,
                                shoal_error *err) {
  wanting w = {.store = dataset->store, .stop = stop, .err = err};
  if (dataset->store) each_chunk(dataset, source->self, epoch, first, n, wait_for_chunks, &w);
  return w.status;
}

/* Wants the blocks that a lane reads from a position's window on; how many there are, at most `most`. */
static uint32_t expect_blocks(const shoal_dataset *d, const view *v, uint64_t epoch, uint64_t position,
                              uint32_t most) {
  uint64_t blocks[EXPECTED_CHUNKS];
  uint32_t count = shoal_lanes_ahead(v->lanes, epoch, position, blocks, most);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t chunk, chunks;
    uint64_t number = number_of(v, v->blocks[blocks[i]]);
    if (shoal_images_chunks(&d->images, number, &chunk, &chunks))
      shoal_chunk_store_want(d->store, chunk, chunks, false);
  }
  return count;
}

void shoal_dataset_expect(const shoal_dataset *dataset, const shoal_source *source, uint64_t epoch,
                          uint64_t position, uint64_t end) {
  const view *v = source->self;
  if (!dataset->store) return;
  for (uint32_t i = 0; i < dataset->images.runs_count && !v->lanes; i++) {
    const shoal_manifest_file *file = dataset->images.chunked[i];
    if (file)
      shoal_chunk_store_want(dataset->store, (uint32_t)file->first_chunk, (uint32_t)file->chunks_count,
                             false);
  }
  if (!v->lanes) return;
  uint32_t count = expect_blocks(dataset, v, epoch, position, EXPECTED_CHUNKS);
  if (count < EXPECTED_CHUNKS && epoch + 1 < end)
    expect_blocks(dataset, v, epoch + 1, shoal_lanes_first(v->lanes, position), EXPECTED_CHUNKS - count);
}

static shoal_status wait_for_all(shoal_chunk_store *store, const volatile sig_atomic_t *stop,
                                 shoal_error *err) {
  uint32_t count = shoal_chunk_store_count(store);
  shoal_chunk_store_want(store, 0, count, true);
  return shoal_chunk_store_wait(store, 0, count, stop, err);
}

/* Waits for what opening reads. True: the rest comes piece by piece. */
static bool prepare(shoal_chunk_store *store, const volatile sig_atomic_t *stop, shoal_status *status,
                    shoal_error *err) {
  const char *what = shoal_chunk_store_manifest(store)->kind;
  *status = SHOAL_OK;
  if (shoal_chunk_store_is_whole(store)) return false;
  if (strcmp(what, "cifar") == 0) return true;
  if (strcmp(what, "idx") == 0 && shoal_idx_prepare(store, stop, status, err)) return true;
  *status = wait_for_all(store, stop, err);
  return false;
}

shoal_status shoal_dataset_prepare(shoal_chunk_store *store, const volatile sig_atomic_t *stop,
                                   shoal_error *err) {
  shoal_status status;
  prepare(store, stop, &status, err);
  return status;
}

/* ---- does the model fit? ------------------------------------------------------------ */

static shoal_status fail_input(const shoal_dataset *d, const char *has, const char *advice,
                               shoal_error *err) {
  char shape[SHOAL_SHAPE_TEXT_MAX];
  return shoal_fail(err, SHOAL_INVALID, "%s has %s, but the model's input is %s: write `input %s`", d->name,
                    has, shoal_shape_text(&d->input, shape), advice);
}

static shoal_status fail_output(const shoal_dataset *d, const char *has, const char *advice,
                                shoal_error *err) {
  char shape[SHOAL_SHAPE_TEXT_MAX];
  return shoal_fail(err, SHOAL_INVALID, "%s has %s, but the model's output is %s: %s", d->name, has,
                    shoal_shape_text(&d->output, shape), advice);
}

static shoal_status check_images_input(const shoal_dataset *d, shoal_error *err) {
  const shoal_images *images = &d->images;
  const shoal_shape *input = &d->input;
  uint64_t values = (uint64_t)images->c * images->h * images->w;
  bool fits = false;
  if (input->kind == SHOAL_IMAGE)
    fits = input->c == images->c && input->h == images->h && input->w == images->w;
  else if (input->kind == SHOAL_VECTOR)
    fits = input->features == values;
  else if (input->kind == SHOAL_SEQUENCE)
    fits = images->c == 1 && (uint64_t)input->steps * input->features == values;
  if (fits) return SHOAL_OK;
  char has[64], advice[96];
  snprintf(has, sizeof has, "images of %ux%ux%u", images->c, images->h, images->w);
  snprintf(advice, sizeof advice, "%ux%ux%u` or `input %llu", images->c, images->h, images->w,
           (unsigned long long)values);
  return fail_input(d, has, advice, err);
}

/* One answer a sample: a class or a number. */
static shoal_status check_answer(shoal_dataset *d, shoal_error *err) {
  char has[96], advice[96];
  uint64_t outputs = shoal_shape_values(&d->output);
  snprintf(has, sizeof has, "%u classes", d->classes);
  snprintf(advice, sizeof advice, "end it with `dense %u`%s", d->classes,
           d->kind == TABLE && d->classes > 100 ? ", or is the target a number? (`loss mean-squared`)" : "");
  if (d->output.kind == SHOAL_SEQUENCE)
    return fail_output(d, "one answer a sample", "end it with a vector (`lstm N last`, `flatten`, `dense N`)",
                       err);
  if (d->loss == SHOAL_CROSS_ENTROPY)
    return outputs >= d->classes ? SHOAL_OK : fail_output(d, has, advice, err);
  if (outputs == 1 && (d->loss != SHOAL_BINARY_CROSS_ENTROPY || d->classes <= 2)) return SHOAL_OK;
  if (d->classes > 1 && outputs == d->classes) {
    d->one_hot = true;
    return SHOAL_OK;
  }
  if (d->classes == 0) return fail_output(d, "one number to foretell", "end it with `dense 1`", err);
  return fail_output(d, has, advice, err);
}

static shoal_status check_text(const shoal_dataset *d, const shoal_model *model, shoal_error *err) {
  const char *units = d->tokens.unit == SHOAL_WORDS ? "words" : "characters";
  uint32_t vocabulary = d->tokens.vocabulary.count, embeds = shoal_model_vocabulary(model);
  char a[SHOAL_GROUPED_MAX], b[SHOAL_GROUPED_MAX], has[96], advice[96];
  if (d->input.kind != SHOAL_TOKENS) return fail_input(d, units, "tokens 20", err);
  if (d->loss != SHOAL_CROSS_ENTROPY)
    return shoal_fail(err, SHOAL_INVALID, "%s is a text, which needs `loss cross-entropy`", d->name);
  if (vocabulary > embeds)
    return shoal_fail(err, SHOAL_INVALID,
                      "vocabulary too large: %s has %s distinct %s, the model embeds %s; write `embed %u N`",
                      d->name, shoal_grouped(vocabulary, a), units, shoal_grouped(embeds, b), vocabulary);
  snprintf(has, sizeof has, "%s distinct %s", shoal_grouped(vocabulary, a), units);
  snprintf(advice, sizeof advice, "end it with `dense %u`", embeds);
  if (d->output.features < vocabulary) return fail_output(d, has, advice, err);
  if (d->output.kind == SHOAL_SEQUENCE && d->output.steps != d->input.steps)
    return fail_output(d, "one answer a step", "it must have as many steps as the input", err);
  return SHOAL_OK;
}

static shoal_status check_toy(shoal_dataset *d, const shoal_model *model, shoal_error *err) {
  if (d->kind == NOISE) {
    if (d->loss == SHOAL_CROSS_ENTROPY) d->classes = d->output.features;
    return shoal_noise_create(&d->noise, model, err);
  }
  if (d->kind == WAVE) {
    if (d->input.kind != SHOAL_VECTOR || d->input.features != SHOAL_TOY_WAVE_INPUTS)
      return fail_input(d, "frequency, phase and amplitude", "3", err);
    if (d->output.kind != SHOAL_SEQUENCE || d->output.features != 1)
      return fail_output(d, "one number a step", "use `repeat T` and end it with `dense 1`", err);
    if (d->loss == SHOAL_CROSS_ENTROPY || d->loss == SHOAL_BINARY_CROSS_ENTROPY)
      return shoal_fail(err, SHOAL_INVALID, "%s has numbers, which need `loss mean-squared`", d->name);
    return SHOAL_OK;
  }
  if (d->input.kind != SHOAL_TOKENS) return fail_input(d, "tokens", "tokens 10", err);
  d->classes = d->alphabet = shoal_model_vocabulary(model);
  if (d->alphabet == 0)
    return shoal_fail(err, SHOAL_INVALID, "%s needs an `embed` layer, which says how many tokens there are",
                      d->name);
  if (d->output.kind != SHOAL_SEQUENCE || d->output.steps != d->input.steps ||
      d->output.features < d->alphabet)
    return fail_output(d, "one token a step", "it must have the input's steps and `dense` as wide as `embed`",
                       err);
  if (d->loss != SHOAL_CROSS_ENTROPY)
    return shoal_fail(err, SHOAL_INVALID, "%s has tokens, which need `loss cross-entropy`", d->name);
  return SHOAL_OK;
}

/* ---- what was fitted ---------------------------------------------------------------- */

void shoal_dataset_fitted(const shoal_dataset *dataset, shoal_text *text) {
  const shoal_images *images = &dataset->images;
  shoal_json json;
  shoal_json_init(&json, text);
  shoal_json_open(&json, NULL, '{');
  shoal_json_text(&json, "kind", kind_names[dataset->kind]);
  if (dataset->kind == TABLE) shoal_table_write(&dataset->table, &json);
  if (dataset->kind == TEXT) shoal_tokens_write(&dataset->tokens, &json);
  if (dataset->kind == IMAGES) {
    shoal_json_open(&json, "shape", '[');
    shoal_json_int(&json, NULL, images->c);
    shoal_json_int(&json, NULL, images->h);
    shoal_json_int(&json, NULL, images->w);
    shoal_json_close(&json, ']');
    shoal_json_open(&json, "mean", '[');
    for (uint32_t c = 0; c < images->c; c++) shoal_json_real(&json, NULL, images->mean[c]);
    shoal_json_close(&json, ']');
    shoal_json_open(&json, "deviation", '[');
    for (uint32_t c = 0; c < images->c; c++) shoal_json_real(&json, NULL, images->deviation[c]);
    shoal_json_close(&json, ']');
    shoal_json_int(&json, "class_count", dataset->classes);
    shoal_names_write(&dataset->class_names, &json, "classes");
  }
  shoal_json_close(&json, '}');
}

/* Item i of the list `key`, when it is a number from min to max. */
static bool read_item(const cJSON *json, const char *key, int i, double min, double max, double *out) {
  const cJSON *item = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(json, key), i);
  if (!cJSON_IsNumber(item) || !(item->valuedouble >= min && item->valuedouble <= max)) return false;
  *out = item->valuedouble;
  return true;
}

static shoal_status read_images(shoal_dataset *d, const cJSON *json, shoal_error *err) {
  shoal_images *images = &d->images;
  const cJSON *classes = cJSON_GetObjectItemCaseSensitive(json, "class_count");
  double c, h, w;
  if (!read_item(json, "shape", 0, 1, SHOAL_IMAGE_CHANNELS_MAX, &c) ||
      !read_item(json, "shape", 1, 1, SHOAL_IMAGE_VALUES_MAX, &h) ||
      !read_item(json, "shape", 2, 1, SHOAL_IMAGE_VALUES_MAX, &w))
    return shoal_fail(err, SHOAL_CORRUPT, "'shape' is not that of an image");
  images->c = (uint32_t)c;
  images->h = (uint32_t)h;
  images->w = (uint32_t)w;
  for (uint32_t i = 0; i < images->c; i++) {
    if (!read_item(json, "mean", (int)i, 0, 1, &images->mean[i]) ||
        !read_item(json, "deviation", (int)i, 1e-6, 1, &images->deviation[i]))
      return shoal_fail(err, SHOAL_CORRUPT, "'mean' or 'deviation' of channel %u is wrong", i + 1);
  }
  if (!cJSON_IsNumber(classes) || classes->valuedouble < 0 || classes->valuedouble > 256)
    return shoal_fail(err, SHOAL_CORRUPT, "'class_count' is missing or wrong");
  d->classes = (uint32_t)classes->valuedouble;
  return shoal_names_read(&d->class_names, cJSON_GetObjectItemCaseSensitive(json, "classes"), d->classes,
                          "classes", err);
}

static shoal_status read_fitted(shoal_dataset *d, const char *text, shoal_error *err) {
  size_t length = strlen(text);
  cJSON *json = length <= SHOAL_FITTED_JSON_BYTES_MAX ? cJSON_ParseWithLength(text, length) : NULL;
  const cJSON *name = cJSON_GetObjectItemCaseSensitive(json, "kind");
  int found = 0;
  while (found < KINDS && !(cJSON_IsString(name) && strcmp(name->valuestring, kind_names[found]) == 0))
    found++;
  shoal_status status = SHOAL_OK;
  if (found == KINDS)
    status = shoal_fail(err, SHOAL_CORRUPT, "not a data set's JSON");
  else if (found == IMAGES)
    status = read_images(d, json, err);
  else if (found == TABLE)
    status = shoal_table_read_fitted(&d->table, json, err);
  else if (found == TEXT)
    status = shoal_tokens_read_fitted(&d->tokens, json, err);
  d->kind = (kind)found;
  cJSON_Delete(json);
  if (status != SHOAL_OK) shoal_error_prefix(err, "what was fitted to the training data cannot be read: ");
  return status;
}

/* ---- opening ------------------------------------------------------------------------ */

/* What to open, found from the text of --data. */
typedef struct plan {
  kind kind;
  const shoal_named_set *set; /* NULL for files */
  enum { FOLDER_IDX, FOLDER_CIFAR, FILE_IDX } images;
  shoal_text_unit unit;
  uint64_t samples, test;    /* of a toy */
  char *paths[SHOAL_SPLITS]; /* IMAGES: the first; TABLE: training and test; TEXT: its parts */
} plan;

static bool is_folder(const char *path) {
  struct stat about;
  return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

static bool is_file(const char *path) {
  struct stat about;
  return stat(path, &about) == 0 && !S_ISDIR(about.st_mode);
}

static char *join(const char *folder, const char *before, const char *name, const char *after) {
  shoal_text path;
  shoal_text_init(&path);
  shoal_text_addf(&path, "%s/%s%s%s", folder, before, name, after);
  if (path.failed) {
    shoal_text_release(&path);
    return NULL;
  }
  return path.bytes;
}

/* The texts of a folder: ptb.train.txt, train.txt, wiki.train.tokens and the like. */
static bool find_texts(plan *p, const char *folder) {
  static const char *const before[] = {"ptb.", "", "wiki."}, *const after[] = {".txt", ".tokens"};
  static const char *const names[SHOAL_SPLITS] = {"train", "valid", "test"};
  for (int i = 0; i < 6; i++) {
    for (int split = 0; split < SHOAL_SPLITS; split++) {
      char *path = join(folder, before[i % 3], names[split], after[i / 3]);
      if (!path || !is_file(path)) {
        free(path);
        path = NULL;
      }
      p->paths[split] = path;
    }
    if (p->paths[SHOAL_TRAIN]) return true;
    free(p->paths[SHOAL_VALID]);
    free(p->paths[SHOAL_TEST]);
    p->paths[SHOAL_VALID] = p->paths[SHOAL_TEST] = NULL;
  }
  return false;
}

static shoal_status plan_text(plan *p, shoal_text_unit unit, const char *path, shoal_error *err) {
  if (*path == '\0')
    return shoal_fail(err, SHOAL_INVALID, "text: and chars: need a file, as in text:novel.txt");
  p->kind = TEXT;
  p->unit = unit;
  if (!is_folder(path)) return (p->paths[SHOAL_TRAIN] = strdup(path)) ? SHOAL_OK : fail_memory(err);
  if (!find_texts(p, path)) return shoal_fail(err, SHOAL_NOT_FOUND, "%s: no train.txt in this folder", path);
  return SHOAL_OK;
}

static shoal_status plan_folder(plan *p, const char *folder, shoal_error *err) {
  bool idx = shoal_idx_is_folder(folder);
  bool cifar = shoal_cifar_is_folder(folder);
  if (!idx && !cifar && find_texts(p, folder)) {
    p->kind = TEXT;
    p->unit = SHOAL_WORDS;
    return SHOAL_OK;
  }
  if (!idx && !cifar)
    return shoal_fail(err, SHOAL_NOT_FOUND,
                      "%s: no data in this folder: looked for train-images-idx3-ubyte[.gz], data_batch_1.bin "
                      "and train.txt",
                      folder);
  p->kind = IMAGES;
  p->images = idx ? FOLDER_IDX : FOLDER_CIFAR;
  return (p->paths[0] = strdup(folder)) ? SHOAL_OK : fail_memory(err);
}

/* "train.csv,test.csv": the comma between two files that exist. */
static bool plan_pair(plan *p, const char *data) {
  for (const char *comma = strchr(data, ','); comma; comma = strchr(comma + 1, ',')) {
    char *first = strndup(data, (size_t)(comma - data)), *second = strdup(comma + 1);
    if (first && second && is_file(first) && is_file(second)) {
      p->kind = TABLE;
      p->paths[0] = first;
      p->paths[1] = second;
      return true;
    }
    free(first);
    free(second);
  }
  return false;
}

/* toy:reverse, toy:wave, toy:noise or toy:noise:SAMPLES, which has none for test. */
static shoal_status plan_toy(plan *p, const char *data, shoal_error *err) {
  const char *noise = kind_names[NOISE], *end = data + strlen(data);
  size_t length = strlen(noise);
  p->samples = SHOAL_TOY_TRAINING;
  p->test = SHOAL_TOY_TEST;
  for (p->kind = REVERSE; p->kind <= NOISE; p->kind++)
    if (strcmp(data, kind_names[p->kind]) == 0) return SHOAL_OK;
  bool sized = strncmp(data, noise, length) == 0 && data[length] == ':' &&
               shoal_read_u64(data + length + 1, (size_t)(end - data) - length - 1, &p->samples);
  if (!sized || p->samples == 0 || p->samples > SHOAL_NOISE_SAMPLES_MAX)
    return shoal_fail(err, SHOAL_NOT_FOUND,
                      "'%.60s' is unknown; there are toy:noise, toy:noise:SAMPLES, toy:reverse and toy:wave",
                      data);
  p->kind = NOISE;
  p->test = 0;
  return SHOAL_OK;
}

static shoal_status make_plan(plan *p, const char *data, const char *data_dir, shoal_error *err) {
  if (strncmp(data, "text:", 5) == 0) return plan_text(p, SHOAL_WORDS, data + 5, err);
  if (strncmp(data, "chars:", 6) == 0) return plan_text(p, SHOAL_CHARACTERS, data + 6, err);
  if (strncmp(data, "toy:", 4) == 0) return plan_toy(p, data, err);
  p->set = shoal_named_set_of(data);
  if (p->set) {
    char *folder;
    shoal_status status = shoal_named_locate(p->set, data_dir, &folder, err);
    if (status == SHOAL_OK) status = plan_folder(p, folder, err);
    free(folder);
    return status;
  }
  if (is_folder(data)) return plan_folder(p, data, err);
  if (is_file(data)) {
    p->kind = shoal_idx_is_images(data) ? IMAGES : TABLE;
    p->images = FILE_IDX;
    return (p->paths[0] = strdup(data)) ? SHOAL_OK : fail_memory(err);
  }
  if (plan_pair(p, data)) return SHOAL_OK;
  const char *nearest = shoal_named_nearest(data);
  if (nearest)
    return shoal_fail(err, SHOAL_NOT_FOUND, "no data set or file is called '%.200s'; did you mean '%s'?",
                      data, nearest);
  return shoal_fail(err, SHOAL_NOT_FOUND,
                    "no data set or file is called '%.200s'; `shoal data list` shows the data sets", data);
}

static shoal_status open_images(shoal_dataset *d, const plan *p, const shoal_dataset_options *options,
                                shoal_error *err) {
  shoal_images fitted = d->images, *images = &d->images;
  uint32_t fitted_classes = d->classes;
  shoal_status status;
  d->kernels = shoal_kernels_get();
  if (!d->kernels)
    return shoal_fail(err, SHOAL_UNSUPPORTED, "SHOAL_KERNELS names kernels that this machine does not have");
  if (p->images == FOLDER_IDX)
    status = shoal_idx_open_folder(images, p->paths[0], d->store, err);
  else if (p->images == FOLDER_CIFAR)
    status = shoal_cifar_open(images, p->paths[0], d->store, err);
  else
    status = shoal_idx_open_file(images, p->paths[0], options->unlabeled,
                                 options->unlabeled || options->fitted_json, err);
  if (status != SHOAL_OK) return status;
  if (options->fitted_json) {
    if (images->c != fitted.c || images->h != fitted.h || images->w != fitted.w)
      return shoal_fail(err, SHOAL_INVALID, "%s has images of %ux%ux%u; the model was trained on %ux%ux%u",
                        d->name, images->c, images->h, images->w, fitted.c, fitted.h, fitted.w);
    if (images->classes > fitted_classes)
      return shoal_fail(err, SHOAL_INVALID, "%s has the label %u; the model was trained on %u classes",
                        d->name, images->classes - 1, fitted_classes);
    images->classes = fitted_classes;
  }
  d->classes = images->classes;
  const char *const *names = p->set ? p->set->classes : shoal_cifar_names;
  uint32_t names_count = p->set ? p->set->classes_count : p->images == FOLDER_CIFAR ? 10 : 0;
  for (uint32_t i = 0; d->class_names.count < d->classes && i < names_count && i < d->classes; i++) {
    if (shoal_names_add(&d->class_names, names[i], strlen(names[i])) == SHOAL_NO_NAME)
      return fail_memory(err);
  }
  shoal_parts_init(&d->parts, images->training, images->test, options->valid_share);
  if (options->fitted_json)
    shoal_images_scale(images);
  else
    shoal_images_fit(images, &d->parts);
  return SHOAL_OK;
}

static shoal_status open_table(shoal_dataset *d, const plan *p, const shoal_dataset_options *options,
                               shoal_error *err) {
  shoal_target_kind target = d->loss == SHOAL_CROSS_ENTROPY          ? SHOAL_TARGET_CLASSES
                             : d->loss == SHOAL_BINARY_CROSS_ENTROPY ? SHOAL_TARGET_TWO
                                                                     : SHOAL_TARGET_NUMBER;
  shoal_status status =
      shoal_table_open(&d->table, p->paths[0], p->paths[1], options->target, target, options->unlabeled, err);
  if (status != SHOAL_OK) return status;
  d->classes = d->table.classes.count;
  shoal_parts_init(&d->parts, d->table.training, d->table.test, options->valid_share);
  uint32_t columns = d->table.columns.count;
  if (d->input.kind != SHOAL_VECTOR || d->input.features != columns) {
    char has[64], advice[32];
    snprintf(has, sizeof has, "%u feature columns", columns);
    snprintf(advice, sizeof advice, "%u", columns);
    return fail_input(d, has, advice, err);
  }
  return shoal_table_scale(&d->table, &d->parts, err);
}

static shoal_status count_classes(shoal_dataset *d, shoal_error *err) {
  d->class_counts = calloc(d->classes ? d->classes : 1, sizeof *d->class_counts);
  if (!d->class_counts) return fail_memory(err);
  /* All that are not for test, without those for validation. */
  uint64_t valid = d->parts.count[SHOAL_VALID], training = d->parts.count[SHOAL_TRAIN] + valid;
  /* CIFAR-10's labels are beside the images: piece by piece they are not here yet. */
  bool labels = !d->store || d->images.runs[0].label_stride == 1;
  bool samples = d->classes > 0 && labels && (d->kind == IMAGES || d->kind == TABLE);
  for (uint64_t i = 0; samples && i < training; i++) d->class_counts[label_of(d, i)]++;
  for (uint64_t i = 0; samples && i < valid; i++)
    d->class_counts[label_of(d, shoal_parts_number(&d->parts, SHOAL_VALID, i))]--;
  for (uint64_t i = 1; d->kind == TEXT && i < d->tokens.count[SHOAL_TRAIN]; i++)
    d->class_counts[d->tokens.part[SHOAL_TRAIN][i]]++;
  return SHOAL_OK;
}

static shoal_dataset *dataset_create(void) {
  shoal_dataset *d = calloc(1, sizeof *d);
  if (!d) return NULL;
  shoal_images_init(&d->images);
  shoal_table_init(&d->table);
  shoal_tokens_init(&d->tokens);
  shoal_names_init(&d->class_names);
  return d;
}

void shoal_dataset_close(shoal_dataset *dataset) {
  if (!dataset) return;
  for (view *v = dataset->views; v;) {
    view *older = v->older;
    forget_lanes(v);
    free(v);
    v = older;
  }
  shoal_images_release(&dataset->images);
  shoal_table_release(&dataset->table);
  shoal_tokens_release(&dataset->tokens);
  shoal_names_release(&dataset->class_names);
  shoal_noise_destroy(dataset->noise);
  free(dataset->class_counts);
  free(dataset->name);
  free(dataset);
}

static shoal_status open_plan(shoal_dataset *d, const plan *p, const shoal_dataset_options *options,
                              const shoal_model *model, shoal_error *err) {
  if (options->fitted_json) {
    shoal_status status = read_fitted(d, options->fitted_json, err);
    if (status != SHOAL_OK) return status;
    if (d->kind != p->kind)
      return shoal_fail(err, SHOAL_INVALID, "%s is of the kind '%s'; the model was trained on '%s'", d->name,
                        kind_names[p->kind], kind_names[d->kind]);
  }
  d->kind = p->kind;
  shoal_status status = SHOAL_OK;
  if (p->kind == IMAGES) {
    status = open_images(d, p, options, err);
    if (status == SHOAL_OK) status = check_images_input(d, err);
    if (status == SHOAL_OK && !d->images.labeled && !options->unlabeled)
      return shoal_fail(err, SHOAL_NOT_FOUND,
                        "%s: there is no file of labels beside it; to predict without, use `shoal predict "
                        "--input`",
                        d->name);
    if (status == SHOAL_OK && d->images.labeled) status = check_answer(d, err);
  } else if (p->kind == TABLE && d->input.kind == SHOAL_TOKENS) {
    status = shoal_fail(err, SHOAL_INVALID,
                        "%s would be read as a table, but the model takes tokens: write text:%s or chars:%s",
                        d->name, d->name, d->name);
  } else if (p->kind == TABLE) {
    status = open_table(d, p, options, err);
    if (status == SHOAL_OK && d->table.labeled) status = check_answer(d, err);
  } else if (p->kind == TEXT) {
    status = shoal_tokens_open(&d->tokens, p->unit, (const char *const *)p->paths, err);
    d->classes = d->tokens.vocabulary.count;
    if (status == SHOAL_OK) status = check_text(d, model, err);
  } else {
    shoal_parts_init(&d->parts, p->samples, p->test, options->valid_share);
    status = check_toy(d, model, err);
  }
  return status == SHOAL_OK ? count_classes(d, err) : status;
}

/* Weights of classes need all labels, which CIFAR-10 has beside the images. */
static shoal_status open_store(shoal_dataset *d, const shoal_dataset_options *options,
                               const shoal_model *model, shoal_error *err) {
  shoal_status status;
  bool counts = model->recipe.class_weights_balanced;
  if (!options->fitted_json || counts) return wait_for_all(options->store, options->stop, err);
  if (prepare(options->store, options->stop, &status, err)) d->store = options->store;
  return status;
}

shoal_status shoal_dataset_open(shoal_dataset **out, const shoal_dataset_options *options,
                                const shoal_model *model, shoal_error *err) {
  *out = NULL;
  if (!(options->valid_share >= 0 && options->valid_share <= 0.9))
    return shoal_fail(err, SHOAL_INVALID, "the share for validation is %g; 0 to 0.9 is possible",
                      options->valid_share);
  plan p = {0};
  shoal_dataset *d = dataset_create();
  shoal_status status = SHOAL_OK;
  if (!d || !(d->name = strdup(options->data))) {
    status = fail_memory(err);
    goto end;
  }
  d->input = model->layers[0].shape;
  d->output = model->layers[model->layers_count - 1].shape;
  d->loss = model->recipe.loss;
  if (options->store) status = open_store(d, options, model, err);
  if (status == SHOAL_OK) status = make_plan(&p, options->data, options->data_dir, err);
  if (status == SHOAL_OK && options->target && p.kind != TABLE)
    status = shoal_fail(err, SHOAL_INVALID, "%s is not a table, so it has no target column '%.60s' to choose",
                        options->data, options->target);
  if (status == SHOAL_OK) status = open_plan(d, &p, options, model, err);
end:
  for (int i = 0; i < SHOAL_SPLITS; i++) free(p.paths[i]);
  if (status != SHOAL_OK) {
    shoal_dataset_close(d);
    return status;
  }
  *out = d;
  return SHOAL_OK;
}

shoal_status shoal_dataset_open_fitted(shoal_dataset **out, const char *fitted_json, shoal_error *err) {
  *out = NULL;
  shoal_dataset *d = dataset_create();
  if (!d || !(d->name = strdup("the model's own data"))) {
    shoal_dataset_close(d);
    return fail_memory(err);
  }
  shoal_status status = read_fitted(d, fitted_json, err);
  if (status == SHOAL_OK && d->kind == TABLE) d->classes = d->table.classes.count;
  if (status == SHOAL_OK && d->kind == TEXT) d->classes = d->tokens.vocabulary.count;
  if (status == SHOAL_OK) status = count_classes(d, err);
  if (status != SHOAL_OK) {
    shoal_dataset_close(d);
    return status;
  }
  *out = d;
  return SHOAL_OK;
}

/* ---- questions ---------------------------------------------------------------------- */

uint64_t shoal_dataset_samples(const shoal_dataset *dataset, shoal_split split) {
  if (dataset->kind != TEXT) return dataset->parts.count[split];
  uint64_t tokens = dataset->tokens.count[split];
  return tokens > 1 ? tokens : 0; /* one has no successor to foretell */
}

bool shoal_dataset_is_text(const shoal_dataset *dataset) { return dataset->kind == TEXT; }

bool shoal_dataset_is_images(const shoal_dataset *dataset) { return dataset->kind == IMAGES; }

uint32_t shoal_dataset_classes(const shoal_dataset *dataset) { return dataset->classes; }

const char *shoal_dataset_class_name(const shoal_dataset *dataset, uint32_t class_index) {
  const shoal_names *names = dataset->kind == TABLE  ? &dataset->table.classes
                             : dataset->kind == TEXT ? &dataset->tokens.vocabulary
                                                     : &dataset->class_names;
  return class_index < names->count ? shoal_names_at(names, class_index) : NULL;
}

uint64_t shoal_dataset_class_count(const shoal_dataset *dataset, uint32_t class_index) {
  return class_index < dataset->classes ? dataset->class_counts[class_index] : 0;
}

shoal_status shoal_dataset_encode(const shoal_dataset *dataset, const char *text, int32_t *tokens, size_t max,
                                  size_t *count, shoal_error *err) {
  *count = 0;
  if (dataset->kind != TEXT) return shoal_fail(err, SHOAL_UNSUPPORTED, "%s is not a text", dataset->name);
  return shoal_tokens_encode(&dataset->tokens, text, tokens, max, count, err);
}
