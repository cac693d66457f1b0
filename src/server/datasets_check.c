/* datasets_check.c: reads the files of a data set as a training would, and describes them; see datasets.h.
 *
 * Which files a kind consists of is as in data/dataset.h. Every file must be of use, since volunteers
 * fetch them all. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "data/cifar.h"
#include "data/idx.h"
#include "data/table.h"
#include "data/text.h"
#include "search/profile.h"
#include "server/datasets.h"
#include "server/datasets_internal.h"
#include "server/folders.h"

enum {
  CLASSES_SHOWN_MAX = 1000, /* names in a description */
  CLASS_NUMBERS_MAX = 100,  /* different whole numbers that are rather classes than amounts */
};

static shoal_status fail_memory(shoal_error *err) {
  return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
}

/* What is being described. */
typedef struct probe {
  const shoal_set_files *files;
  const char *kind, *target, *dialect; /* target and dialect may be NULL */
  const shoal_named_set *named;
  shoal_json json;
} probe;

static char *path_in(const shoal_set_files *files, uint32_t number) {
  shoal_text path = {0};
  shoal_text_addf(&path, "%s/%s", files->folder, files->files[number].name);
  if (!path.failed) return path.bytes;
  shoal_text_release(&path);
  return NULL;
}

/* ---- pieces of a description ---- */

static void write_samples(probe *p, uint64_t train, uint64_t valid, uint64_t test) {
  shoal_json_open(&p->json, "samples", '{');
  shoal_json_int(&p->json, "train", (int64_t)train);
  shoal_json_int(&p->json, "valid", (int64_t)valid);
  shoal_json_int(&p->json, "test", (int64_t)test);
  shoal_json_close(&p->json, '}');
}

/* Classes without names are called by their numbers. */
static void write_classes(probe *p, uint32_t count, const char *const *names, uint32_t names_count) {
  shoal_json_open(&p->json, "classes", '[');
  for (uint32_t i = 0; i < count; i++) {
    char number[16];
    snprintf(number, sizeof number, "%u", i);
    shoal_json_text(&p->json, NULL, i < names_count ? names[i] : number);
  }
  shoal_json_close(&p->json, ']');
}

static void write_files(probe *p) {
  shoal_json_open(&p->json, "files", '[');
  for (uint32_t i = 0; i < p->files->count; i++) {
    shoal_json_open(&p->json, NULL, '{');
    shoal_json_text(&p->json, "name", p->files->files[i].name);
    shoal_json_int(&p->json, "bytes", (int64_t)p->files->files[i].bytes);
    shoal_json_close(&p->json, '}');
  }
  shoal_json_close(&p->json, ']');
}

/* ---- images ---- */

static bool is_one_of(const char *name, const char *const *names, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (strcmp(name, names[i]) == 0) return true;
  return false;
}

/* Fails for the first file that is none of those. */
static shoal_status check_names(const probe *p, const char *const *names, size_t count, const char *expected,
                                shoal_error *err) {
  for (uint32_t i = 0; i < p->files->count; i++) {
    if (!is_one_of(p->files->files[i].name, names, count))
      return shoal_fail(err, SHOAL_INVALID, "%s: is no file of a set of the kind %s, which consists of %s",
                        p->files->files[i].name, p->kind, expected);
  }
  return SHOAL_OK;
}

static shoal_status write_images(probe *p, const shoal_images *images, const char *const *names,
                                 uint32_t names_count) {
  char shape[48];
  snprintf(shape, sizeof shape, "%ux%ux%u", images->c, images->h, images->w);
  write_samples(p, images->training, 0, images->test);
  shoal_json_text(&p->json, "shape", shape);
  write_classes(p, images->classes, names, names_count);
  shoal_json_null(&p->json, "columns");
  return SHOAL_OK;
}

