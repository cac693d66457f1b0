#include "check.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "nn/events.h"
#include "nn/in_folder.h"

/* ---- a reader, as strict as TensorBoard's ------------------------------------------- */

typedef struct event {
  double wall_time;
  uint64_t step;
  char version[32], tag[64];
  float value;
  double rows[SHOAL_EVENTS_BUCKETS][3];
  char text[512], plugin[32];
  uint8_t content[512], graph[4096];
  size_t content_bytes, graph_bytes;
} event;

static uint64_t little_endian(const uint8_t *bytes, int length) {
  uint64_t value = 0;
  for (int i = 0; i < length; i++) value |= (uint64_t)bytes[i] << (8 * i);
  return value;
}

static void check_crc(const uint8_t *bytes, size_t length, const uint8_t *stored) {
  uint32_t rotated = (uint32_t)little_endian(stored, 4) - 0xa282ead8u;
  assert_int_equal(rotated << 15 | rotated >> 17, shoal_crc32c(0, bytes, length));
}

static uint64_t read_varint(const uint8_t **at) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    uint8_t byte = *(*at)++;
    value |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
}

static void copy(void *to, size_t size, const uint8_t *from, uint64_t length) {
  assert_true(length <= size);
  memcpy(to, from, length);
}

/* Reads an Event, its Summary, that one's Value and what is in it, which differ in `path`. */
static void read_message(const uint8_t *at, const uint8_t *end, int path, event *out) {
  while (at < end) {
    uint64_t key = read_varint(&at);
    int field = path * 10 + (int)(key >> 3), kind = key & 7;
    uint64_t length = kind == 2 ? read_varint(&at) : kind == 1 ? 8 : kind == 5 ? 4 : 0;
    assert_true(length <= (uint64_t)(end - at));
    switch (field << 3 | kind) {
    case 1 << 3 | 1: memcpy(&out->wall_time, at, 8); break;
    case 2 << 3 | 0: out->step = read_varint(&at); break;
    case 3 << 3 | 2: memcpy(out->version, at, length); break;
    case 5 << 3 | 2: read_message(at, at + length, 5, out); break;
    case 51 << 3 | 2: read_message(at, at + length, 51, out); break;
    case 511 << 3 | 2: memcpy(out->tag, at, length); break;
    case 512 << 3 | 5: memcpy(&out->value, at, 4); break;
    case 518 << 3 | 2: read_message(at, at + length, 518, out); break;
    case 5181 << 3 | 0: (void)read_varint(&at); break;
    case 5182 << 3 | 2: break;
    case 5184 << 3 | 2: copy(out->rows, sizeof out->rows, at, length); break;
    case 5188 << 3 | 2: copy(out->text, sizeof out->text - 1, at, length); break;
    case 519 << 3 | 2: read_message(at, at + length, 519, out); break;
    case 5191 << 3 | 2: read_message(at, at + length, 5191, out); break;
    case 5194 << 3 | 0: (void)read_varint(&at); break;
    case 51911 << 3 | 2: copy(out->plugin, sizeof out->plugin - 1, at, length); break;
    case 51912 << 3 | 2: copy(out->content, sizeof out->content, at, out->content_bytes = length); break;
    case 4 << 3 | 2: copy(out->graph, sizeof out->graph, at, out->graph_bytes = length); break;
    default: fail_msg("unknown field %d of kind %d", field, kind);
    }
    at += length;
  }
  assert_ptr_equal(at, end);
}

/* All events of a file; how many there were. */
static size_t read_events(const char *path, event *out, size_t most) {
  uint8_t *bytes;
  size_t length, count = 0;
  assert_int_equal(shoal_file_read(path, 1 << 20, false, &bytes, &length, NULL), SHOAL_OK);
  for (size_t at = 0; at < length; count++) {
    assert_true(length - at >= 16 && count < most);
    uint64_t n = little_endian(bytes + at, 8);
    check_crc(bytes + at, 8, bytes + at + 8);
    assert_true(n <= length - at - 16);
    check_crc(bytes + at + 12, n, bytes + at + 12 + n);
    memset(&out[count], 0, sizeof out[count]);
    read_message(bytes + at + 12, bytes + at + 12 + n, 0, &out[count]);
    at += n + 16;
  }
  free(bytes);
  return count;
}

