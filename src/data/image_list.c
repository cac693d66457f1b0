/* image_list.c: see image_list.h. */
#include "data/image_list.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/human.h"
#include "base/magic.h"
#include "base/pool.h"
#include "base/random.h"
#include "data/image_file.h"

enum {
  OTHERS_NAMED = 3,
  FILES_MAX = 1 << 24,
  THREADS_MAX = 8, /* each may have an image of SHOAL_IMAGE_FILE_PIXELS_MAX at hand */
  TASK_FILES = 16, /* that a thread takes at once */
};

static const double test_share = 0.2; /* as of a table */

static shoal_status fail_memory(shoal_error *err) {
  return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
}

void shoal_image_list_init(shoal_image_list *list) {
  *list = (shoal_image_list){0};
  shoal_names_init(&list->classes);
}

void shoal_image_list_release(shoal_image_list *list) {
  for (uint64_t i = 0; i < list->count; i++) free(list->entries[i].path);
  free(list->entries);
  shoal_names_release(&list->classes);
  shoal_text_release(&list->other_names);
  shoal_text_release(&list->about);
  shoal_image_list_init(list);
}

/* ---- folders ------------------------------------------------------------------------ */

/* What is in a folder, but what is hidden, in the order of the names. */
typedef struct contents {
  struct dirent **entries;
  int count;
} contents;

static int is_shown(const struct dirent *entry) { return entry->d_name[0] != '.'; }

static int by_name(const struct dirent **a, const struct dirent **b) {
  return strcmp((*a)->d_name, (*b)->d_name);
}

static void contents_release(contents *c) {
  for (int i = 0; i < c->count; i++) free(c->entries[i]);
  free(c->entries);
  *c = (contents){0};
}

static shoal_status contents_read(contents *c, const char *folder, shoal_error *err) {
  *c = (contents){0};
  int count = scandir(folder, &c->entries, is_shown, by_name);
  if (count < 0) return shoal_fail_errno(folder, err);
  c->count = count;
  return SHOAL_OK;
}

bool shoal_image_list_is_flat(const char *folder) {
  DIR *here = opendir(folder);
  bool found = false;
  for (struct dirent *entry; here && !found && (entry = readdir(here));) {
    if (!is_shown(entry) || !shoal_image_file_is(entry->d_name)) continue;
    char *path = shoal_path("%s/%s", folder, entry->d_name);
    found = path && !shoal_folder_exists(path);
    free(path);
  }
  if (here) closedir(here);
  return found;
}

/* Whether a subfolder holds image files. */
static bool has_classes(const char *folder) {
  DIR *here = opendir(folder);
  bool found = false;
  for (struct dirent *entry; here && !found && (entry = readdir(here));) {
    if (!is_shown(entry)) continue;
    char *path = shoal_path("%s/%s", folder, entry->d_name);
    found = path && shoal_folder_exists(path) && shoal_image_list_is_flat(path);
    free(path);
  }
  if (here) closedir(here);
  return found;
}

static bool has_classes_in(const char *folder, const char *part) {
  char *path = shoal_path("%s/%s", folder, part);
  bool has = path && has_classes(path);
  free(path);
  return has;
}

bool shoal_image_list_is_folder(const char *folder) {
  return has_classes(folder) || has_classes_in(folder, "train");
}

bool shoal_image_list_add_hint(const char *folder, int depth, shoal_text *out) {
  DIR *here = opendir(folder);
  bool found = false;
  for (struct dirent *entry; here && !found && (entry = readdir(here));) {
    char *path = is_shown(entry) ? shoal_path("%s/%s", folder, entry->d_name) : NULL;
    const shoal_magic *magic = path ? shoal_magic_of_file(path) : NULL;
    if (path && depth > 0 && shoal_folder_exists(path))
      found = shoal_image_list_add_hint(path, depth - 1, out);
    else if (magic && magic->is_image)
      found = true;
    if (magic && magic->is_image)
      shoal_text_addf(out, "; %s is %s: %s", path, magic->what,
                      magic->is_read ? "give it a name that ends in .png or .jpg" : "convert it to PNG");
    free(path);
  }
  if (here) closedir(here);
  return found;
}

/* ---- the list ----------------------------------------------------------------------- */