static shoal_status describe_idx(probe *p, shoal_error *err) {
  static const char *const names[] = {"train-images-idx3-ubyte",
                                      "train-images-idx3-ubyte.gz",
                                      "train-labels-idx1-ubyte",
                                      "train-labels-idx1-ubyte.gz",
                                      "t10k-images-idx3-ubyte",
                                      "t10k-images-idx3-ubyte.gz",
                                      "t10k-labels-idx1-ubyte",
                                      "t10k-labels-idx1-ubyte.gz",
                                      "train-images.idx3-ubyte",
                                      "train-images.idx3-ubyte.gz",
                                      "train-labels.idx1-ubyte",
                                      "train-labels.idx1-ubyte.gz",
                                      "t10k-images.idx3-ubyte",
                                      "t10k-images.idx3-ubyte.gz",
                                      "t10k-labels.idx1-ubyte",
                                      "t10k-labels.idx1-ubyte.gz",
                                      "about.json"};
  shoal_status status = check_names(p, names, sizeof names / sizeof *names,
                                    "train-images-idx3-ubyte[.gz], train-labels-idx1-ubyte[.gz], and for "
                                    "test t10k-... likewise; about.json may have the names of the "
                                    "classes",
                                    err);
  shoal_images *images = status == SHOAL_OK ? malloc(sizeof *images) : NULL;
  if (images == NULL) return status == SHOAL_OK ? fail_memory(err) : status;
  shoal_images_init(images);
  status = shoal_idx_open_folder(images, p->files->folder, NULL, err);
  shoal_names classes;
  shoal_names_init(&classes);
  char files_sha256[SHOAL_SHA256_HEX] = "";
  if (status == SHOAL_OK)
    status = shoal_idx_read_about(images, p->files->folder, &classes, files_sha256, err);
  const char *class_names[SHOAL_IMAGE_CLASSES_MAX];
  for (uint32_t i = 0; i < classes.count; i++) class_names[i] = shoal_names_at(&classes, i);
  if (status == SHOAL_OK && p->named)
    status = write_images(p, images, p->named->classes, p->named->classes_count);
  else if (status == SHOAL_OK)
    status = write_images(p, images, class_names, classes.count);
  shoal_names_release(&classes);
  shoal_images_release(images);
  free(images);
  return status;
}

static shoal_status describe_cifar(probe *p, shoal_error *err) {
  static const char *const names[] = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                      "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"};
  shoal_status status = check_names(p, names, sizeof names / sizeof *names,
                                    "data_batch_1.bin to data_batch_5.bin and test_batch.bin", err);
  shoal_images *images = status == SHOAL_OK ? malloc(sizeof *images) : NULL;
  if (images == NULL) return status == SHOAL_OK ? fail_memory(err) : status;
  shoal_images_init(images);
  status = shoal_cifar_open(images, p->files->folder, NULL, err);
  if (status == SHOAL_OK)
    status = write_images(p, images, shoal_cifar_names, sizeof shoal_cifar_names / sizeof *shoal_cifar_names);
  shoal_images_release(images);
  free(images);
  return status;
}

/* ---- texts ---- */

/* Which part of a text a file is: its name is train, valid or test as find_texts of data/dataset.c has it. */
static bool text_part(const char *name, const char *before, const char *after, shoal_split *out) {
  static const char *const parts[SHOAL_SPLITS] = {"train", "valid", "test"};
  for (int split = 0; split < SHOAL_SPLITS; split++) {
    char wanted[32];
    snprintf(wanted, sizeof wanted, "%s%s%s", before, parts[split], after);
    *out = (shoal_split)split;
    if (strcmp(name, wanted) == 0) return true;
  }
  return false;
}

/* Fills numbers[split] with the place of the part's file, or -1; false unless every file is a part. */
static bool text_parts(const shoal_set_files *files, int numbers[SHOAL_SPLITS]) {
  static const char *const before[] = {"ptb.", "", "wiki."}, *const after[] = {".txt", ".tokens"};
  for (int i = 0; i < 6; i++) {
    bool all = true;
    for (int split = 0; split < SHOAL_SPLITS; split++) numbers[split] = -1;
    for (uint32_t f = 0; f < files->count && all; f++) {
      shoal_split split;
      all = text_part(files->files[f].name, before[i % 3], after[i / 3], &split);
      if (all) numbers[split] = (int)f;
    }
    if (all && numbers[SHOAL_TRAIN] >= 0) return true;
  }
  return false;
}

