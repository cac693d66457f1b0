/* Data that comes in chunks: images piece by piece, only what samples need, and the same numbers as from
 * whole files; everything else as a whole. */
#include "chunked.h"

#include "data/cifar.h"
#include "data/dataset.h"
#include "data/idx.h"

enum {
  SIDE = 64,
  PIXELS = SIDE * SIDE,
  IMAGES = 2600,
  BATCH = 100,
  LANES = 5,
  PER_CHUNK = SHOAL_CHUNK_BYTES / PIXELS
};

static const char IDX_NET[] = "input 1x64x64\ndense 10\nloss cross-entropy\n";
static const char CIFAR_NET[] = "input 3x32x32\ndense 10\nloss cross-entropy\n";
static const char TABLE_NET[] = "input 2\ndense 1\nloss mean-squared\n";

static void add_idx(chunked *c, const char *name, int dims_count, const uint32_t *dims) {
  size_t length = 4 + 4 * (size_t)dims_count, values = 1;
  for (int i = 0; i < dims_count; i++) values *= dims[i];
  uint8_t *bytes = malloc(length + values);
  uint32_t state = 1 + c->files_count;
  make_idx(bytes, dims_count, (const uint32_t[]){1, 1, 1}, 0);
  for (int i = 0; i < dims_count; i++)
    for (int k = 0; k < 4; k++) bytes[4 + 4 * i + k] = (uint8_t)(dims[i] >> (24 - 8 * k));
  for (size_t i = 0; i < values; i++) {
    state = state * 1664525 + 1013904223;
    bytes[length + i] = (uint8_t)(dims_count == 1 ? (state >> 24) % 10 : state >> 24);
  }
  shoal_cut cut = {.bytes = length + values};
  shoal_idx_cut(&cut, bytes, length);
  add_file(c, name, bytes, cut);
}

static void make_idx_set(chunked *c) {
  add_idx(c, "t10k-images-idx3-ubyte", 3, (const uint32_t[]){300, SIDE, SIDE});
  add_idx(c, "t10k-labels-idx1-ubyte", 1, (const uint32_t[]){300});
  add_idx(c, "train-images-idx3-ubyte", 3, (const uint32_t[]){IMAGES, SIDE, SIDE});
  add_idx(c, "train-labels-idx1-ubyte", 1, (const uint32_t[]){IMAGES});
}

static void make_cifar_set(chunked *c) {
  static const char *const names[] = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                      "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"};
  for (int f = 0; f < 6; f++) {
    size_t records = 700, length = records * 3073;
    uint8_t *bytes = malloc(length);
    for (size_t i = 0; i < length; i++)
      bytes[i] = (uint8_t)(i % 3073 == 0 ? (i / 3073 + (size_t)f) % 10 : i * 7 + i / 3073 + (size_t)f);
    shoal_cut cut = {.bytes = length};
    shoal_cifar_cut(&cut);
    add_file(c, names[f], bytes, cut);
  }
}

static void put_all(const chunked *c, const char *into) {
  for (uint32_t i = 0; i < c->files_count; i++) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", into, c->files[i].name);
    put(path, c->files[i].bytes, c->files[i].cut.bytes);
  }
}

/* A data set, ordered by lanes. */
typedef struct opened {
  shoal_model *model;
  shoal_dataset *dataset;
  shoal_source source;
} opened;

static void open_set(opened *o, const char *net, const shoal_dataset_options *options) {
  shoal_error err;
  o->model = model_of(net);
  if (shoal_dataset_open(&o->dataset, options, o->model, &err) != SHOAL_OK ||
      shoal_dataset_source(o->dataset, SHOAL_TRAIN, BATCH, 3, &o->source, &err) != SHOAL_OK)
    fail_msg("%s", err.text);
  uint32_t starts[LANES + 1], last[LANES + 1], rows = (uint32_t)((o->source.samples - 1) % BATCH + 1);
  for (uint32_t v = 0; v <= LANES; v++) {
    starts[v] = v * BATCH / LANES;
    last[v] = v * rows / LANES;
  }
  const shoal_deal deal = {.lanes = LANES, .starts = starts, .last_starts = last};
  if (shoal_dataset_deal(o->dataset, &o->source, BATCH, &deal, &err) != SHOAL_OK) fail_msg("%s", err.text);
}