static shoal_status add_entry(shoal_image_list *list, char *path, uint64_t bytes, uint8_t label, bool is_test,
                              shoal_error *err) {
  if (list->count == FILES_MAX) {
    free(path);
    return shoal_fail(err, SHOAL_LIMIT, "more than %s images", shoal_human_count(FILES_MAX).text);
  }
  if (list->count == list->capacity) {
    uint64_t more = list->capacity ? 2 * list->capacity : 1024;
    shoal_image_entry *entries = realloc(list->entries, more * sizeof *entries);
    if (!entries) {
      free(path);
      return fail_memory(err);
    }
    list->entries = entries;
    list->capacity = more;
  }
  list->entries[list->count++] = (shoal_image_entry){path, label, is_test};
  list->training += !is_test;
  shoal_text_addf(&list->about, "%d %d %llu ", is_test, label, (unsigned long long)bytes);
  return SHOAL_OK;
}

static void leave_out(shoal_image_list *list, const char *name) {
  if (list->others++ < OTHERS_NAMED)
    shoal_text_addf(&list->other_names, "%s%s", list->others > 1 ? ", " : "", name);
}

/* Adds the image files of a folder; how many there are is the caller's to see. */
static shoal_status add_folder(shoal_image_list *list, const char *folder, uint8_t label, bool is_test,
                               shoal_error *err) {
  contents c;
  shoal_status status = contents_read(&c, folder, err);
  for (int i = 0; i < c.count && status == SHOAL_OK; i++) {
    const char *name = c.entries[i]->d_name;
    char *path = shoal_path("%s/%s", folder, name);
    struct stat about = {0};
    if (!path) {
      status = fail_memory(err);
    } else if (shoal_image_file_is(name) && (stat(path, &about) != 0 || !S_ISDIR(about.st_mode))) {
      /* One that cannot be read, a link to nowhere say, is found out when it is decoded. */
      status = add_entry(list, path, (uint64_t)about.st_size, label, is_test, err);
      shoal_text_addf(&list->about, "%s\n", name);
    } else {
      leave_out(list, path);
      free(path);
    }
  }
  contents_release(&c);
  return status;
}

/* The number of a class, which `known` or the number of `classes` may have fixed. */
static shoal_status number_class(shoal_image_list *list, const char *path, const char *name,
                                 const shoal_names *known, uint32_t classes, uint32_t *out,
                                 shoal_error *err) {
  uint64_t number;
  if (!shoal_utf8_valid(name, strlen(name)))
    return shoal_fail(err, SHOAL_INVALID,
                      "%s: the name of this folder is not UTF-8, and it is the name of a class; rename it",
                      path);
  bool is_number = shoal_read_u64(name, strlen(name), &number) && number < classes;
  *out = classes == 0 ? shoal_names_add(&list->classes, name, strlen(name))
                      : shoal_names_find(known, name, strlen(name));
  if (*out == SHOAL_NO_NAME && is_number) *out = (uint32_t)number;
  if (*out == SHOAL_NO_NAME && classes == 0) return fail_memory(err);
  if (*out == SHOAL_NO_NAME && known->count == 0)
    return shoal_fail(
        err, SHOAL_INVALID,
        "%s: the model does not know this class; its classes have no names, so call the folders 0 to %u",
        path, classes - 1);
  if (*out == SHOAL_NO_NAME)
    return shoal_fail(err, SHOAL_INVALID, "%s: '%.60s' is none of the classes that are trained on: '%.60s'%s",
                      path, name, shoal_names_at(known, 0), known->count > 1 ? " and others" : "");
  if (*out >= SHOAL_IMAGE_CLASSES_MAX)
    return shoal_fail(err, SHOAL_LIMIT, "%s: too many classes; images can have at most %d", path,
                      SHOAL_IMAGE_CLASSES_MAX);
  return SHOAL_OK;
}