static shoal_status describe_text(probe *p, shoal_error *err) {
  int numbers[SHOAL_SPLITS] = {0, -1, -1};
  if (p->files->count > 1 && !text_parts(p->files, numbers))
    return shoal_fail(
        err, SHOAL_INVALID,
        "%s: a text is one file, or train.txt with valid.txt, test.txt or both, and nothing else",
        p->files->files[0].name);
  char *paths[SHOAL_SPLITS] = {0};
  shoal_status status = SHOAL_OK;
  for (int split = 0; split < SHOAL_SPLITS; split++) {
    if (numbers[split] < 0) continue;
    paths[split] = path_in(p->files, (uint32_t)numbers[split]);
    if (paths[split] == NULL) status = fail_memory(err);
  }
  shoal_tokens tokens;
  shoal_tokens_init(&tokens);
  if (status == SHOAL_OK)
    status = shoal_tokens_open(&tokens, strcmp(p->kind, "chars") == 0 ? SHOAL_CHARACTERS : SHOAL_WORDS,
                               (const char *const *)paths, err);
  if (status == SHOAL_OK && tokens.count[SHOAL_TRAIN] < 2)
    status = shoal_fail(err, SHOAL_INVALID, "%s: too short to learn from", p->files->files[numbers[0]].name);
  if (status == SHOAL_OK) {
    uint64_t valid = tokens.count[SHOAL_VALID], test = tokens.count[SHOAL_TEST];
    /* One token has no successor to foretell. */
    write_samples(p, tokens.count[SHOAL_TRAIN], valid > 1 ? valid : 0, test > 1 ? test : 0);
    shoal_json_text(&p->json, "shape", "tokens");
    shoal_json_null(&p->json, "classes");
    shoal_json_null(&p->json, "columns");
    shoal_json_int(&p->json, "vocabulary", tokens.vocabulary.count);
  }
  shoal_tokens_release(&tokens);
  for (int split = 0; split < SHOAL_SPLITS; split++) free(paths[split]);
  return status;
}

/* ---- tables ---- */

static bool is_for_test(const char *name) { return strcasestr(name, "test") != NULL; }

void shoal_set_files_order(shoal_set_files *files, const char *kind) {
  if ((strcmp(kind, "csv") != 0 && strcmp(kind, "table") != 0) || files->count != 2) return;
  if (!is_for_test(files->files[0].name) || is_for_test(files->files[1].name)) return;
  shoal_set_file first = files->files[0];
  files->files[0] = files->files[1];
  files->files[1] = first;
}

static int by_value(const void *a, const void *b) {
  float x = *(const float *)a, y = *(const float *)b;
  return (x > y) - (x < y);
}

/* Whole numbers, few different ones, each there more than once: rather the names of classes. */
static bool are_classes(const shoal_table *table) {
  uint64_t rows = table->training + table->test, different = 0;
  for (uint64_t i = 0; i < rows; i++)
    if (table->targets[i] != floorf(table->targets[i])) return false;
  float *sorted = malloc((rows + 1) * sizeof *sorted);
  if (sorted == NULL) return false;
  memcpy(sorted, table->targets, rows * sizeof *sorted);
  qsort(sorted, rows, sizeof *sorted, by_value);
  for (uint64_t i = 0; i < rows; i++) different += i == 0 || sorted[i] != sorted[i - 1];
  free(sorted);
  return different <= CLASS_NUMBERS_MAX && 2 * different <= rows;
}

/* Very many classes of which most are numbers: a column of numbers with a slip in it. */
static bool are_numbers_with_a_slip(const shoal_names *classes) {
  uint32_t numbers = 0;
  for (uint32_t i = 0; i < classes->count; i++) {
    const char *name = shoal_names_at(classes, i);
    double value;
    numbers += shoal_read_f64(name, strlen(name), &value);
  }
  return classes->count > CLASS_NUMBERS_MAX && numbers >= classes->count / 10 * 9;
}