static void close_set(opened *o) {
  shoal_dataset_close(o->dataset);
  shoal_model_destroy(o->model);
}

static void check_equal(const opened *a, const opened *b, uint64_t epoch, uint64_t first, uint32_t n) {
  size_t values = shoal_shape_values(&a->model->layers[0].shape);
  size_t room = values * (n + 16);
  float *x[2];
  int32_t labels[2][SHOAL_FETCH_MAX];
  uint64_t ids[2][SHOAL_FETCH_MAX];
  const opened *sets[2] = {a, b};
  for (int i = 0; i < 2; i++) {
    x[i] = aligned_alloc(64, (room * sizeof(float) + 63) / 64 * 64);
    memset(x[i], 0, room * sizeof(float));
    shoal_batch into = {.x = x[i], .labels = labels[i], .ids = ids[i]};
    sets[i]->source.fetch(sets[i]->source.self, epoch, first, n, &into);
  }
  assert_memory_equal(ids[0], ids[1], n * sizeof ids[0][0]);
  assert_memory_equal(labels[0], labels[1], n * sizeof labels[0][0]);
  assert_memory_equal(x[0], x[1], room * sizeof(float));
  free(x[0]);
  free(x[1]);
}

static shoal_chunk_store *store_of(const shoal_manifest *m) {
  const shoal_chunk_store_options options = {.cache = "cache", .cache_bytes_max = (uint64_t)1 << 30};
  shoal_chunk_store *store;
  shoal_error err;
  if (shoal_chunk_store_open(&store, m, &options, &err) != SHOAL_OK) fail_msg("%s", err.text);
  return store;
}

/* One lane of all rounds of an epoch needs a fifth of the chunks and a little more, and has the numbers of
 * whole files. */
static void check_one_lane(chunked *c, const char *kind, const char *net, double valid, uint32_t at_open,
                           uint32_t images_chunks) {
  assert_int_equal(system("mkdir -p whole"), 0);
  put_all(c, "whole");
  opened whole, piecewise;
  open_set(&whole, net, &(shoal_dataset_options){.data = "whole", .valid_share = valid});
  shoal_text fitted = {0};
  shoal_dataset_fitted(whole.dataset, &fitted);

  shoal_manifest *m = manifest_of(c, "mine", kind);
  shoal_chunk_store *store = store_of(m);
  start_bringing(c, store);
  open_set(&piecewise, net,
           &(shoal_dataset_options){.data = shoal_chunk_store_data(store),
                                    .store = store,
                                    .fitted_json = fitted.bytes,
                                    .valid_share = valid});
  assert_true(shoal_dataset_is_lazy(piecewise.dataset));
  assert_false(shoal_dataset_is_lazy(whole.dataset));
  assert_int_equal(shoal_chunk_store_progress(store).chunks_put, at_open);
  assert_int_equal(piecewise.source.samples, whole.source.samples);
  const uint32_t lane = 2, rows = BATCH / LANES;
  uint64_t rounds = whole.source.samples / BATCH;
  for (uint64_t r = 0; r < rounds; r++) {
    uint64_t first = r * BATCH + lane * rows;
    shoal_dataset_want(piecewise.dataset, &piecewise.source, 1, first, rows);
    assert_int_equal(shoal_dataset_wait(piecewise.dataset, &piecewise.source, 1, first, rows, NULL, NULL),
                     SHOAL_OK);
    assert_true(shoal_dataset_want(piecewise.dataset, &piecewise.source, 1, first, rows));
    check_equal(&whole, &piecewise, 1, first, rows);
  }
  uint32_t put_so_far = shoal_chunk_store_progress(store).chunks_put - at_open;
  assert_true(put_so_far <= images_chunks / LANES + 2);
  assert_true(put_so_far >= images_chunks / LANES);
  /* What is to be expected at the beginning is what was needed; then everything, of another epoch too. */
  shoal_dataset_expect(piecewise.dataset, &piecewise.source, 1, lane * rows, 2);
  usleep(20000);
  assert_int_equal(shoal_chunk_store_progress(store).chunks_put - at_open, put_so_far);
  uint64_t all = whole.source.samples;
  assert_int_equal(shoal_dataset_want(piecewise.dataset, &piecewise.source, 2, 0, all), false);
  assert_int_equal(shoal_dataset_wait(piecewise.dataset, &piecewise.source, 2, 0, all, NULL, NULL), SHOAL_OK);
  for (uint64_t at = 0; at + 200 <= all; at += 200) check_equal(&whole, &piecewise, 2, at, 200);
  /* Test images were never asked for. */
  assert_false(shoal_chunk_store_is_whole(store));
  stop_bringing(c);
  close_set(&piecewise);
  close_set(&whole);
  shoal_text_release(&fitted);
  shoal_chunk_store_close(store);
  forget_manifest(m);
  release_chunked(c);
}

