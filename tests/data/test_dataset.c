#include "files.h"

#include <math.h>

#include "base/png.h"
#include "data/augment.h"
#include "data/dataset.h"
#include "data/toy.h"

/* ---- models and data ---------------------------------------------------------------- */

static const char image_net[] = "input 1x4x5\nconv 2 3x3\ndense 36\nloss cross-entropy\n";
static const char vector_net[] = "input 20\ndense 36\nloss cross-entropy\n";
static const char sequence_net[] = "input sequence 4x5\nlstm 3 last\ndense 36\nloss cross-entropy\n";
static const char table_net[] = "input 2\ndense 1\nloss mean-squared\n";
static const char classes_net[] = "input 2\ndense 3\nloss cross-entropy\n";
static const char text_net[] = "input tokens 5 carry\nembed 30 4\nlstm 3\ndense 30\nloss cross-entropy\n";
static const char tokens_net[] = "input tokens 5\nembed 30 4\nlstm 3\ndense 30\nloss cross-entropy\n";
static const char last_net[] = "input tokens 5\nembed 30 4\nlstm 3 last\ndense 30\nloss cross-entropy\n";
static const char reverse_net[] = "input tokens 6\nembed 9 4\nlstm 3\ndense 9\nloss cross-entropy\n";
static const char wave_net[] = "input 3\ndense 4\nrepeat 8\nlstm 3\ndense 1\nloss mean-squared\n";

enum { TRAINING = 30, TEST = 7, PIXELS = 20 };

static void put_images(bool zipped) {
  static const struct {
    const char *name;
    int dims_count;
    uint32_t dims[3];
    uint8_t seed;
  } files[] = {
      {"train-images-idx3-ubyte", 3, {TRAINING, 4, 5}, 1},
      {"train-labels-idx1-ubyte", 1, {TRAINING}, 0},
      {"t10k-images-idx3-ubyte", 3, {TEST, 4, 5}, 5},
      {"t10k-labels-idx1-ubyte", 1, {TEST}, 2},
  };
  for (int i = 0; i < 4; i++) {
    uint8_t bytes[1024];
    char path[64];
    size_t length = make_idx(bytes, files[i].dims_count, files[i].dims, files[i].seed);
    if (files[i].dims_count == 1) { /* labels below 36 */
      for (size_t k = 8; k < length; k++) bytes[k] %= 36;
    }
    snprintf(path, sizeof path, "%s%s", files[i].name, zipped ? ".gz" : "");
    if (zipped)
      put_gzip(path, bytes, length);
    else
      put(path, bytes, length);
  }
}

static void put_table(const char *path, int rows) {
  static const char *const classes[] = {"red", "green", "blue"};
  FILE *file = fopen(path, "w");
  fprintf(file, "x,y,class\n");
  for (int i = 0; i < rows; i++) fprintf(file, "%d,%g,%s\n", i, i * 0.25, classes[i % 3]);
  fclose(file);
}

static shoal_status try_open(shoal_dataset **out, const char *net, const shoal_dataset_options *options,
                             shoal_error *err) {
  shoal_model *model = model_of(net);
  shoal_status status = shoal_dataset_open(out, options, model, err);
  shoal_model_destroy(model); /* which a data set does not need any more */
  return status;
}

static shoal_dataset *open_or_fail(const char *net, const shoal_dataset_options *options) {
  shoal_dataset *dataset;
  shoal_error err;
  if (try_open(&dataset, net, options, &err) != SHOAL_OK) fail_msg("%s", err.text);
  return dataset;
}

static shoal_source source_of(shoal_dataset *dataset, shoal_split split, uint32_t batch, uint64_t seed) {
  shoal_source source;
  shoal_error err;
  if (shoal_dataset_source(dataset, split, batch, seed, &source, &err) != SHOAL_OK) fail_msg("%s", err.text);
  return source;
}

/* ---- fetching in pieces ------------------------------------------------------------- */

enum { MOST = 1 << 16 };

/* Room for n samples with more steps and values than any of the models has. */
typedef struct fetched {
  float x[MOST], targets[MOST], weight[MOST];
  int32_t tokens[MOST], labels[MOST];
  uint64_t ids[MOST];
} fetched;

static fetched *fetch(const shoal_source *source, uint64_t epoch, uint64_t first, uint32_t n) {
  fetched *f = calloc(1, sizeof *f);
  assert_non_null(f);
  shoal_batch into = {f->x, f->tokens, f->labels, f->targets, f->weight, f->ids};
  source->fetch(source->self, epoch, first, n, &into);
  return f;
}