/* The model says whether the target is a number or a class. There is none yet, so both are tried. */
static shoal_status open_table(shoal_table *table, const char *const paths[2], const char *target,
                               shoal_error *err) {
  shoal_error as_number = {0};
  shoal_status status =
      shoal_table_open(table, paths[0], paths[1], target, SHOAL_TARGET_NUMBER, false, &as_number);
  bool number = status == SHOAL_OK;
  if (number && !are_classes(table)) return SHOAL_OK;
  shoal_table_release(table);
  status = shoal_table_open(table, paths[0], paths[1], target, SHOAL_TARGET_CLASSES, false, err);
  if (!number && status == SHOAL_OK && are_numbers_with_a_slip(&table->classes))
    return shoal_fail(err, as_number.status, "%s", as_number.text);
  if (!number || status == SHOAL_OK) return status;
  /* The second file has numbers that the first has not: not classes, then. */
  shoal_table_release(table);
  return shoal_table_open(table, paths[0], paths[1], target, SHOAL_TARGET_NUMBER, false, err);
}

static void write_column(probe *p, const char *name, const char *kind) {
  shoal_json_open(&p->json, NULL, '{');
  shoal_json_text(&p->json, "name", name);
  shoal_json_text(&p->json, "kind", kind);
  shoal_json_close(&p->json, '}');
}

/* In the order of the file. */
static void write_columns(probe *p, const shoal_table *table) {
  const char *target_kind = table->target_kind == SHOAL_TARGET_NUMBER ? "number" : "class";
  shoal_json_open(&p->json, "columns", '[');
  for (uint32_t i = 0; i <= table->columns.count; i++) {
    bool target = i == table->target_column;
    if (target)
      write_column(p, table->target, target_kind);
    else
      write_column(p, shoal_names_at(&table->columns, i - (i > table->target_column)), "number");
  }
  shoal_json_close(&p->json, ']');
  shoal_json_text(&p->json, "target", table->target);
}

static shoal_status write_table(probe *p, const shoal_table *table, shoal_error *err) {
  char shape[16];
  snprintf(shape, sizeof shape, "%u", table->columns.count);
  write_samples(p, table->training, 0, table->test);
  shoal_json_text(&p->json, "shape", shape);
  uint32_t count = table->classes.count;
  if (count == 0 || count > CLASSES_SHOWN_MAX) {
    shoal_json_null(&p->json, "classes");
  } else {
    const char **names = calloc(count, sizeof *names);
    if (names == NULL) return fail_memory(err);
    for (uint32_t i = 0; i < count; i++) names[i] = shoal_names_at(&table->classes, i);
    write_classes(p, count, names, count);
    free(names);
  }
  write_columns(p, table);
  return SHOAL_OK;
}

/* What --data takes for something else by its first bytes, or would not know which file is which. */
static shoal_status check_tables(const probe *p, const char *const paths[2], shoal_error *err) {
  const shoal_set_files *files = p->files;
  if (files->count > 2 || (files->count == 2 && !is_for_test(files->files[1].name)))
    return shoal_fail(err, SHOAL_INVALID,
                      "%s: a table is one CSV file, or one to train with and one with 'test' in its name",
                      files->files[files->count - 1].name);
  for (uint32_t i = 0; i < files->count; i++) {
    if (shoal_idx_is_images(paths[i]))
      return shoal_fail(err, SHOAL_INVALID, "%s: these are images (IDX), not a table", files->files[i].name);
  }
  return SHOAL_OK;
}

static shoal_status describe_csv(probe *p, shoal_error *err) {
  char *paths[2] = {path_in(p->files, 0), p->files->count > 1 ? path_in(p->files, 1) : NULL};
  bool failed = paths[0] == NULL || (p->files->count > 1 && paths[1] == NULL);
  shoal_table table;
  shoal_table_init(&table);
  shoal_status status = failed ? fail_memory(err) : check_tables(p, (const char *const *)paths, err);
  if (status == SHOAL_OK) status = open_table(&table, (const char *const *)paths, p->target, err);
  if (status == SHOAL_OK) status = write_table(p, &table, err);
  shoal_table_release(&table);
  free(paths[0]);
  free(paths[1]);
  return status;
}