/* The only file in the folder. */
static char *only_file(const char *folder) {
  static char path[1024];
  int count = 0;
  DIR *here = opendir(folder);
  assert_non_null(here);
  for (struct dirent *entry; (entry = readdir(here));) {
    if (entry->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    count++;
  }
  closedir(here);
  assert_int_equal(count, 1);
  return path;
}

/* ---- tests -------------------------------------------------------------------------- */

static void scalars_read_back_with_tag_step_and_time(void **state) {
  (void)state;
  double before = shoal_clock_wall_seconds();
  shoal_events *events;
  shoal_error err;
  assert_int_equal(shoal_events_create(&events, "runs/a", &err), SHOAL_OK);
  shoal_events_scalar(events, "train/loss", 0, 2.302585);
  shoal_events_scalar(events, "train/loss", 1ull << 40, -1e-30);
  shoal_events_scalar(events, "", 3, NAN);
  assert_int_equal(shoal_events_flush(events, &err), SHOAL_OK);

  static event read[8];
  const char *path = only_file("runs/a");
  assert_ptr_equal(strstr(path, "runs/a/events.out.tfevents."), path);
  assert_int_equal(read_events(path, read, 8), 4);
  assert_string_equal(read[0].version, "brain.Event:2");
  assert_string_equal(read[1].tag, "train/loss");
  assert_int_equal(read[1].step, 0);
  assert_true(read[1].value == 2.302585f);
  assert_int_equal(read[2].step, 1ull << 40);
  assert_true(read[2].value == -1e-30f);
  assert_string_equal(read[3].tag, "");
  assert_true(isnan(read[3].value));
  for (int i = 0; i < 4; i++)
    assert_true(read[i].wall_time >= before && read[i].wall_time <= shoal_clock_wall_seconds());
  shoal_events_destroy(events);
}

static void distributions_count_every_finite_value(void **state) {
  (void)state;
  shoal_events *events;
  float values[100];
  for (int i = 0; i < 100; i++) values[i] = (float)i;
  values[50] = NAN;
  values[51] = -INFINITY;
  assert_int_equal(shoal_events_create(&events, "runs", NULL), SHOAL_OK);
  shoal_events_histogram(events, "weights/a", 7, values, 100);
  shoal_events_histogram(events, "all the same", 8, (const float[]){2, 2, 2}, 3);
  shoal_events_histogram(events, "nothing", 9, values + 50, 2);
  shoal_events_text(events, "samples", 10, "| a | b |");
  assert_int_equal(shoal_events_flush(events, NULL), SHOAL_OK);
  static event read[8];
  assert_int_equal(read_events(only_file("runs"), read, 8), 4);
  assert_string_equal(read[1].plugin, "histograms");
  double sum = 0;
  for (int i = 0; i < SHOAL_EVENTS_BUCKETS; i++) {
    sum += read[1].rows[i][2];
    if (i > 0) assert_true(read[1].rows[i][0] == read[1].rows[i - 1][1]);
  }
  assert_true(sum == 98 && read[1].rows[0][0] == 0 && read[1].rows[SHOAL_EVENTS_BUCKETS - 1][1] == 99);
  assert_true(read[2].rows[0][0] == 2 && read[2].rows[SHOAL_EVENTS_BUCKETS - 1][2] == 3);
  assert_string_equal(read[3].plugin, "text");
  assert_string_equal(read[3].text, "| a | b |");
  shoal_events_destroy(events);
}

static void contains(const uint8_t *bytes, size_t length, const char *word) {
  if (memmem(bytes, length, word, strlen(word)) == NULL) fail_msg("'%s' is not there", word);
}

static void trials_and_graphs_name_what_they_have(void **state) {
  (void)state;
  static const char text[] = "input 4\nhidden: dense 8 relu\ndense 3\nloss cross-entropy\n";
  const shoal_events_param params[] = {{.name = "rate", .number = 0.5},
                                       {.name = "optimizer", .is_text = true, .text = "adam"}};
  shoal_model *model;
  shoal_graph *graph;
  shoal_events *events;
  assert_int_equal(shoal_model_parse(&model, "m", text, strlen(text), NULL), SHOAL_OK);
  assert_int_equal(shoal_graph_create(&graph, model, NULL), SHOAL_OK);
  assert_int_equal(shoal_events_create(&events, "runs", NULL), SHOAL_OK);
  shoal_events_experiment(events, "about", params, 2, (const char *const[]){"valid/accuracy"}, 1);
  shoal_events_trial_start(events, "trial 3", 5, params, 2);
  shoal_events_trial_end(events, 6, true);
  shoal_events_graph(events, graph);
  assert_int_equal(shoal_events_flush(events, NULL), SHOAL_OK);
  static event read[8];
  assert_int_equal(read_events(only_file("runs"), read, 8), 5);
  assert_string_equal(read[1].tag, "_hparams_/experiment");
  assert_string_equal(read[2].tag, "_hparams_/session_start_info");
  assert_string_equal(read[3].tag, "_hparams_/session_end_info");
  for (int i = 1; i < 4; i++) assert_string_equal(read[i].plugin, "hparams");
  contains(read[1].content, read[1].content_bytes, "valid/accuracy");
  contains(read[2].content, read[2].content_bytes, "adam");
  contains(read[2].content, read[2].content_bytes, "trial 3");
  for (int i = 0; i < 3; i++)
    contains(read[4].graph, read[4].graph_bytes,
             ((const char *const[]){"hidden/relu", "hidden/weight", "loss/cross-entropy"})[i]);
  shoal_events_destroy(events);
  shoal_graph_destroy(graph);
  shoal_model_destroy(model);
}

static void two_runs_in_one_folder_get_two_files(void **state) {
  (void)state;
  shoal_events *a, *b;
  shoal_error err;
  assert_int_equal(shoal_events_create(&a, ".", &err), SHOAL_OK);
  assert_int_equal(shoal_events_create(&b, ".", &err), SHOAL_OK);
  shoal_events_destroy(a);
  shoal_events_destroy(b);
  assert_int_equal(files_here(), 2);
}

static void a_folder_that_cannot_be_made_is_an_error(void **state) {
  (void)state;
  shoal_events *events;
  shoal_error err;
  fclose(fopen("file", "w"));
  assert_int_not_equal(shoal_events_create(&events, "file/runs", &err), SHOAL_OK);
  assert_non_null(strstr(err.text, "file"));
  assert_null(events);
}

static void a_full_disk_shows_at_the_next_flush_and_stops_nothing(void **state) {
  (void)state;
  shoal_events *events;
  shoal_error err;
  assert_int_equal(shoal_events_create(&events, "runs", &err), SHOAL_OK);
  limit_files(8192);
  for (uint64_t step = 0; step < 1000; step++) shoal_events_scalar(events, "loss", step, 1);
  assert_int_equal(shoal_events_flush(events, &err), SHOAL_IO);
  assert_non_null(strstr(err.text, "runs/events.out"));
  limit_files(0);
  shoal_events_scalar(events, "loss", 1000, 1);
  assert_int_equal(shoal_events_flush(events, &err), SHOAL_IO);
  shoal_events_destroy(events);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(scalars_read_back_with_tag_step_and_time),
      IN_FOLDER(distributions_count_every_finite_value),
      IN_FOLDER(trials_and_graphs_name_what_they_have),
      IN_FOLDER(two_runs_in_one_folder_get_two_files),
      IN_FOLDER(a_folder_that_cannot_be_made_is_an_error),
      IN_FOLDER(a_full_disk_shows_at_the_next_flush_and_stops_nothing),
  };
  return RUN_TESTS(tests);
}