/* The subfolders of a folder, one a class. Classes below test/ must be among those of training. */
static shoal_status add_classes(shoal_image_list *list, const char *folder, const shoal_names *known,
                                uint32_t classes, bool is_test, const char *const *passed_over,
                                shoal_error *err) {
  contents c;
  shoal_status status = contents_read(&c, folder, err);
  for (int i = 0; i < c.count && status == SHOAL_OK; i++) {
    const char *name = c.entries[i]->d_name;
    bool is_part = false;
    for (int p = 0; passed_over && passed_over[p]; p++) is_part |= strcmp(name, passed_over[p]) == 0;
    char *path = is_part ? NULL : shoal_path("%s/%s", folder, name);
    uint32_t label = 0;
    uint64_t before = list->count;
    if (is_part) continue;
    if (!path) {
      status = fail_memory(err);
    } else if (passed_over || !shoal_folder_exists(path)) {
      leave_out(list, path);
    } else {
      status = number_class(list, path, name, known, classes, &label, err);
      shoal_text_addf(&list->about, "%s/\n", name);
      if (status == SHOAL_OK) status = add_folder(list, path, (uint8_t)label, is_test, err);
      if (status == SHOAL_OK && list->count == before) {
        shoal_text hint = {0};
        shoal_image_list_add_hint(path, 0, &hint);
        status = shoal_fail(err, SHOAL_INVALID,
                            "%s: this class has no images: no file in it ends in .png, .jpg or .jpeg%s", path,
                            hint.bytes ? hint.bytes : "");
        shoal_text_release(&hint);
      }
    }
    free(path);
  }
  contents_release(&c);
  return status;
}

/* train/ and test/ of a folder; what else is in it is left out. */
static shoal_status add_parts(shoal_image_list *list, const char *folder, const shoal_names *known,
                              uint32_t classes, shoal_error *err) {
  static const char *const parts[] = {"train", "test", NULL};
  char *train = shoal_path("%s/train", folder), *test = shoal_path("%s/test", folder);
  shoal_status status = train && test ? SHOAL_OK : fail_memory(err);
  if (status == SHOAL_OK) status = add_classes(list, train, known, classes, false, NULL, err);
  list->has_test = status == SHOAL_OK && shoal_folder_exists(test);
  if (list->has_test)
    status = add_classes(list, test, classes ? known : &list->classes,
                         classes ? classes : list->classes.count, true, NULL, err);
  if (status == SHOAL_OK) status = add_classes(list, folder, known, classes, false, parts, err);
  free(train);
  free(test);
  return status;
}

shoal_status shoal_image_list_classes(shoal_image_list *list, const char *folder, const shoal_names *known,
                                      uint32_t classes, shoal_error *err) {
  bool parted = has_classes_in(folder, "train");
  shoal_status status = parted ? add_parts(list, folder, known, classes, err)
                               : add_classes(list, folder, known, classes, false, NULL, err);
  if (status != SHOAL_OK) return status;
  if (classes == 0 && list->classes.count < 2)
    return shoal_fail(
        err, SHOAL_INVALID,
        "%s: there is only one class, '%.60s'; a classifier needs at least two, each in a folder of its own",
        folder, shoal_names_at(&list->classes, 0));
  list->labeled = true;
  if (list->about.failed || list->other_names.failed) return fail_memory(err);
  shoal_sha256_hex(list->about.bytes, list->about.length, list->sha256);
  return SHOAL_OK;
}

shoal_status shoal_image_list_add(shoal_image_list *list, const char *path, shoal_error *err) {
  if (!shoal_folder_exists(path)) {
    char *copy = strdup(path);
    return copy ? add_entry(list, copy, 0, 0, true, err) : fail_memory(err);
  }
  uint64_t before = list->count;
  shoal_status status = add_folder(list, path, 0, true, err);
  if (status == SHOAL_OK && list->count == before)
    status = shoal_fail(
        err, SHOAL_NOT_FOUND, "%s: no file in this folder ends in .png, .jpg or .jpeg%s", path,
        shoal_image_list_is_folder(path) ? "; a folder with a subfolder for each class is --data" : "");
  return status;
}

shoal_status shoal_image_list_hold_out(shoal_image_list *list, bool all, shoal_error *err) {
  shoal_key key = shoal_key_make(0, SHOAL_FOR_SPLIT, 1, 0);
  shoal_image_entry *sorted = malloc((list->count + 1) * sizeof *sorted);
  if (!sorted) return fail_memory(err);
  list->training = 0;
  for (uint64_t i = 0; i < list->count; i++) {
    bool is_first = i == 0 || list->entries[i].label != list->entries[i - 1].label;
    list->entries[i].is_test = all || (!is_first && shoal_random_uniform(key, i) < test_share);
    list->training += !list->entries[i].is_test;
  }
  uint64_t next[2] = {0, list->training};
  for (uint64_t i = 0; i < list->count; i++) sorted[next[list->entries[i].is_test]++] = list->entries[i];
  free(list->entries);
  list->entries = sorted;
  list->capacity = list->count + 1;
  return SHOAL_OK;
}