/* ---- all of them ---- */

/* A table to search on: any columns, described as search/profile.h sees them. */
static shoal_status describe_profile(probe *p, shoal_error *err) {
  if (p->files->count > 2)
    return shoal_fail(err, SHOAL_INVALID,
                      "a table is one file, and perhaps a second one for test; there are %u",
                      p->files->count);
  char *path = path_in(p->files, 0);
  if (path == NULL) return fail_memory(err);
  shoal_profile profile;
  shoal_profile_init(&profile);
  shoal_profile_options options = {.path = path, .seed = 1};
  shoal_status status =
      p->dialect != NULL ? shoal_dialect_say(&options.dialect, "dialect", p->dialect, err) : SHOAL_OK;
  if (status == SHOAL_OK) status = shoal_profile_read(&profile, &options, err);
  if (status == SHOAL_OK) {
    char shape[16];
    snprintf(shape, sizeof shape, "%u", profile.columns_count);
    write_samples(p, profile.rows, 0, 0);
    shoal_json_text(&p->json, "shape", shape);
    shoal_json_null(&p->json, "classes");
    shoal_json_null(&p->json, "columns");
    if (p->dialect != NULL) shoal_json_text(&p->json, "dialect", p->dialect);
    shoal_profile_write(&profile, &p->json, "profile");
  }
  shoal_profile_release(&profile);
  free(path);
  return status;
}

/* That a file is missing or broken is the fault of who uploaded it. */
static shoal_status blame(shoal_error *err, shoal_status status) {
  bool upload = status == SHOAL_NOT_FOUND || status == SHOAL_CORRUPT || status == SHOAL_LIMIT ||
                status == SHOAL_UNSUPPORTED;
  if (upload) err->status = SHOAL_INVALID;
  return upload ? SHOAL_INVALID : status;
}

shoal_status shoal_set_describe(shoal_set_files *files, const shoal_set_said *said,
                                const shoal_named_set *named, shoal_text *out, shoal_error *err) {
  static const struct {
    const char *kind;
    shoal_status (*describe)(probe *p, shoal_error *err);
  } kinds[] = {{"csv", describe_csv},     {"table", describe_profile}, {"idx", describe_idx},
               {"cifar", describe_cifar}, {"text", describe_text},     {"chars", describe_text}};
  enum { KINDS = sizeof kinds / sizeof *kinds };
  const char *kind = said->kind;
  size_t k = 0;
  while (k < KINDS && strcmp(kind, kinds[k].kind) != 0) k++;
  if (k == KINDS)
    return shoal_fail(err, SHOAL_INVALID,
                      "'%.20s' is no kind of data; there are csv, table, idx, cifar, text and chars", kind);
  if (said->target != NULL && strcmp(kind, "csv") != 0)
    return shoal_fail(err, SHOAL_INVALID, "only a table (csv) has a target column to choose");
  if (said->dialect != NULL && strcmp(kind, "table") != 0)
    return shoal_fail(err, SHOAL_INVALID, "only a table to search on (table) has a dialect to say");
  if (files->count == 0) return shoal_fail(err, SHOAL_INVALID, "there is no file in it; upload some first");

  shoal_error local;
  if (err == NULL) err = &local;
  shoal_set_files_order(files, kind);
  probe p = {.files = files, .kind = kind, .target = said->target, .dialect = said->dialect, .named = named};
  shoal_json_init(&p.json, out);
  shoal_json_open(&p.json, NULL, '{');
  shoal_json_text(&p.json, "kind", kind);
  shoal_json_int(&p.json, "bytes", (int64_t)files->bytes);
  shoal_status status = kinds[k].describe(&p, err);
  write_files(&p);
  shoal_json_close(&p.json, '}');
  if (status == SHOAL_OK && out->failed) status = fail_memory(err);
  if (status == SHOAL_OK) return SHOAL_OK;
  shoal_text_clear(out);
  shoal_cut_folder(err->text, files->folder);
  return blame(err, status);
}