/* Positions of all kinds of sources give the same whatever the pieces they are fetched in. */
static void check_pieces(const shoal_source *source, uint32_t steps_in, uint32_t values, uint32_t steps_out,
                         bool lanes) {
  uint32_t n = source->samples > 24 ? 24 : (uint32_t)source->samples;
  fetched *all = fetch(source, 2, 0, n);
  static const uint32_t sizes[] = {1, 3, 16, 7};
  for (uint32_t first = 0, k = 0; first < n; k++) {
    uint32_t m = sizes[k % 4] > n - first ? n - first : sizes[k % 4];
    fetched *piece = fetch(source, 2, first, m);
    for (uint32_t i = 0; i < m; i++) {
      assert_true(piece->ids[i] == all->ids[first + i]);
      for (uint32_t t = 0; t < steps_in; t++) {
        assert_int_equal(piece->tokens[t * m + i], all->tokens[t * n + first + i]);
        for (uint32_t v = 0; v < values; v++) {
          float a = lanes ? piece->x[v * shoal_lanes_for(m) + i] : piece->x[(t * m + i) * values + v];
          float b =
              lanes ? all->x[v * shoal_lanes_for(n) + first + i] : all->x[(t * n + first + i) * values + v];
          assert_true(a == b);
        }
      }
      for (uint32_t t = 0; t < steps_out; t++) {
        assert_int_equal(piece->labels[t * m + i], all->labels[t * n + first + i]);
        assert_true(piece->weight[t * m + i] == all->weight[t * n + first + i]);
      }
    }
    free(piece);
    first += m;
  }
  free(all);
}

static void fetches_agree_whatever_their_pieces(void **state) {
  (void)state;
  put_images(false);
  put_table("t.csv", 50);
  put_text("t.txt",
           "the quick brown fox jumps over the lazy dog and so on until it is 40 tokens or so\n\n\n");
  static const struct {
    const char *net, *data;
    uint32_t steps_in, values, steps_out;
    bool lanes;
  } cases[] = {
      {image_net, ".", 1, 20, 1, true},
      {vector_net, ".", 1, 20, 1, false},
      {sequence_net, ".", 4, 5, 1, false},
      {classes_net, "t.csv", 1, 2, 1, false},
      {text_net, "chars:t.txt", 5, 0, 5, false},
      {last_net, "text:t.txt", 5, 0, 1, false},
      {reverse_net, "toy:reverse", 6, 0, 6, false},
      {wave_net, "toy:wave", 1, 3, 8, false},
      {image_net, "toy:noise", 1, 20, 1, true},
      {vector_net, "toy:noise:100", 1, 20, 1, false},
      {sequence_net, "toy:noise", 4, 5, 1, false},
      {tokens_net, "toy:noise", 5, 0, 5, false},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    shoal_dataset *dataset = open_or_fail(cases[i].net, &(shoal_dataset_options){.data = cases[i].data});
    shoal_source source = source_of(dataset, SHOAL_TRAIN, 4, 9);
    check_pieces(&source, cases[i].steps_in, cases[i].values, cases[i].steps_out, cases[i].lanes);
    shoal_dataset_close(dataset);
  }
}

static void an_epoch_holds_every_sample_once(void **state) {
  (void)state;
  put_images(false);
  put_table("t.csv", 200);
  static const char *const cases[][2] = {
      {vector_net, "."}, {classes_net, "t.csv"}, {reverse_net, "toy:reverse"}, {wave_net, "toy:wave"}};
  for (size_t i = 0; i < 4; i++) {
    for (int held = 0; held < 2; held++) {
      shoal_dataset *dataset = open_or_fail(
          cases[i][0], &(shoal_dataset_options){.data = cases[i][1], .valid_share = held ? 0.25 : 0});
      uint8_t *seen = calloc(1, SHOAL_TOY_TRAINING + SHOAL_TOY_TEST);
      uint64_t all = 0;
      for (int split = 0; split < SHOAL_SPLITS; split++) {
        uint64_t count = shoal_dataset_samples(dataset, (shoal_split)split);
        assert_int_equal(count > 0, split != SHOAL_VALID || held);
        if (count == 0) continue;
        shoal_source source = source_of(dataset, (shoal_split)split, 16, 3);
        assert_int_equal(source.samples, count);
        for (uint64_t first = 0; first < count; first += 500) {
          uint32_t n = count - first < 500 ? (uint32_t)(count - first) : 500;
          shoal_batch into = {.ids = (uint64_t[500]){0}}; /* what is not wanted is not written */
          source.fetch(source.self, 4, first, n, &into);
          for (uint32_t k = 0; k < n; k++, all++) assert_int_equal(seen[into.ids[k]]++, 0);
        }
      }
      for (uint64_t k = 0; k < all; k++) assert_int_equal(seen[k], 1);
      free(seen);
      shoal_dataset_close(dataset);
    }
  }
}

