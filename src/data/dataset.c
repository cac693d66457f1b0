/* dataset.c: finds what --data means, and checks that the model fits it. dataset_source.c feeds the engine.
 *
 * There are six kinds. Images, tables and the toys are samples with numbers of their own
 * (parts.h says which belong to what); a text is streams of tokens (text.h). */
#include "data/dataset_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/file.h"
#include "data/cifar.h"
#include "data/idx.h"
#include "data/image_file.h"
#include "data/named.h"
#include "data/toy.h"

static const char *const kind_names[SHOAL_DATA_KINDS] = {"images",      "table",    "text",
                                                         "toy:reverse", "toy:wave", "toy:noise"};

static const char *const kind_is[SHOAL_DATA_KINDS] = {"has images",       "would be read as a table",
                                                      "is a text",        "is made of tokens",
                                                      "is made of waves", "is made of noise"};
static const char *const kind_wants[SHOAL_DATA_KINDS] = {
    "images: give PNG or JPEG files, a folder of them with a subfolder for each class, or IDX files",
    "a table: give FILE.csv",
    "a text: give text:FILE or chars:FILE, or to continue a text `predict --prompt`",
    "toy:reverse",
    "toy:wave",
    "toy:noise"};

static shoal_status fail_memory(shoal_error *err) {
  return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
}