/* From here on the files outlive a power cut. */
static shoal_status sync_files(const shoal_set_files *files, shoal_error *err) {
  shoal_status status = SHOAL_OK;
  for (uint32_t i = 0; i < files->count && status == SHOAL_OK; i++) {
    char *path = path_in(files, i);
    if (path == NULL) return fail_memory(err);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) != 0) status = shoal_fail(err, SHOAL_IO, "%s: %s", path, strerror(errno));
    if (fd >= 0) close(fd);
    free(path);
  }
  return status;
}

/* The name of a set is that of its folder. */
static const char *last_part(const char *folder) {
  const char *slash = strrchr(folder, '/');
  return slash != NULL ? slash + 1 : folder;
}

static shoal_status keep_manifest(const shoal_set_files *files, const char *kind, shoal_error *err) {
  shoal_text manifest = {0}, path = {0};
  char stamp[SHOAL_SHA256_HEX];
  shoal_set_files_stamp(files, stamp);
  shoal_status status = shoal_manifest_make(files, last_part(files->folder), kind, &manifest, err);
  shoal_text_addf(&path, "%s/" SHOAL_SET_MANIFEST, files->folder);
  if (status == SHOAL_OK && path.failed) status = fail_memory(err);
  if (status == SHOAL_OK) status = shoal_kept_write(path.bytes, stamp, &manifest, err);
  shoal_text_release(&manifest);
  shoal_text_release(&path);
  return status;
}

/* Zipped files give way to what is in them. */
static shoal_status unpack_draft(shoal_set_files *files, shoal_error *err) {
  uint64_t room = SHOAL_DATA_FILE_BYTES_MAX;
  shoal_status status = SHOAL_OK;
  bool changed = false;
  for (uint32_t i = 0; i < files->count && status == SHOAL_OK; i++) {
    char plain[SHOAL_FILE_NAME_MAX];
    if (!shoal_set_is_zipped(files->files[i].name, plain)) continue;
    char *from = path_in(files, i);
    shoal_text to = {0};
    shoal_text_addf(&to, "%s/%s", files->folder, plain);
    status = from != NULL && !to.failed ? shoal_set_unpack(from, to.bytes, &room, err) : fail_memory(err);
    if (status == SHOAL_OK && unlink(from) != 0)
      status = shoal_fail(err, SHOAL_IO, "%s: %s", from, strerror(errno));
    shoal_text_release(&to);
    free(from);
    changed = true;
  }
  if (!changed || status != SHOAL_OK) return status;
  char *folder = strdup(files->folder);
  shoal_set_files_release(files);
  status = folder != NULL ? shoal_set_files_list(files, folder, err) : fail_memory(err);
  free(folder);
  return status;
}

shoal_status shoal_datasets_check(const char *draft_folder, const shoal_set_said *said,
                                  shoal_text *description, shoal_error *err) {
  shoal_error local;
  if (err == NULL) err = &local;
  shoal_set_files *files = malloc(sizeof *files);
  if (files == NULL) return fail_memory(err);
  shoal_status status = shoal_set_files_list(files, draft_folder, err);
  if (status != SHOAL_OK) {
    free(files);
    return status;
  }
  shoal_text_clear(description);
  status = blame(err, unpack_draft(files, err));
  if (status == SHOAL_OK) status = shoal_set_describe(files, said, NULL, description, err);
  if (status == SHOAL_OK) status = sync_files(files, err);
  if (status == SHOAL_OK) status = keep_manifest(files, said->kind, err);
  if (status != SHOAL_OK) shoal_text_clear(description);
  if (status != SHOAL_OK) shoal_cut_folder(err->text, draft_folder);
  shoal_set_files_release(files);
  free(files);
  return status;
}