static void epochs_and_seeds_differ_and_tests_do_not(void **state) {
  (void)state;
  put_images(false);
  shoal_dataset *dataset = open_or_fail(vector_net, &(shoal_dataset_options){.data = "."});
  shoal_source one = source_of(dataset, SHOAL_TRAIN, 8, 1), two = source_of(dataset, SHOAL_TRAIN, 8, 2);
  fetched *a = fetch(&one, 0, 0, TRAINING), *b = fetch(&one, 1, 0, TRAINING),
          *c = fetch(&two, 0, 0, TRAINING);
  fetched *again = fetch(&one, 0, 0, TRAINING);
  assert_memory_not_equal(a->ids, b->ids, TRAINING * sizeof *a->ids);
  assert_memory_not_equal(a->ids, c->ids, TRAINING * sizeof *a->ids);
  assert_memory_equal(a, again, sizeof *a);
  shoal_source test = source_of(dataset, SHOAL_TEST, 8, 1);
  fetched *d = fetch(&test, 0, 0, TEST), *e = fetch(&test, 5, 0, TEST);
  assert_memory_equal(d, e, sizeof *d);
  for (uint64_t i = 0; i < TEST; i++) assert_true(d->ids[i] == TRAINING + i);
  free(a), free(b), free(c), free(again), free(d), free(e);
  shoal_dataset_close(dataset);
}

/* ---- images ------------------------------------------------------------------------- */

static void images_become_numbers_in_every_layout(void **state) {
  (void)state;
  put_images(false);
  static const char *const nets[] = {image_net, vector_net, sequence_net};
  for (int k = 0; k < 3; k++) {
    shoal_dataset *dataset = open_or_fail(nets[k], &(shoal_dataset_options){.data = "."});
    double sum = 0, squares = 0;
    for (int i = 0; i < TRAINING * PIXELS; i++) {
      double value = (uint8_t)(i * 7 + 1) / 255.0;
      sum += value;
      squares += value * value;
    }
    double mean = sum / (TRAINING * PIXELS), deviation = sqrt(squares / (TRAINING * PIXELS) - mean * mean);
    shoal_source source = source_of(dataset, SHOAL_TEST, 8, 1);
    fetched *f = fetch(&source, 0, 0, TEST);
    for (uint32_t i = 0; i < TEST; i++) {
      for (uint32_t p = 0; p < PIXELS; p++) {
        float got = k == 0   ? f->x[p * shoal_lanes_for(TEST) + i]
                    : k == 1 ? f->x[i * PIXELS + p]
                             : f->x[(p / 5 * TEST + i) * 5 + p % 5];
        double expected = ((uint8_t)((i * PIXELS + p) * 7 + 5) / 255.0 - mean) / deviation;
        assert_true(fabs(got - expected) < 1e-5);
      }
      assert_int_equal(f->labels[i], (i * 7 + 2) % 36);
      assert_true(f->weight[i] == 1);
    }
    for (uint32_t p = 0; k == 0 && p < PIXELS; p++) { /* unused lanes are zero */
      for (uint32_t i = TEST; i < shoal_lanes_for(TEST); i++)
        assert_true(f->x[p * shoal_lanes_for(TEST) + i] == 0);
    }
    free(f);
    shoal_dataset_close(dataset);
  }
}

static void zipped_and_plain_images_agree(void **state) {
  (void)state;
  fetched *got[2];
  for (int zipped = 0; zipped < 2; zipped++) {
    assert_int_equal(system("rm -f *ubyte*"), 0);
    put_images(zipped);
    shoal_dataset *dataset = open_or_fail(vector_net, &(shoal_dataset_options){.data = "."});
    shoal_source source = source_of(dataset, SHOAL_TRAIN, 8, 1);
    got[zipped] = fetch(&source, 0, 0, TRAINING);
    shoal_dataset_close(dataset);
  }
  assert_memory_equal(got[0], got[1], sizeof *got[0]);
  free(got[0]);
  free(got[1]);
}

static void labels_can_be_targets(void **state) {
  (void)state;
  put_images(false);
  shoal_dataset *dataset =
      open_or_fail("input 20\ndense 36\nloss mean-squared\n", &(shoal_dataset_options){.data = "."});
  shoal_source source = source_of(dataset, SHOAL_TEST, 8, 1);
  fetched *f = fetch(&source, 0, 0, TEST);
  for (int i = 0; i < TEST; i++) {
    for (int k = 0; k < 36; k++) assert_true(f->targets[i * 36 + k] == (k == (i * 7 + 2) % 36));
  }
  free(f);
  shoal_dataset_close(dataset);
  dataset = open_or_fail("input 20\ndense 1\nloss mean-squared\n", &(shoal_dataset_options){.data = "."});
  source = source_of(dataset, SHOAL_TEST, 8, 1);
  f = fetch(&source, 0, 0, TEST);
  for (int i = 0; i < TEST; i++) assert_true(f->targets[i] == (float)((i * 7 + 2) % 36));
  free(f);
  shoal_dataset_close(dataset);
}

static void classes_of_training_are_counted(void **state) {
  (void)state;
  put_images(false);
  put_table("t.csv", 300);
  static const char *const cases[][2] = {{vector_net, "."}, {classes_net, "t.csv"}};
  for (int i = 0; i < 2; i++) {
    shoal_dataset *dataset =
        open_or_fail(cases[i][0], &(shoal_dataset_options){.data = cases[i][1], .valid_share = 0.3});
    shoal_source source = source_of(dataset, SHOAL_TRAIN, 8, 1);
    fetched *f = fetch(&source, 0, 0, (uint32_t)source.samples);
    uint64_t counts[64] = {0};
    for (uint64_t k = 0; k < source.samples; k++) counts[f->labels[k]]++;
    for (uint32_t k = 0; k < shoal_dataset_classes(dataset); k++)
      assert_int_equal(shoal_dataset_class_count(dataset, k), counts[k]);
    assert_int_equal(shoal_dataset_class_count(dataset, 1000), 0);
    free(f);
    shoal_dataset_close(dataset);
  }
}