/* ---- decoding ----------------------------------------------------------------------- */

typedef struct size_seen {
  uint32_t w, h;
} size_seen;

typedef struct decoding {
  const shoal_image_list *list;
  void (*progress)(void *self, uint64_t done, uint64_t all);
  void *self;
  uint32_t c, h, w;
  uint8_t *pixels;
  pthread_mutex_t lock; /* of all below */
  uint64_t done;
  uint64_t failed_at; /* the first file that failed */
  shoal_status status;
  shoal_error err;
  size_seen smallest, largest;
  bool scaled, from_colour, from_grey, in_place; /* the last: some have the channels that are wanted */
} decoding;

static uint64_t area(size_seen s) { return (uint64_t)s.w * s.h; }

static bool is_less(size_seen a, size_seen b) { return area(a) != area(b) ? area(a) < area(b) : a.w < b.w; }

static void note_size(decoding *d, const shoal_image_file *image, uint32_t c) {
  size_seen seen = {image->w, image->h};
  if (d->smallest.w == 0 || is_less(seen, d->smallest)) d->smallest = seen;
  if (is_less(d->largest, seen)) d->largest = seen;
  d->scaled |= image->w != d->w || image->h != d->h;
  d->from_colour |= c == 3 && d->c == 1;
  d->from_grey |= c == 1 && d->c == 3;
  d->in_place |= c == d->c;
}

static void decode_one(decoding *d, uint64_t i) {
  shoal_image_file image;
  shoal_error err;
  shoal_status status = shoal_image_file_read(&image, d->list->entries[i].path, &err);
  uint32_t c = status == SHOAL_OK ? image.c : 0;
  if (status == SHOAL_OK)
    status =
        shoal_image_file_fit(&image, d->c, d->h, d->w, d->pixels + i * ((size_t)d->c * d->h * d->w), &err);
  pthread_mutex_lock(&d->lock);
  d->done++;
  if (status == SHOAL_OK) note_size(d, &image, c);
  if (status != SHOAL_OK && i < d->failed_at) {
    d->failed_at = i;
    d->status = status;
    d->err = err;
  }
  pthread_mutex_unlock(&d->lock);
  shoal_image_file_release(&image);
}

static void decode_some(void *context, uint32_t task, uint32_t thread) {
  decoding *d = context;
  uint64_t first = (uint64_t)task * TASK_FILES, end = first + TASK_FILES;
  for (uint64_t i = first; i < end && i < d->list->count; i++) {
    pthread_mutex_lock(&d->lock);
    bool of_use = i < d->failed_at; /* so that the first broken file is the one that is named */
    uint64_t done = d->done;
    pthread_mutex_unlock(&d->lock);
    if (of_use) decode_one(d, i);
    if (thread == 0 && d->progress) d->progress(d->self, done, d->list->count);
  }
}

/* "images of 32x48 to 640x480 are scaled to 28x28 and those in colour made grey" */
static void write_note(const decoding *d, shoal_text *note) {
  const shoal_image_list *list = d->list;
  if (d->scaled || d->from_colour || d->from_grey) {
    shoal_text_addf(note, "images of %ux%u", d->smallest.w, d->smallest.h);
    if (d->smallest.w != d->largest.w || d->smallest.h != d->largest.h)
      shoal_text_addf(note, " to %ux%u", d->largest.w, d->largest.h);
    const char *made = d->from_colour ? "made grey" : d->from_grey ? "made three equal channels" : NULL;
    const char *which = made == NULL || !d->in_place ? "" : d->from_colour ? " in colour" : " in grey";
    shoal_text_addf(note, "%s are", d->scaled ? "" : which);
    bool crops = (uint64_t)d->smallest.w * d->h != (uint64_t)d->smallest.h * d->w ||
                 (uint64_t)d->largest.w * d->h != (uint64_t)d->largest.h * d->w;
    if (d->scaled)
      shoal_text_addf(note, " scaled to %ux%u%s", d->w, d->h, crops ? ", cropped to the centre," : "");
    if (made != NULL && d->scaled)
      shoal_text_addf(note, " and%s%s %s", which[0] ? " those" : "", which, made);
    else if (made != NULL)
      shoal_text_addf(note, " %s", made);
    if (note->length > 0 && note->bytes[note->length - 1] == ',') note->bytes[--note->length] = 0;
  }
  if (list->others == 0) return;
  shoal_text_addf(note, "%sskipped %s %s: %s", note->length ? "\n" : "",
                  list->others == 1 ? "one" : shoal_human_count(list->others).text,
                  list->others == 1 ? "file that is not a PNG or JPEG file"
                                    : "files that are not PNG or JPEG files",
                  list->other_names.bytes);
  if (list->others > OTHERS_NAMED)
    shoal_text_addf(note, " and %s more", shoal_human_count(list->others - OTHERS_NAMED).text);
}

