/* dataset_source.c: the sources of a data set, and what of it they need; see dataset.h.
 *
 * Each kind of data has one fetch function below, which is a pure function of the position, the epoch and the
 * seed. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "data/augment.h"
#include "data/dataset_internal.h"
#include "data/toy.h"

static shoal_status fail_memory(shoal_error *err) {
  return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
}

/* ---- fetching ----------------------------------------------------------------------- */

/* The numbers of the samples that a fetch is about. */
typedef struct chosen {
  uint64_t numbers[SHOAL_FETCH_MAX];
} chosen;

static void choose(chosen *c, const shoal_view *v, uint64_t epoch, uint64_t first, uint32_t n) {
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

int32_t shoal_dataset_label(const shoal_dataset *d, uint64_t number) {
  return d->kind == SHOAL_DATA_IMAGES ? shoal_images_label(&d->images, number) : d->table.labels[number];
}

/* What the network should answer to one sample, as a label or as numbers. */
static void write_answer(const shoal_dataset *d, uint64_t number, uint32_t i, const shoal_batch *into) {
  int32_t label = shoal_dataset_label(d, number);
  float target = d->kind == SHOAL_DATA_IMAGES ? (float)label : d->table.targets[number];
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

/* The same of images that are flipped and moved, a few pixels of a row at a time. */
enum { PIXELS_AT_ONCE = 64 };

static void augmented_to_lanes(const shoal_dataset *d, const shoal_augmented *how,
                               const uint8_t *const *images, uint32_t n, float *x) {
  uint8_t pixels[SHOAL_FETCH_MAX][PIXELS_AT_ONCE];
  const uint8_t *at[SHOAL_FETCH_MAX];
  const shoal_images *from = &d->images;
  uint32_t lanes = shoal_lanes_for(n), h = from->h, w = from->w;
  for (uint32_t i = 0; i < n; i++) at[i] = pixels[i];
  for (uint32_t row = 0; row < from->c * h; row++)
    for (uint32_t begin = 0; begin < w; begin += PIXELS_AT_ONCE) {
      uint32_t count = w - begin < PIXELS_AT_ONCE ? w - begin : PIXELS_AT_ONCE, c = row / h;
      for (uint32_t i = 0; i < n; i++)
        shoal_augment_pixels(&how[i], images[i] + (size_t)c * h * w, h, w, row % h, begin, count, pixels[i]);
      d->kernels->bytes_to_lanes(1, count, lanes, n, at, &from->scale[c], &from->shift[c],
                                 x + ((size_t)row * w + begin) * lanes);
    }
}

/* To a vector, or to steps of a sequence: `features` values of every image lie together. */
static void augmented_to_rows(const shoal_dataset *d, const shoal_augmented *how,
                              const uint8_t *const *images, uint32_t n, float *x) {
  const shoal_images *from = &d->images;
  uint32_t h = from->h, w = from->w, plane = h * w, values = from->c * plane;
  uint32_t features = d->input.kind == SHOAL_VECTOR ? values : d->input.features;
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t place = 0, count; place < values; place += count) {
      uint8_t pixels[PIXELS_AT_ONCE];
      const uint8_t *at = pixels;
      uint32_t c = place / plane, column = place % w, feature = place % features;
      count = w - column < features - feature ? w - column : features - feature;
      count = count < PIXELS_AT_ONCE ? count : PIXELS_AT_ONCE;
      shoal_augment_pixels(&how[i], images[i] + (size_t)c * plane, h, w, place % plane / w, column, count,
                           pixels);
      d->kernels->bytes_to_rows(1, count, 1, &at, &from->scale[c], &from->shift[c],
                                x + ((size_t)(place / features) * n + i) * features + feature);
    }
}

static void augmented_to_x(const shoal_view *v, uint64_t epoch, const chosen *c, const uint8_t *const *images,
                           uint32_t n, float *x) {
  shoal_augmented how[SHOAL_FETCH_MAX];
  for (uint32_t i = 0; i < n; i++) how[i] = shoal_augment_draw(&v->augment, v->seed, epoch, c->numbers[i]);
  (v->dataset->input.kind == SHOAL_IMAGE ? augmented_to_lanes : augmented_to_rows)(v->dataset, how, images, n,
                                                                                   x);
}

static void fetch_images(const void *self, uint64_t epoch, uint64_t first, uint32_t n,
                         const shoal_batch *into) {
  const shoal_view *v = self;
  const shoal_dataset *d = v->dataset;
  chosen c;
  choose(&c, v, epoch, first, n);
  const uint8_t *images[SHOAL_FETCH_MAX];
  for (uint32_t i = 0; i < n; i++) {
    uint64_t number = c.numbers[i];
    images[i] = shoal_images_at(&d->images, number);
    write_answer(d, number, i, into);
  }
  bool changes = v->augment.flip || v->augment.crop > 0;
  if (into->x && changes) augmented_to_x(v, epoch, &c, images, n, into->x);
  if (into->x && !changes) images_to_x(d, images, n, into->x);
  write_ids(&c, n, 1, into);
}

static void fetch_table(const void *self, uint64_t epoch, uint64_t first, uint32_t n,
                        const shoal_batch *into) {
  const shoal_view *v = self;
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
  const shoal_view *v = self;
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
  const shoal_view *v = self;
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
  const shoal_view *v = self;
  shoal_noise_fetch(v->dataset->noise, first, n, into);
}

static void fetch_text(const void *self, uint64_t epoch, uint64_t first, uint32_t n,
                       const shoal_batch *into) {
  const shoal_view *v = self;
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

const char *shoal_dataset_sample_file(const shoal_dataset *dataset, const shoal_source *source,
                                      uint64_t position) {
  chosen c;
  if (dataset->files.count == 0 || position >= source->samples) return NULL;
  choose(&c, source->self, 0, position, 1);
  return dataset->files.entries[c.numbers[0]].path;
}

shoal_status shoal_dataset_source(shoal_dataset *dataset, shoal_split split, uint32_t batch, uint64_t seed,
                                  shoal_source *out, shoal_error *err) {
  static void (*const fetch[SHOAL_DATA_KINDS])(const void *, uint64_t, uint64_t, uint32_t,
                                               const shoal_batch *) = {
      fetch_images, fetch_table, fetch_text, fetch_reverse, fetch_wave, fetch_noise};
  static const char *const split_names[SHOAL_SPLITS] = {"training", "validation", "test"};
  SHOAL_ASSERT(split >= 0 && split < SHOAL_SPLITS && batch > 0);
  shoal_view *v = malloc(sizeof *v);
  if (!v) return fail_memory(err);
  *v = (shoal_view){.dataset = dataset, .split = split, .seed = seed, .older = dataset->views};
  uint64_t samples = dataset->parts.count[split];
  if (dataset->kind == SHOAL_DATA_TEXT) {
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
  if (d->kind != SHOAL_DATA_IMAGES) return number - number % BLOCK_SAMPLES + BLOCK_SAMPLES;
  const shoal_image_run *run = d->images.runs;
  while (number - run->first >= run->count) run++;
  uint64_t most = run->record_bytes < SHOAL_CHUNK_BYTES ? SHOAL_CHUNK_BYTES / run->record_bytes : 1;
  uint64_t place = number - run->first, end = place - place % most + most;
  return run->first + (end < run->count ? end : run->count);
}

/* The training samples in the order of their numbers, without those for validation. */
static shoal_status list_stored(shoal_view *v, shoal_error *err) {
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

static uint64_t number_of(const shoal_view *v, uint64_t stored) {
  return v->stored ? v->stored[stored] : stored;
}

/* Where blocks begin among the training samples; those without any are left out. */
static uint64_t cut_blocks(const shoal_view *v, uint64_t samples, uint64_t *blocks) {
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

static shoal_view *view_of(shoal_dataset *d, const shoal_source *source) {
  shoal_view *v = d->views;
  while (v && v != source->self) v = v->older;
  SHOAL_ASSERT(v && v->split == SHOAL_TRAIN);
  return v;
}

static void forget_lanes(shoal_view *v) {
  shoal_lanes_destroy(v->lanes);
  free(v->stored);
  free(v->blocks);
  v->lanes = NULL;
  v->stored = v->blocks = NULL;
}

shoal_status shoal_dataset_deal(shoal_dataset *dataset, const shoal_source *source, uint32_t batch,
                                const shoal_deal *deal, shoal_error *err) {
  shoal_view *v = view_of(dataset, source);
  forget_lanes(v);
  if (dataset->kind == SHOAL_DATA_TEXT || dataset->kind == SHOAL_DATA_NOISE) return SHOAL_OK;
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

void shoal_dataset_augment(shoal_dataset *dataset, const shoal_source *source, const shoal_augment *augment) {
  view_of(dataset, source)->augment = *augment;
}

/* ---- piece by piece -------------------------------------------------------------------- */

enum { EXPECTED_CHUNKS = 8 };

bool shoal_dataset_is_lazy(const shoal_dataset *dataset) { return dataset->store != NULL; }

/* Calls `what` for the chunks of the samples, one after the other, each at least once. False when it said
 * so. */
typedef bool chunk_call(void *self, uint32_t first, uint32_t count);

static bool each_chunk(const shoal_dataset *d, const shoal_view *v, uint64_t epoch, uint64_t first,
                       uint64_t n, chunk_call *what, void *self) {
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
static uint32_t expect_blocks(const shoal_dataset *d, const shoal_view *v, uint64_t epoch, uint64_t position,
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
  const shoal_view *v = source->self;
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

void shoal_dataset_forget_sources(shoal_dataset *dataset) {
  for (shoal_view *v = dataset->views; v;) {
    shoal_view *older = v->older;
    forget_lanes(v);
    free(v);
    v = older;
  }
  dataset->views = NULL;
}