/* ---- texts -------------------------------------------------------------------------- */

static void check_text_epoch(const char *net, const char *text, uint32_t batch) {
  put_text("train.txt", text);
  put_text("test.txt", "a");
  shoal_dataset *dataset = open_or_fail(net, &(shoal_dataset_options){.data = "chars:."});
  uint64_t count = strlen(text), counted = 0;
  assert_int_equal(shoal_dataset_samples(dataset, SHOAL_TRAIN), count);
  shoal_source source = source_of(dataset, SHOAL_TRAIN, batch, 1);
  assert_int_equal(source.samples % batch, 0);
  fetched *f = fetch(&source, 3, 0, (uint32_t)source.samples);
  bool last = net == last_net;
  /* Which character a place is shows from the text, whose neighbours all differ in pairs. */
  uint32_t n = (uint32_t)source.samples;
  uint64_t uses[30] = {0};
  for (uint32_t i = 0; i < n; i++) {
    for (uint32_t t = 0; t < (last ? 1 : 5); t++) {
      bool there = f->weight[t * n + i] == 1;
      assert_true(there || f->weight[t * n + i] == 0);
      if (!there) assert_true(f->labels[t * n + i] == 0 && (last || f->tokens[t * n + i] == 0));
      counted += there;
      uses[f->labels[t * n + i]] += there;
    }
  }
  if (!last) {
    assert_int_equal(counted, count - 1);
    const char *first_name = shoal_dataset_class_name(dataset, (uint32_t)f->tokens[0]);
    assert_int_equal(first_name[0], text[0]);
    for (uint32_t c = 0; c < shoal_dataset_classes(dataset); c++) {
      assert_int_equal(uses[c], shoal_dataset_class_count(dataset, c));
    }
    /* Each stream is a piece of the text, and the streams in a row are all of it. */
    uint64_t at = 0;
    for (uint32_t stream = 0; stream < batch; stream++) {
      for (uint64_t window = 0; window < source.samples / batch; window++) {
        for (uint32_t t = 0; t < 5; t++) {
          uint64_t i = t * source.samples + window * batch + stream;
          if (f->weight[i] == 0) continue;
          assert_int_equal(shoal_dataset_class_name(dataset, (uint32_t)f->tokens[i])[0], text[at]);
          assert_int_equal(shoal_dataset_class_name(dataset, (uint32_t)f->labels[i])[0], text[at + 1]);
          at++;
        }
      }
    }
    assert_int_equal(at, count - 1);
  }
  free(f);
  shoal_dataset_close(dataset);
}

static void an_epoch_holds_every_token_once(void **state) {
  (void)state;
  char text[160];
  static const uint32_t batches[] = {1, 2, 3, 8, 20};
  for (size_t length = 2; length < sizeof text; length += length < 30 ? 1 : 17) {
    for (size_t i = 0; i < length; i++) text[i] = (char)('a' + i * i % 23);
    text[0] = 'a'; /* which the test part needs */
    text[length] = 0;
    for (int b = 0; b < 5; b++) {
      check_text_epoch(text_net, text, batches[b]);
      check_text_epoch(last_net, text, batches[b]);
    }
  }
}

static void the_answer_to_a_window_is_what_follows(void **state) {
  (void)state;
  put_text("train.txt", "abcdefghijklmnopqrst");
  put_text("test.txt", "a");
  shoal_dataset *dataset = open_or_fail(last_net, &(shoal_dataset_options){.data = "chars:."});
  shoal_source source = source_of(dataset, SHOAL_TRAIN, 1, 1);
  assert_int_equal(source.samples, 4); /* 19 places in windows of 5 */
  fetched *f = fetch(&source, 0, 0, 4);
  static const int32_t labels[] = {5, 10, 15, 0};
  assert_memory_equal(f->labels, labels, sizeof labels);
  static const float weights[] = {1, 1, 1, 0};
  assert_memory_equal(f->weight, weights, sizeof weights);
  free(f);
  shoal_dataset_close(dataset);
}

/* ---- what was fitted ---------------------------------------------------------------- */

static char *fitted_json(const shoal_dataset *dataset) {
  shoal_text text;
  shoal_text_init(&text);
  shoal_dataset_fitted(dataset, &text);
  assert_false(text.failed);
  return text.bytes;
}