static shoal_status decode_all(decoding *d, shoal_error *err) {
  shoal_pool *pool;
  uint64_t tasks = (d->list->count + TASK_FILES - 1) / TASK_FILES;
  uint32_t threads = shoal_pool_cores() < THREADS_MAX ? shoal_pool_cores() : THREADS_MAX;
  shoal_status status = shoal_pool_create(&pool, tasks < threads ? (uint32_t)tasks : threads, err);
  if (status != SHOAL_OK) return status;
  shoal_pool_run(pool, (uint32_t)tasks, decode_some, d);
  shoal_pool_destroy(pool);
  if (d->status != SHOAL_OK && err) *err = d->err;
  return d->status;
}

/* Hands the decoded bytes over: images, then a label each. */
static void give(const decoding *d, shoal_images *images) {
  const shoal_image_list *list = d->list;
  size_t values = (size_t)d->c * d->h * d->w;
  uint8_t *labels = d->pixels + list->count * values;
  for (uint64_t i = 0; i < list->count; i++) {
    labels[i] = list->entries[i].label;
    if (list->labeled && labels[i] >= images->classes) images->classes = labels[i] + 1u;
  }
  if (list->classes.count > images->classes) images->classes = list->classes.count;
  images->decoded = d->pixels;
  images->labeled = list->labeled;
  images->training = list->training;
  images->test = list->count - list->training;
  for (int run = 0; run < 2; run++) {
    uint64_t first = run ? images->training : 0;
    images->runs[images->runs_count++] = (shoal_image_run){.images = d->pixels + first * values,
                                                           .image_stride = values,
                                                           .labels = list->labeled ? labels + first : NULL,
                                                           .label_stride = 1,
                                                           .first = first,
                                                           .count = run ? images->test : images->training,
                                                           .record_bytes = values};
  }
}

shoal_status shoal_image_list_decode(const shoal_image_list *list, shoal_images *images,
                                     void (*progress)(void *self, uint64_t done, uint64_t all), void *self,
                                     shoal_text *note, shoal_error *err) {
  decoding d = {.list = list,
                .progress = progress,
                .self = self,
                .c = images->c,
                .h = images->h,
                .w = images->w,
                .failed_at = UINT64_MAX};
  uint64_t bytes = list->count * ((uint64_t)d.c * d.h * d.w + 1);
  if (bytes > SHOAL_DATA_FILE_BYTES_MAX)
    return shoal_fail(
        err, SHOAL_LIMIT,
        "%s images of %ux%ux%u take %s, more than the %s that are possible; make the model's input "
        "smaller, or give fewer images",
        shoal_human_count(list->count).text, d.c, d.h, d.w, shoal_human_bytes((double)bytes).text,
        shoal_human_bytes((double)SHOAL_DATA_FILE_BYTES_MAX).text);
  d.pixels = malloc(bytes);
  if (!d.pixels) return fail_memory(err);
  pthread_mutex_init(&d.lock, NULL);
  shoal_status status = decode_all(&d, err);
  pthread_mutex_destroy(&d.lock);
  if (status != SHOAL_OK) {
    free(d.pixels);
    return status;
  }
  give(&d, images);
  write_note(&d, note);
  return note->failed ? fail_memory(err) : SHOAL_OK;
}