/* ---- piece by piece -------------------------------------------------------------------- */

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
           d->kind == SHOAL_DATA_TABLE && d->classes > 100
               ? ", or is the target a number? (`loss mean-squared`)"
               : "");
  if (d->output.kind == SHOAL_SEQUENCE)
    return fail_output(d, "one answer a sample", "end it with a vector (`lstm N last`, `flatten`, `dense N`)",
                       err);
  if (d->targets == SHOAL_TARGET_CLASSES)
    return outputs >= d->classes ? SHOAL_OK : fail_output(d, has, advice, err);
  if (outputs == 1 && (d->targets != SHOAL_TARGET_TWO || d->classes <= 2)) return SHOAL_OK;
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
  if (d->targets != SHOAL_TARGET_CLASSES)
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
  if (model->carry)
    return shoal_fail(err, SHOAL_INVALID, "the samples of %s do not continue each other; leave out `carry`",
                      d->name);
  if (d->kind == SHOAL_DATA_NOISE) {
    if (d->targets == SHOAL_TARGET_CLASSES) d->classes = d->output.features;
    return shoal_noise_create(&d->noise, model, err);
  }
  if (d->kind == SHOAL_DATA_WAVE) {
    if (d->input.kind != SHOAL_VECTOR || d->input.features != SHOAL_TOY_WAVE_INPUTS)
      return fail_input(d, "frequency, phase and amplitude", "3", err);
    if (d->output.kind != SHOAL_SEQUENCE || d->output.features != 1)
      return fail_output(d, "one number a step", "use `repeat T` and end it with `dense 1`", err);
    if (d->targets != SHOAL_TARGET_NUMBER)
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
  if (d->targets != SHOAL_TARGET_CLASSES)
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
  if (dataset->kind == SHOAL_DATA_TABLE) shoal_table_write(&dataset->table, &json);
  if (dataset->kind == SHOAL_DATA_TEXT) shoal_tokens_write(&dataset->tokens, &json);
  if (dataset->kind == SHOAL_DATA_IMAGES) {
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
    if (dataset->files_sha256[0]) shoal_json_text(&json, "files_sha256", dataset->files_sha256);
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
  const cJSON *sha256 = cJSON_GetObjectItemCaseSensitive(json, "files_sha256");
  if (cJSON_IsString(sha256) && strlen(sha256->valuestring) == sizeof d->files_sha256 - 1)
    memcpy(d->files_sha256, sha256->valuestring, sizeof d->files_sha256);
  if (!cJSON_IsNumber(classes) || classes->valuedouble < 0 || classes->valuedouble > SHOAL_IMAGE_CLASSES_MAX)
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
  while (found < SHOAL_DATA_KINDS &&
         !(cJSON_IsString(name) && strcmp(name->valuestring, kind_names[found]) == 0))
    found++;
  shoal_status status = SHOAL_OK;
  if (found == SHOAL_DATA_KINDS)
    status = shoal_fail(err, SHOAL_CORRUPT, "not a data set's JSON");
  else if (found == SHOAL_DATA_IMAGES)
    status = read_images(d, json, err);
  else if (found == SHOAL_DATA_TABLE)
    status = shoal_table_read_fitted(&d->table, json, err);
  else if (found == SHOAL_DATA_TEXT)
    status = shoal_tokens_read_fitted(&d->tokens, json, err);
  d->kind = (shoal_data_kind)found;
  cJSON_Delete(json);
  if (status != SHOAL_OK) shoal_error_prefix(err, "what was fitted to the training data cannot be read: ");
  return status;
}

/* ---- opening ------------------------------------------------------------------------ */

/* What to open, found from the text of --data. */
typedef struct plan {
  shoal_data_kind kind;
  const shoal_named_set *set; /* NULL for files */
  enum { FOLDER_IDX, FOLDER_CIFAR, FILE_IDX, FOLDER_FILES, FILES } images;
  shoal_text_unit unit;
  uint64_t samples, test; /* of a toy */
  /* Images have one path, tables one for training and maybe one for test, texts one for each part. */
  char *paths[SHOAL_SPLITS];
} plan;

static bool is_file(const char *path) { return shoal_file_exists(path) && !shoal_folder_exists(path); }

/* The texts of a folder: ptb.train.txt, train.txt, wiki.train.tokens and the like. */
static bool find_texts(plan *p, const char *folder) {
  static const char *const before[] = {"ptb.", "", "wiki."}, *const after[] = {".txt", ".tokens"};
  static const char *const names[SHOAL_SPLITS] = {"train", "valid", "test"};
  for (int i = 0; i < 6; i++) {
    for (int split = 0; split < SHOAL_SPLITS; split++) {
      char *path = shoal_path("%s/%s%s%s", folder, before[i % 3], names[split], after[i / 3]);
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
  p->kind = SHOAL_DATA_TEXT;
  p->unit = unit;
  if (!shoal_folder_exists(path)) return (p->paths[SHOAL_TRAIN] = strdup(path)) ? SHOAL_OK : fail_memory(err);
  if (!find_texts(p, path)) return shoal_fail(err, SHOAL_NOT_FOUND, "%s: no train.txt in this folder", path);
  return SHOAL_OK;
}

/* Image files may also be given by the folder that they are in, when their classes are not asked for. */
static shoal_status plan_folder(plan *p, const char *folder, bool unlabeled, shoal_error *err) {
  bool idx = shoal_idx_is_folder(folder), cifar = shoal_cifar_is_folder(folder);
  p->kind = idx || cifar ? SHOAL_DATA_IMAGES : SHOAL_DATA_TEXT;
  p->images = idx ? FOLDER_IDX : FOLDER_CIFAR;
  p->unit = SHOAL_WORDS;
  if (!idx && !cifar && find_texts(p, folder)) return SHOAL_OK;
  if (!idx && !cifar) {
    bool flat = shoal_image_list_is_flat(folder), classes = shoal_image_list_is_folder(folder);
    p->kind = SHOAL_DATA_IMAGES;
    p->images = classes && !unlabeled ? FOLDER_FILES : FILES;
    if (!classes && flat && !unlabeled)
      return shoal_fail(
          err, SHOAL_INVALID,
          "%s: this folder holds image files without classes; put the images of each class into a subfolder "
          "with the name of the class",
          folder);
    if (!classes && !flat) {
      shoal_text hint = {0};
      shoal_image_list_add_hint(folder, 2, &hint);
      shoal_fail(
          err, SHOAL_NOT_FOUND,
          "%s: no data in this folder: looked for train-images-idx3-ubyte[.gz], data_batch_1.bin, train.txt, "
          "and CLASS/*.png or CLASS/*.jpg, also below train/%s",
          folder, hint.bytes ? hint.bytes : "");
      shoal_text_release(&hint);
      return SHOAL_NOT_FOUND;
    }
  }
  return (p->paths[0] = strdup(folder)) ? SHOAL_OK : fail_memory(err);
}

static shoal_status plan_file(plan *p, const char *path, bool unlabeled, shoal_error *err) {
  bool image = shoal_image_file_at(path);
  if (image && !unlabeled)
    return shoal_fail(
        err, SHOAL_INVALID,
        "%s is one image; data is a folder with a subfolder for each class (FOLDER/CLASS/*.png), and "
        "`shoal predict MODEL.safetensors --input %s` says what a trained model sees in this one",
        path, path);
  p->kind = image || shoal_idx_is_images(path) ? SHOAL_DATA_IMAGES : SHOAL_DATA_TABLE;
  p->images = image ? FILES : FILE_IDX;
  return (p->paths[0] = strdup(path)) ? SHOAL_OK : fail_memory(err);
}

/* "train.csv,test.csv": the comma between two files that exist. */
static bool plan_pair(plan *p, const char *data) {
  for (const char *comma = strchr(data, ','); comma; comma = strchr(comma + 1, ',')) {
    char *first = strndup(data, (size_t)(comma - data)), *second = strdup(comma + 1);
    if (first && second && is_file(first) && is_file(second)) {
      p->kind = SHOAL_DATA_TABLE;
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
  const char *noise = kind_names[SHOAL_DATA_NOISE], *end = data + strlen(data);
  size_t length = strlen(noise);
  p->samples = SHOAL_TOY_TRAINING;
  p->test = SHOAL_TOY_TEST;
  for (p->kind = SHOAL_DATA_REVERSE; p->kind <= SHOAL_DATA_NOISE; p->kind++)
    if (strcmp(data, kind_names[p->kind]) == 0) return SHOAL_OK;
  bool sized = strncmp(data, noise, length) == 0 && data[length] == ':' &&
               shoal_read_u64(data + length + 1, (size_t)(end - data) - length - 1, &p->samples);
  if (!sized || p->samples == 0 || p->samples > SHOAL_NOISE_SAMPLES_MAX)
    return shoal_fail(err, SHOAL_NOT_FOUND,
                      "'%.60s' is unknown; there are toy:noise, toy:noise:SAMPLES, toy:reverse and toy:wave",
                      data);
  p->kind = SHOAL_DATA_NOISE;
  p->test = 0;
  return SHOAL_OK;
}

static shoal_status make_plan(plan *p, const shoal_dataset_options *options, shoal_error *err) {
  const char *data = options->data;
  if (strncmp(data, "text:", 5) == 0) return plan_text(p, SHOAL_WORDS, data + 5, err);
  if (strncmp(data, "chars:", 6) == 0) return plan_text(p, SHOAL_CHARACTERS, data + 6, err);
  if (strncmp(data, "toy:", 4) == 0) return plan_toy(p, data, err);
  p->set = shoal_named_set_of(data);
  if (p->set) {
    char *folder;
    shoal_status status = shoal_named_locate(p->set, options->data_dir, &folder, err);
    if (status == SHOAL_OK) status = plan_folder(p, folder, options->unlabeled, err);
    free(folder);
    return status;
  }
  if (shoal_folder_exists(data)) return plan_folder(p, data, options->unlabeled, err);
  if (is_file(data)) return plan_file(p, data, options->unlabeled, err);
  if (plan_pair(p, data)) return SHOAL_OK;
  const char *nearest = shoal_named_nearest(data);
  if (nearest)
    return shoal_fail(err, SHOAL_NOT_FOUND, "no data set or file is called '%.200s'; did you mean '%s'?",
                      data, nearest);
  return shoal_fail(err, SHOAL_NOT_FOUND,
                    "no data set or file is called '%.200s'; `shoal data list` shows the data sets", data);
}

/* The shape that image files are fitted to: the model's input, or what was fitted before. To a vector the first
 * image must fit as it is. */
static shoal_status choose_shape(shoal_dataset *d, shoal_images *images, shoal_error *err) {
  const shoal_shape *input = &d->input;
  images->c = 1;
  if (input->kind == SHOAL_IMAGE) {
    images->c = input->c;
    images->h = input->h;
    images->w = input->w;
  } else if (input->kind == SHOAL_SEQUENCE) {
    images->h = input->steps;
    images->w = input->features;
  } else if (input->kind == SHOAL_VECTOR) {
    shoal_image_file first;
    shoal_status status = shoal_image_file_read(&first, d->files.entries[0].path, err);
    if (status != SHOAL_OK) return status;
    images->h = first.h;
    images->w = first.w;
    images->c = (uint64_t)first.h * first.w * 3 == input->features ? 3 : 1;
    shoal_image_file_release(&first);
  } else {
    return fail_input(d, "images", "3x64x64", err);
  }
  return SHOAL_OK;
}

/* A model that was trained on other files may take any number of channels. */
static shoal_status check_channels(const shoal_dataset *d, const shoal_images *images, shoal_error *err) {
  if (images->c == 1 || images->c == 3) return SHOAL_OK;
  bool is_last = images->w == 1 || images->w == 3; /* the channels, as in Keras */
  return shoal_fail(
      err, SHOAL_INVALID,
      "%s: image files have 1 channel (grey) or 3 (red, green, blue), but the model's input is %ux%ux%u; "
      "a model with `input %ux%ux%u` takes them",
      d->name, images->c, images->h, images->w, is_last ? images->w : 3, is_last ? images->c : images->h,
      is_last ? images->h : images->w);
}

static shoal_status open_image_files(shoal_dataset *d, const plan *p, const shoal_dataset_options *options,
                                     shoal_images *images, shoal_error *err) {
  bool fitted = options->fitted_json != NULL;
  shoal_image_list *files = &d->files;
  shoal_status status;
  if (p->images == FOLDER_FILES) {
    status = shoal_image_list_classes(files, p->paths[0], &d->class_names, fitted ? d->classes : 0, err);
    bool other = fitted && strcmp(files->sha256, d->files_sha256) != 0;
    if (status == SHOAL_OK && !files->has_test) status = shoal_image_list_hold_out(files, other, err);
    if (!fitted && !files->has_test) memcpy(d->files_sha256, files->sha256, sizeof d->files_sha256);
  } else {
    status = shoal_image_list_add(files, p->paths[0], err);
    for (size_t i = 0; i < options->more_count && status == SHOAL_OK; i++)
      status = shoal_image_list_add(files, options->more[i], err);
  }
  if (status == SHOAL_OK && !fitted) status = choose_shape(d, images, err);
  if (status == SHOAL_OK) status = check_channels(d, images, err);
  if (status == SHOAL_OK && !fitted) status = check_images_input(d, err);
  if (status == SHOAL_OK)
    status = shoal_image_list_decode(files, images, options->progress, options->progress_self, &d->note, err);
  for (uint32_t i = 0; i < files->classes.count && status == SHOAL_OK; i++) {
    const char *name = shoal_names_at(&files->classes, i);
    if (shoal_names_add(&d->class_names, name, strlen(name)) == SHOAL_NO_NAME) status = fail_memory(err);
  }
  return status;
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
  else if (p->images == FOLDER_FILES || p->images == FILES)
    status = open_image_files(d, p, options, images, err);
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
  if (p->images == FOLDER_IDX && !options->fitted_json) {
    status = shoal_idx_read_about(images, p->paths[0], &d->class_names, d->files_sha256, err);
    if (status != SHOAL_OK) {
      shoal_error_prefix(err, "%s: ", d->name);
      return status;
    }
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
  shoal_status status = shoal_table_open(&d->table, p->paths[0], p->paths[1], options->target, d->targets,
                                         options->unlabeled, err);
  if (options->no_target) *options->no_target = d->table.target_column == SHOAL_NO_NAME;
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
  bool samples = d->classes > 0 && labels && (d->kind == SHOAL_DATA_IMAGES || d->kind == SHOAL_DATA_TABLE);
  for (uint64_t i = 0; samples && i < training; i++) d->class_counts[shoal_dataset_label(d, i)]++;
  for (uint64_t i = 0; samples && i < valid; i++)
    d->class_counts[shoal_dataset_label(d, shoal_parts_number(&d->parts, SHOAL_VALID, i))]--;
  for (uint64_t i = 1; d->kind == SHOAL_DATA_TEXT && i < d->tokens.count[SHOAL_TRAIN]; i++)
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
  shoal_image_list_init(&d->files);
  return d;
}

void shoal_dataset_close(shoal_dataset *dataset) {
  if (!dataset) return;
  shoal_dataset_forget_sources(dataset);
  shoal_images_release(&dataset->images);
  shoal_table_release(&dataset->table);
  shoal_tokens_release(&dataset->tokens);
  shoal_names_release(&dataset->class_names);
  shoal_image_list_release(&dataset->files);
  shoal_text_release(&dataset->note);
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
      return shoal_fail(err, SHOAL_INVALID, "%s %s, but the model was trained on %s", d->name,
                        kind_is[p->kind], kind_wants[d->kind]);
  }
  d->kind = p->kind;
  const shoal_augment *augment = &model->recipe.augment;
  if ((augment->flip || augment->crop > 0) && p->kind != SHOAL_DATA_IMAGES && p->kind != SHOAL_DATA_NOISE)
    return shoal_fail(err, SHOAL_INVALID, "%s %s, and `augment` needs images; leave out the line or flag",
                      d->name, kind_is[p->kind]);
  shoal_status status = SHOAL_OK;
  if (p->kind == SHOAL_DATA_IMAGES) {
    status = open_images(d, p, options, err);
    if (status == SHOAL_OK) status = check_images_input(d, err);
    uint32_t side = d->images.h < d->images.w ? d->images.h : d->images.w;
    if (status == SHOAL_OK && !options->fitted_json && augment->crop >= side)
      return shoal_fail(err, SHOAL_INVALID,
                        "`augment crop %u` can move images of %ux%u out of sight; give less than %u",
                        augment->crop, d->images.w, d->images.h, side);
    if (status == SHOAL_OK && !d->images.labeled && !options->unlabeled)
      return shoal_fail(err, SHOAL_NOT_FOUND,
                        "%s: there is no file of labels beside it; to predict without, use `shoal predict "
                        "--input`",
                        d->name);
    if (status == SHOAL_OK && d->images.labeled) status = check_answer(d, err);
  } else if (p->kind == SHOAL_DATA_TABLE && d->input.kind == SHOAL_TOKENS) {
    status = shoal_fail(err, SHOAL_INVALID,
                        "%s would be read as a table, but the model takes tokens: write text:%s or chars:%s",
                        d->name, d->name, d->name);
  } else if (p->kind == SHOAL_DATA_TABLE) {
    status = open_table(d, p, options, err);
    if (status == SHOAL_OK && d->table.labeled) status = check_answer(d, err);
  } else if (p->kind == SHOAL_DATA_TEXT) {
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
  d->targets = shoal_targets_of(&model->recipe);
  if (options->store) status = open_store(d, options, model, err);
  if (status == SHOAL_OK) status = make_plan(&p, options, err);
  if (status == SHOAL_OK && options->target && p.kind != SHOAL_DATA_TABLE)
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
  if (status == SHOAL_OK && d->kind == SHOAL_DATA_TABLE) d->classes = d->table.classes.count;
  if (status == SHOAL_OK && d->kind == SHOAL_DATA_TEXT) d->classes = d->tokens.vocabulary.count;
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
  if (dataset->kind != SHOAL_DATA_TEXT) return dataset->parts.count[split];
  uint64_t tokens = dataset->tokens.count[split];
  return tokens > 1 ? tokens : 0; /* one has no successor to foretell */
}

bool shoal_dataset_is_text(const shoal_dataset *dataset) { return dataset->kind == SHOAL_DATA_TEXT; }

bool shoal_dataset_is_images(const shoal_dataset *dataset) { return dataset->kind == SHOAL_DATA_IMAGES; }

const shoal_images *shoal_dataset_images(const shoal_dataset *dataset) {
  return dataset->kind == SHOAL_DATA_IMAGES ? &dataset->images : NULL;
}

const shoal_table *shoal_dataset_table(const shoal_dataset *dataset) {
  return dataset->kind == SHOAL_DATA_TABLE ? &dataset->table : NULL;
}

bool shoal_dataset_is_in_lanes(const shoal_dataset *dataset) { return dataset->input.kind == SHOAL_IMAGE; }

uint32_t shoal_dataset_classes(const shoal_dataset *dataset) { return dataset->classes; }

const char *shoal_dataset_class_name(const shoal_dataset *dataset, uint32_t class_index) {
  const shoal_names *names = dataset->kind == SHOAL_DATA_TABLE  ? &dataset->table.classes
                             : dataset->kind == SHOAL_DATA_TEXT ? &dataset->tokens.vocabulary
                                                                : &dataset->class_names;
  return class_index < names->count ? shoal_names_at(names, class_index) : NULL;
}

shoal_status shoal_dataset_pack(const shoal_dataset *dataset, const char *folder, shoal_error *err) {
  return shoal_idx_write_folder(&dataset->images, &dataset->class_names, dataset->files_sha256, folder, err);
}

const char *shoal_dataset_note(const shoal_dataset *dataset) {
  return dataset->note.length > 0 ? dataset->note.bytes : NULL;
}

uint64_t shoal_dataset_class_count(const shoal_dataset *dataset, uint32_t class_index) {
  return class_index < dataset->classes ? dataset->class_counts[class_index] : 0;
}

shoal_status shoal_dataset_encode(const shoal_dataset *dataset, const char *text, int32_t *tokens, size_t max,
                                  size_t *count, shoal_error *err) {
  *count = 0;
  if (dataset->kind != SHOAL_DATA_TEXT)
    return shoal_fail(err, SHOAL_UNSUPPORTED, "%s is not a text", dataset->name);
  return shoal_tokens_encode(&dataset->tokens, text, tokens, max, count, err);
}

void shoal_dataset_opening(const shoal_dataset *dataset, shoal_text *out) {
  if (dataset->kind == SHOAL_DATA_TEXT) shoal_tokens_opening(&dataset->tokens, out);
}