static void a_fitted_set_reopens_to_the_same_bits(void **state) {
  (void)state;
  put_images(false);
  put_table("t.csv", 100);
  put_text("t.txt", "a b c d e f g h i j k l m n o p q r s t\na b c d e f g h i j k l m n o p q r s t\n");
  static const char *const cases[][2] = {
      {vector_net, "."},         {classes_net, "t.csv"},       {text_net, "text:t.txt"},
      {text_net, "chars:t.txt"}, {reverse_net, "toy:reverse"}, {wave_net, "toy:wave"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    shoal_dataset_options options = {.data = cases[i][1], .valid_share = 0.2};
    shoal_dataset *first = open_or_fail(cases[i][0], &options);
    char *json = fitted_json(first);
    options.fitted_json = json;
    shoal_dataset *again = open_or_fail(cases[i][0], &options);
    char *json_again = fitted_json(again);
    assert_string_equal(json, json_again);
    for (int split = 0; split < SHOAL_SPLITS; split++) {
      shoal_split s = (shoal_split)split;
      assert_int_equal(shoal_dataset_samples(first, s), shoal_dataset_samples(again, s));
      shoal_source a = source_of(first, s, 4, 1), b = source_of(again, s, 4, 1);
      uint32_t n = a.samples < 60 ? (uint32_t)a.samples : 60;
      fetched *x = fetch(&a, 1, 0, n), *y = fetch(&b, 1, 0, n);
      assert_memory_equal(x, y, sizeof *x);
      free(x);
      free(y);
    }
    assert_int_equal(shoal_dataset_classes(first), shoal_dataset_classes(again));
    shoal_dataset_close(first);
    shoal_dataset_close(again);
    free(json);
    free(json_again);
  }
}

static void classes_and_vocabulary_open_without_the_data(void **state) {
  (void)state;
  put_table("t.csv", 100);
  put_text("t.txt", "abc abd abe\n");
  shoal_dataset *table = open_or_fail(classes_net, &(shoal_dataset_options){.data = "t.csv"});
  shoal_dataset *text = open_or_fail(text_net, &(shoal_dataset_options){.data = "chars:t.txt"});
  char *table_json = fitted_json(table), *text_json = fitted_json(text);
  shoal_dataset *alone;
  shoal_error err;
  int32_t tokens[8];
  size_t count;
  assert_int_equal(shoal_dataset_open_fitted(&alone, table_json, &err), SHOAL_OK);
  assert_int_equal(shoal_dataset_classes(alone), 3);
  assert_string_equal(shoal_dataset_class_name(alone, 0), "blue");
  assert_null(shoal_dataset_class_name(alone, 3));
  assert_int_equal(shoal_dataset_samples(alone, SHOAL_TRAIN), 0);
  assert_int_equal(shoal_dataset_encode(alone, "abc", tokens, 8, &count, &err), SHOAL_UNSUPPORTED);
  shoal_source source;
  assert_int_equal(shoal_dataset_source(alone, SHOAL_TEST, 1, 1, &source, &err), SHOAL_NOT_FOUND);
  shoal_dataset_close(alone);
  assert_int_equal(shoal_dataset_open_fitted(&alone, text_json, &err), SHOAL_OK);
  assert_int_equal(shoal_dataset_encode(alone, "cab", tokens, 8, &count, &err), SHOAL_OK);
  assert_int_equal(count, 3);
  for (size_t i = 0; i < 3; i++)
    assert_int_equal(shoal_dataset_class_name(alone, (uint32_t)tokens[i])[0], "cab"[i]);
  shoal_dataset_close(alone);
  free(table_json);
  free(text_json);
  shoal_dataset_close(table);
  shoal_dataset_close(text);

  static const char *const bad[] = {"",
                                    "{",
                                    "[]",
                                    "{}",
                                    "{\"kind\":\"images\"}",
                                    "{\"kind\":\"text\"}",
                                    "{\"kind\":\"images\",\"shape\":[1,2,3],\"mean\":[0],\"deviation\":[0]}"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_int_equal(shoal_dataset_open_fitted(&alone, bad[i], &err), SHOAL_CORRUPT);
    CHECK_SAYS(&err, "what was fitted");
    assert_null(alone);
  }
}

static void predictions_need_no_answers(void **state) {
  (void)state;
  put_images(false);
  put_table("t.csv", 50);
  put_text("new.csv", "x,y\n1,2\n3,4\n");
  shoal_dataset_options options = {.data = "."};
  shoal_dataset *dataset = open_or_fail(vector_net, &options);
  char *json = fitted_json(dataset);
  shoal_dataset_close(dataset);
  options = (shoal_dataset_options){.data = "t10k-images-idx3-ubyte", .fitted_json = json, .unlabeled = true};
  dataset = open_or_fail(vector_net, &options);
  assert_int_equal(shoal_dataset_samples(dataset, SHOAL_TEST), TEST);
  assert_int_equal(shoal_dataset_samples(dataset, SHOAL_TRAIN), 0);
  shoal_source source = source_of(dataset, SHOAL_TEST, 8, 1);
  fetched *f = fetch(&source, 0, 0, TEST);
  assert_int_equal(f->labels[1], 0);
  free(f);
  shoal_dataset_close(dataset);
  options.unlabeled = false; /* the labels beside it */
  dataset = open_or_fail(vector_net, &options);
  source = source_of(dataset, SHOAL_TEST, 8, 1);
  f = fetch(&source, 0, 0, TEST);
  assert_int_equal(f->labels[1], 9);
  free(f);
  shoal_dataset_close(dataset);
  free(json);

  dataset = open_or_fail(classes_net, &(shoal_dataset_options){.data = "t.csv"});
  json = fitted_json(dataset);
  shoal_dataset_close(dataset);
  options = (shoal_dataset_options){.data = "new.csv", .fitted_json = json, .unlabeled = true};
  dataset = open_or_fail(classes_net, &options);
  assert_int_equal(shoal_dataset_samples(dataset, SHOAL_TEST), 2);
  assert_string_equal(shoal_dataset_class_name(dataset, 2), "red");
  shoal_dataset_close(dataset);

  shoal_error err;
  options.data = "t10k-images-idx3-ubyte"; /* another kind */
  assert_int_equal(try_open(&dataset, classes_net, &options, &err), SHOAL_INVALID);
  CHECK_SAYS(&err, "has images", "was trained on a table");
  free(json);
}

/* ---- what does not fit -------------------------------------------------------------- */

static void what_does_not_fit_is_refused(void **state) {
  (void)state;
  put_images(false);
  put_table("t.csv", 50);
  put_text("t.txt",
           "aa ab ac ad ae af ag ah ai aj ak al am an ao ap aq ar as at au av aw ax ay az ba bb bc bd be\n");
  put_text("binary.csv", "x,y,z\n1,2,a\n2,3,b\n4,5,a\n");
  mkdir("empty", 0777);
  put_text("lonely-images-idx3-ubyte", "");
  uint8_t bytes[64];
  const uint32_t one[] = {1, 4, 5};
  put("lonely-images-idx3-ubyte", bytes, make_idx(bytes, 3, one, 0));
  static const struct {
    const char *net, *data, *words[3];
  } cases[] = {
      {"input 3x32x32\nconv 2 3x3\ndense 36\nloss cross-entropy\n",
       ".",
       {"images of 1x4x5", "3x32x32", "write `input 1x4x5` or `input 20`"}},
      {"input 21\ndense 36\nloss cross-entropy\n", ".", {"images of 1x4x5", "21", "`input 20`"}},
      {text_net, ".", {"images of 1x4x5", "tokens 5", NULL}},
      {text_net, "toy:noise", {"do not continue each other", "carry", NULL}},
      {"input 20\ndense 35\nloss cross-entropy\n", ".", {"36 classes", "35", "`dense 36`"}},
      {"input 20\ndense 7\nloss mean-squared\n", ".", {"36 classes", "7", NULL}},
      {"input sequence 4x5\nlstm 36\nloss cross-entropy\n",
       ".",
       {"one answer a sample", "sequence 4x36", NULL}},
      {"input 3\ndense 3\nloss cross-entropy\n",
       "t.csv",
       {"2 feature columns", "input is 3", "write `input 2`"}},
      {"input 2\ndense 2\nloss cross-entropy\n", "t.csv", {"3 classes", "output is 2", "`dense 3`"}},
      {table_net, "t.csv", {"t.csv:2:5", "'red', which is not a number", "cross-entropy"}},
      {"input 2\ndense 1\nloss binary-cross-entropy\n", "t.csv", {"t.csv:4:7", "a third class", NULL}},
      {"input 2\ndense 3\nloss binary-cross-entropy\n", "binary.csv", {"2 classes", "output is 3", NULL}},
      {text_net, "t.txt", {"read as a table", "text:t.txt", NULL}},
      {classes_net, "text:t.txt", {"has words", "input is 2", "`input tokens"}},
      {text_net,
       "text:t.txt",
       {"vocabulary too large", "has 32 distinct words, the model embeds 30", "`embed 32 N`"}},
      {"input tokens 5\nembed 40 4\nlstm 3\ndense 31\nloss cross-entropy\n",
       "text:t.txt",
       {"32 distinct words", "sequence 5x31", "`dense 40`"}},
      {"input tokens 5\nembed 40 4\nlstm 3\ndense 40\nloss mean-squared\n",
       "text:t.txt",
       {"cross-entropy", NULL}},
      {table_net, "toy:wave", {"frequency", "input is 2", NULL}},
      {"input 3\ndense 1\nloss mean-squared\n", "toy:wave", {"one number a step", "repeat", NULL}},
      {wave_net, "toy:reverse", {"tokens", NULL}},
      {wave_net, "toy:sawtooth", {"toy:reverse and toy:wave", NULL}},
      {wave_net, "toy:noise:0", {"toy:noise:SAMPLES", NULL}},
      {last_net, "toy:reverse", {"one token a step", NULL}},
      {vector_net, "empty", {"empty", "no data in this folder", "train-images-idx3-ubyte"}},
      {text_net, "text:empty", {"no train.txt", NULL}},
      {text_net, "text:absent.txt", {"absent.txt", "no such file", NULL}},
      {vector_net, "absent.csv", {"no data set or file is called 'absent.csv'", NULL}},
      {vector_net, "fashion-minst", {"did you mean 'fashion-mnist'", NULL}},
      {vector_net, "lonely-images-idx3-ubyte", {"no file of labels", NULL}},
      {classes_net, "t.csv,absent.csv", {"no data set or file", NULL}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    shoal_dataset *dataset;
    shoal_error err;
    shoal_status status =
        try_open(&dataset, cases[i].net, &(shoal_dataset_options){.data = cases[i].data}, &err);
    if (status == SHOAL_OK) fail_msg("case %zu was taken", i);
    assert_null(dataset);
    for (int k = 0; k < 3 && cases[i].words[k]; k++) CHECK_SAYS(&err, cases[i].words[k]);
  }
  shoal_dataset *dataset;
  shoal_error err;
  shoal_dataset_options options = {.data = "t.csv", .valid_share = 1};
  assert_int_equal(try_open(&dataset, classes_net, &options, &err), SHOAL_INVALID);
  CHECK_SAYS(&err, "0 to 0.9");
}

static void two_csv_files_are_training_and_test(void **state) {
  (void)state;
  put_table("train.csv", 30);
  put_table("test.csv", 9);
  shoal_dataset *dataset = open_or_fail(
      classes_net,
      &(shoal_dataset_options){.data = "train.csv,test.csv", .target = "class", .valid_share = 0.1});
  assert_int_equal(shoal_dataset_samples(dataset, SHOAL_TRAIN), 27);
  assert_int_equal(shoal_dataset_samples(dataset, SHOAL_VALID), 3);
  assert_int_equal(shoal_dataset_samples(dataset, SHOAL_TEST), 9);
  shoal_dataset_close(dataset);
}

static void two_names_are_zero_and_one(void **state) {
  (void)state;
  put_text("t.csv", "x,y,z\n1,2,no\n2,3,yes\n4,5,no\n1,1,yes\n");
  shoal_dataset *dataset = open_or_fail("input 2\ndense 1\nloss binary-cross-entropy\n",
                                        &(shoal_dataset_options){.data = "t.csv,t.csv"});
  shoal_source source = source_of(dataset, SHOAL_TEST, 4, 1);
  fetched *f = fetch(&source, 0, 0, 4);
  static const float targets[] = {0, 1, 0, 1};
  assert_memory_equal(f->targets, targets, sizeof targets);
  assert_string_equal(shoal_dataset_class_name(dataset, 1), "yes");
  free(f);
  shoal_dataset_close(dataset);
}

static void image_files_need_a_model_of_one_or_three_channels(void **state) {
  (void)state;
  static const char two[] = "input 2x2x2\nflatten\ndense 2\nloss cross-entropy\n";
  static const char fitted[] = "{\"kind\":\"images\",\"shape\":[2,2,2],\"mean\":[0.5,0.5],"
                               "\"deviation\":[0.5,0.5],\"class_count\":2,\"classes\":[\"a\",\"b\"]}";
  const uint8_t pixels[12] = {0};
  shoal_text png = {0};
  shoal_dataset *dataset;
  shoal_error err;
  shoal_png_write(&png, 2, 2, SHOAL_PNG_RGB, pixels);
  put("a.png", png.bytes, png.length);
  shoal_text_release(&png);
  const shoal_dataset_options options = {.data = "a.png", .fitted_json = fitted, .unlabeled = true};
  assert_int_equal(try_open(&dataset, two, &options, &err), SHOAL_INVALID);
  CHECK_SAYS(&err, "a.png", "model's input is 2x2x2");
}

/* ---- real data ---------------------------------------------------------------------- */

static void real_sets_have_the_published_numbers(void **state) {
  (void)state;
  const char *shared = shared_data();
  if (!shared) skip();
  setenv("SHOAL_DATA", shared, 1);
  shoal_dataset *dataset = open_or_fail("input 1x28x28\nconv 2 3x3\ndense 10\nloss cross-entropy\n",
                                        &(shoal_dataset_options){.data = "mnist"});
  assert_int_equal(shoal_dataset_samples(dataset, SHOAL_TRAIN), 60000);
  assert_int_equal(shoal_dataset_samples(dataset, SHOAL_TEST), 10000);
  assert_int_equal(shoal_dataset_class_count(dataset, 1), 6742);
  char *json = fitted_json(dataset);
  assert_non_null(strstr(json, "\"mean\":[0.13066"));
  assert_non_null(strstr(json, "\"deviation\":[0.3081"));
  free(json);
  shoal_dataset_close(dataset);

  char path[4200];
  snprintf(path, sizeof path, "%s/csv/iris.csv", shared);
  dataset = open_or_fail("input 4\ndense 3\nloss cross-entropy\n", &(shoal_dataset_options){.data = path});
  assert_int_equal(shoal_dataset_samples(dataset, SHOAL_TRAIN) + shoal_dataset_samples(dataset, SHOAL_TEST),
                   150);
  assert_string_equal(shoal_dataset_class_name(dataset, 0), "Iris-setosa");
  shoal_dataset_close(dataset);
  snprintf(path, sizeof path, "%s/csv/winequality-white.csv", shared);
  dataset = open_or_fail("input 11\ndense 1\nloss mean-squared\n",
                         &(shoal_dataset_options){.data = path, .target = "quality"});
  assert_int_equal(shoal_dataset_samples(dataset, SHOAL_TRAIN) + shoal_dataset_samples(dataset, SHOAL_TEST),
                   4898);
  shoal_dataset_close(dataset);
  shoal_error err;
  snprintf(path, sizeof path, "%s/csv/titanic.csv", shared);
  shoal_dataset_options titanic = {.data = path, .target = "Survived"};
  assert_int_equal(try_open(&dataset, "input 11\ndense 1\nloss binary-cross-entropy\n", &titanic, &err),
                   SHOAL_INVALID);
  CHECK_SAYS(&err, "titanic.csv:2:", "column 'Name' holds 'Braund, Mr. Owen Harris'");
}

/* Where a pixel of an image lies in a batch, for each kind of input. */
static size_t place_of(const char *net, uint32_t n, uint32_t sample, uint32_t pixel) {
  if (net == image_net) return (size_t)pixel * 16 + sample;
  if (net == vector_net) return (size_t)sample * PIXELS + pixel;
  return ((size_t)(pixel / 5) * n + sample) * 5 + pixel % 5;
}

static int within(int at, int size) { return at < 0 ? 0 : at >= size ? size - 1 : at; }

static void training_images_are_flipped_and_moved_as_seed_epoch_and_number_say(void **state) {
  (void)state;
  enum { N = 13 };
  static const char *const nets[] = {image_net, vector_net, sequence_net};
  put_images(false);
  const shoal_augment augment = {.flip = true, .crop = 2};
  for (int i = 0; i < 3; i++) {
    shoal_dataset *d = open_or_fail(nets[i], &(shoal_dataset_options){.data = "."});
    shoal_source plain, source;
    shoal_error err;
    assert_int_equal(shoal_dataset_source(d, SHOAL_TRAIN, 8, 5, &plain, &err), SHOAL_OK);
    assert_int_equal(shoal_dataset_source(d, SHOAL_TRAIN, 8, 5, &source, &err), SHOAL_OK);
    shoal_dataset_augment(d, &source, &augment);
    int changed = 0;
    for (uint64_t epoch = 0; epoch < 2; epoch++) {
      float before[PIXELS * 16], after[PIXELS * 16];
      uint64_t ids[N];
      plain.fetch(plain.self, epoch, 3, N, &(shoal_batch){.x = before});
      source.fetch(source.self, epoch, 3, N, &(shoal_batch){.x = after, .ids = ids});
      for (uint32_t k = 0; k < N; k++) {
        shoal_augmented how = shoal_augment_draw(&augment, 5, epoch, ids[k]);
        assert_true(how.down >= -2 && how.down <= 2 && how.right >= -2 && how.right <= 2);
        changed += how.flipped || how.down || how.right;
        for (int p = 0; p < PIXELS; p++) {
          int x = p % 5, y = within(p / 5 + how.down, 4),
              from = within((how.flipped ? 4 - x : x) + how.right, 5);
          assert_true(after[place_of(nets[i], N, k, (uint32_t)p)] ==
                      before[place_of(nets[i], N, k, (uint32_t)(y * 5 + from))]);
        }
      }
    }
    assert_in_range(changed, 20, 26);
    shoal_dataset_close(d);
  }
  /* What is not an image cannot be flipped. */
  put_table("table.csv", 20);
  shoal_dataset *d;
  shoal_error err;
  assert_int_not_equal(try_open(&d, "augment flip\ninput 2\ndense 3\nloss cross-entropy\n",
                                &(shoal_dataset_options){.data = "table.csv"}, &err),
                       SHOAL_OK);
  CHECK_SAYS(&err, "table.csv would be read as a table", "`augment` needs images");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(fetches_agree_whatever_their_pieces),
      IN_FOLDER(an_epoch_holds_every_sample_once),
      IN_FOLDER(epochs_and_seeds_differ_and_tests_do_not),
      IN_FOLDER(images_become_numbers_in_every_layout),
      IN_FOLDER(zipped_and_plain_images_agree),
      IN_FOLDER(labels_can_be_targets),
      IN_FOLDER(classes_of_training_are_counted),
      IN_FOLDER(an_epoch_holds_every_token_once),
      IN_FOLDER(the_answer_to_a_window_is_what_follows),
      IN_FOLDER(a_fitted_set_reopens_to_the_same_bits),
      IN_FOLDER(classes_and_vocabulary_open_without_the_data),
      IN_FOLDER(predictions_need_no_answers),
      IN_FOLDER(image_files_need_a_model_of_one_or_three_channels),
      IN_FOLDER(what_does_not_fit_is_refused),
      IN_FOLDER(two_csv_files_are_training_and_test),
      IN_FOLDER(two_names_are_zero_and_one),
      IN_FOLDER(training_images_are_flipped_and_moved_as_seed_epoch_and_number_say),
      IN_FOLDER(real_sets_have_the_published_numbers),
  };
  return RUN_TESTS(tests);
}