static void idx_comes_piece_by_piece(void **state) {
  (void)state;
  chunked c = {0};
  make_idx_set(&c);
  check_one_lane(&c, "idx", IDX_NET, 0, 2, (IMAGES + PER_CHUNK - 1) / PER_CHUNK);
}

static void idx_with_validation_too(void **state) {
  (void)state;
  chunked c = {0};
  make_idx_set(&c);
  check_one_lane(&c, "idx", IDX_NET, 0.3, 2, (IMAGES + PER_CHUNK - 1) / PER_CHUNK);
}

static void cifar_comes_piece_by_piece(void **state) {
  (void)state;
  chunked c = {0};
  make_cifar_set(&c);
  check_one_lane(&c, "cifar", CIFAR_NET, 0, 0, 5 * 3);
}

static void a_set_that_is_here_is_opened_as_files_are(void **state) {
  (void)state;
  chunked c = {0};
  make_idx_set(&c);
  shoal_manifest *m = manifest_of(&c, "mine", "idx");
  shoal_chunk_store *store = store_of(m);
  for (uint32_t i = 0; i < shoal_chunk_store_count(store); i++) put_chunk(&c, store, i);
  opened o;
  open_set(&o, IDX_NET, &(shoal_dataset_options){.data = shoal_chunk_store_data(store), .store = store});
  assert_false(shoal_dataset_is_lazy(o.dataset));
  assert_int_equal(shoal_dataset_samples(o.dataset, SHOAL_TEST), 300);
  close_set(&o);
  shoal_chunk_store_close(store);
  forget_manifest(m);
  release_chunked(&c);
}

static void tables_are_waited_for(void **state) {
  (void)state;
  chunked c = {0};
  shoal_text text = {0};
  shoal_text_addf(&text, "a,b,y\n");
  for (int i = 0; i < 120000; i++) shoal_text_addf(&text, "%d,%d,%d\n", i % 97, i % 89, i % 83);
  size_t length = text.length;
  add_file(&c, "t.csv", (uint8_t *)text.bytes, (shoal_cut){.bytes = length});
  shoal_manifest *m = manifest_of(&c, "mine", "csv");
  shoal_chunk_store *store = store_of(m);
  volatile sig_atomic_t stop = 1;
  shoal_dataset_options options = {.data = shoal_chunk_store_data(store), .store = store, .stop = &stop};
  shoal_model *model = model_of(TABLE_NET);
  shoal_dataset *dataset;
  assert_int_equal(shoal_dataset_open(&dataset, &options, model, NULL), SHOAL_STOPPED);
  stop = 0;
  start_bringing(&c, store);
  assert_int_equal(shoal_dataset_prepare(store, &stop, NULL), SHOAL_OK);
  assert_true(shoal_chunk_store_is_whole(store));
  assert_int_equal(shoal_dataset_open(&dataset, &options, model, NULL), SHOAL_OK);
  assert_false(shoal_dataset_is_lazy(dataset));
  stop_bringing(&c);
  shoal_dataset_close(dataset);
  shoal_model_destroy(model);
  shoal_chunk_store_close(store);
  forget_manifest(m);
  release_chunked(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(idx_comes_piece_by_piece),   IN_FOLDER(idx_with_validation_too),
      IN_FOLDER(cifar_comes_piece_by_piece), IN_FOLDER(a_set_that_is_here_is_opened_as_files_are),
      IN_FOLDER(tables_are_waited_for),
  };
  return RUN_TESTS(tests);
}
