/* upload.c: see upload.h. */
#include "cli/upload.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/human.h"
#include "base/json.h"
#include "base/json_at.h"
#include "cli/image_reading.h"
#include "cli/progress.h"
#include "data/chunk_store.h"
#include "data/cifar.h"
#include "data/idx.h"
#include "data/image_file.h"
#include "data/image_list.h"
#include "data/limits.h"
#include "data/named.h"
#include "server/manifest.h"

static const double BACK_S = 10; /* how long a server is waited for that shall forget what was sent */

/* A set of this machine. */
typedef struct local_set {
  char name[SHOAL_FILE_NAME_MAX];
  const char *kind;
  uint32_t count;
  char *paths[SHOAL_MANIFEST_FILES_MAX];
  const char *names[SHOAL_MANIFEST_FILES_MAX]; /* what they are called there */
  uint64_t bytes, sent;                        /* of all files; of those before the one on its way */
  uint32_t taken;                              /* files that the server has, or may have */
  shoal_progress progress;
  double started;
  char *packed; /* a folder of our own, to be removed; or NULL */
} local_set;

static void release(local_set *set) {
  for (uint32_t i = 0; i < set->count; i++) free(set->paths[i]);
  if (set->packed) (void)shoal_remove_folder(set->packed, NULL);
  free(set->packed);
}

static const char *base_of(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* ---- what there is ---- */

/* `name` is what it is called there; NULL: as here. */
static shoal_status add_path(local_set *set, const char *path, size_t length, const char *name,
                             shoal_error *err) {
  if (set->count == SHOAL_MANIFEST_FILES_MAX)
    return shoal_fail(err, SHOAL_LIMIT, "%.*s: a data set has at most %d files", (int)length, path,
                      SHOAL_MANIFEST_FILES_MAX);
  char *copy = strndup(path, length);
  if (!copy) return shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory");
  set->paths[set->count] = copy;
  set->names[set->count++] = name ? name : base_of(copy);
  struct stat about;
  if (stat(copy, &about) != 0) return shoal_fail(err, SHOAL_NOT_FOUND, "%s: %s", copy, strerror(errno));
  if (!S_ISREG(about.st_mode)) return shoal_fail(err, SHOAL_INVALID, "%s: is not a file", copy);
  if (about.st_size == 0) return shoal_fail(err, SHOAL_INVALID, "%s is empty", copy);
  if (!shoal_manifest_is_name(set->names[set->count - 1]))
    return shoal_fail(err, SHOAL_INVALID, "%s: a file with such a name cannot be sent; rename it", copy);
  set->bytes += (uint64_t)about.st_size;
  return SHOAL_OK;
}

static bool ends_in(const char *name, const char *end) {
  size_t length = strlen(name), end_length = strlen(end);
  return length > end_length && strcmp(name + length - end_length, end) == 0;
}

static bool belongs(const char *kind, const char *name) {
  if (name[0] == '.') return false;
  if (strcmp(kind, "idx") == 0) return strstr(name, "-ubyte") != NULL || strcmp(name, "about.json") == 0;
  if (strcmp(kind, "cifar") == 0) return ends_in(name, ".bin");
  return ends_in(name, ".txt") || ends_in(name, ".tokens");
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static shoal_status add_folder(local_set *set, const char *folder, shoal_error *err) {
  DIR *here = opendir(folder);
  if (!here) return shoal_fail(err, SHOAL_NOT_FOUND, "%s: %s", folder, strerror(errno));
  shoal_status status = SHOAL_OK;
  for (struct dirent *entry; status == SHOAL_OK && (entry = readdir(here));) {
    if (!belongs(set->kind, entry->d_name)) continue;
    shoal_text path;
    shoal_text_init(&path);
    shoal_text_addf(&path, "%s/%s", folder, entry->d_name);
    status = path.failed ? shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory")
                         : add_path(set, path.bytes, path.length, NULL, err);
    shoal_text_release(&path);
  }
  closedir(here);
  if (status == SHOAL_OK && set->count == 0)
    status = shoal_fail(err, SHOAL_NOT_FOUND, "%s: no data in this folder", folder);
  qsort(set->paths, set->count, sizeof *set->paths, by_text);
  for (uint32_t i = 0; i < set->count; i++) set->names[i] = base_of(set->paths[i]);
  return status;
}

/* A new folder in the cache. */
static shoal_status make_packed(local_set *set, shoal_error *err) {
  char *cache = shoal_chunk_cache();
  if (!cache)
    return shoal_fail(err, SHOAL_NOT_FOUND, "there is no home folder to pack images in; set XDG_CACHE_HOME");
  shoal_status status = shoal_make_folder(cache, err);
  if (status == SHOAL_OK) {
    set->packed = shoal_path("%s/packed-XXXXXX", cache);
    if (!set->packed) status = shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory");
  }
  if (status == SHOAL_OK && !mkdtemp(set->packed)) {
    status = shoal_fail_errno(set->packed, err);
    free(set->packed);
    set->packed = NULL;
  }
  free(cache);
  return status;
}

/* Image files become IDX files of what the model would see of them. */
static shoal_status pack_images(local_set *set, const shoal_upload_config *c, const char *folder,
                                shoal_error *err) {
  shoal_model *model = NULL;
  shoal_dataset *dataset = NULL;
  shoal_dataset_options options = {.data = folder, .data_dir = c->data_dir};
  shoal_image_reading reading;
  if (!c->model)
    return shoal_fail(err, SHOAL_INVALID, "%s: a search takes one CSV file, and no images", folder);
  shoal_status status = shoal_model_load(&model, c->model, err);
  shoal_image_reading_begin(&reading, &options, c->text);
  if (status == SHOAL_OK) status = shoal_dataset_open(&dataset, &options, model, err);
  shoal_image_reading_end(&reading, dataset);
  if (status == SHOAL_OK) status = make_packed(set, err);
  if (status == SHOAL_OK) status = shoal_dataset_pack(dataset, set->packed, err);
  shoal_dataset_close(dataset);
  shoal_model_destroy(model);
  return status;
}

/* "novel" of "books/novel.txt", "digits" of "data/digits/". */
static void name_after(const char *path, char out[SHOAL_FILE_NAME_MAX]) {
  char copy[4096];
  snprintf(copy, sizeof copy, "%s", path);
  size_t length = strlen(copy);
  while (length > 1 && copy[length - 1] == '/') copy[--length] = 0;
  const char *base = base_of(copy);
  size_t stem = shoal_folder_exists(path) ? strlen(base) : strcspn(base, ".");
  shoal_text_plain(out, SHOAL_FILE_NAME_MAX, base, stem > 0 ? stem : strlen(base));
}

/* "TRAIN.csv,TEST.csv": the comma between two files that exist, as in data/dataset.c; NULL: there is none. */
static const char *find_comma(const char *path) {
  for (const char *comma = strchr(path, ','); comma; comma = strchr(comma + 1, ',')) {
    char *first = strndup(path, (size_t)(comma - path));
    bool both = first && shoal_file_exists(first) && shoal_file_exists(comma + 1);
    free(first);
    if (both) return comma;
  }
  return NULL;
}

/* What one of two tables is sent as: which is which, the server sees by the names. */
static const char *sent_as(const char *path, bool is_test) {
  bool zipped = ends_in(path, ".gz");
  if (is_test) return zipped ? "test.csv.gz" : "test.csv";
  return zipped ? "train.csv.gz" : "train.csv";
}

static shoal_status find_table(local_set *set, const char *path, const char *test, shoal_error *err) {
  set->kind = "table";
  if (shoal_folder_exists(path))
    return shoal_fail(err, SHOAL_INVALID, "%s: is a folder; a search takes one CSV file", path);
  shoal_status status = add_path(set, path, strlen(path), test ? sent_as(path, false) : NULL, err);
  if (status == SHOAL_OK && test) status = add_path(set, test, strlen(test), sent_as(test, true), err);
  return status;
}

/* FILE or FOLDER; "A.csv,B.csv" for a table with test rows of its own. Which is which, the server sees by the
 * names: they are sent under such as leave no doubt. */
static shoal_status find_files(local_set *set, const shoal_upload_config *c, const char *path,
                               shoal_error *err) {
  if (shoal_folder_exists(path)) {
    bool plain = set->kind || shoal_idx_is_folder(path) || shoal_cifar_is_folder(path);
    if (!plain && shoal_image_list_is_folder(path)) {
      shoal_status status = pack_images(set, c, path, err);
      if (status != SHOAL_OK) return status;
      path = set->packed;
    }
    if (!set->kind)
      set->kind = shoal_idx_is_folder(path) ? "idx" : shoal_cifar_is_folder(path) ? "cifar" : "text";
    return add_folder(set, path, err);
  }
  if (!set->kind && shoal_image_file_at(path))
    return shoal_fail(
        err, SHOAL_INVALID,
        "%s is one image; data is a folder with a subfolder for each class (FOLDER/CLASS/*.png)", path);
  const char *comma = shoal_file_exists(path) || set->kind ? NULL : find_comma(path);
  if (!set->kind) set->kind = "csv";
  if (!comma) return add_path(set, path, strlen(path), NULL, err);
  shoal_status status = add_path(set, path, (size_t)(comma - path), "train.csv", err);
  return status == SHOAL_OK ? add_path(set, comma + 1, strlen(comma + 1), "test.csv", err) : status;
}

static shoal_status find_set(local_set *set, const shoal_upload_config *c, shoal_error *err) {
  const char *path = c->data;
  const shoal_named_set *named = shoal_named_set_of(path);
  if (!c->is_table && strncmp(path, "text:", 5) == 0) set->kind = "text";
  if (!c->is_table && strncmp(path, "chars:", 6) == 0) set->kind = "chars";
  if (set->kind) path = strchr(path, ':') + 1;
  shoal_status status;
  if (c->is_table) {
    status = find_table(set, path, c->test, err);
    name_after(path, set->name);
  } else if (named) {
    char *folder;
    status = shoal_named_locate(named, c->data_dir, &folder, err);
    if (status == SHOAL_OK) status = find_files(set, c, folder, err);
    free(folder);
    snprintf(set->name, sizeof set->name, "%s", named->name);
  } else {
    status = find_files(set, c, path, err);
    name_after(status == SHOAL_OK && !shoal_folder_exists(path) ? set->paths[0] : path,
               set->name); /* of two the first */
  }
  if (c->name) snprintf(set->name, sizeof set->name, "%s", c->name);
  return status;
}

/* ---- what the server has ---- */

/* Asks for /datasets/NAME and what follows; *answer is the caller's. */
static shoal_status ask_of_set(const shoal_upload_config *c, const char *method, const char *name,
                               const char *rest, const char *json, cJSON **answer, shoal_error *err) {
  shoal_text path = {0};
  *answer = NULL;
  shoal_text_addf(&path, "/datasets/");
  shoal_fetch_escape(&path, name);
  shoal_text_addf(&path, "%s", rest);
  shoal_status status = path.failed ? shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory")
                                    : shoal_remote_ask(c->api, method, path.bytes, json, answer, err);
  shoal_text_release(&path);
  return status;
}

static shoal_status server_has(const shoal_upload_config *c, const char *name, bool *has, shoal_error *err) {
  cJSON *answer;
  shoal_status status = ask_of_set(c, "GET", name, "", NULL, &answer, err);
  cJSON_Delete(answer);
  *has = status == SHOAL_OK;
  return status == SHOAL_NOT_FOUND ? SHOAL_OK : status;
}

/* Whether a file is the one that a manifest tells of. The server keeps files unpacked. */
static bool is_same_file(const local_set *set, uint32_t number, const cJSON *file) {
  char plain[SHOAL_FILE_NAME_MAX], sha256[SHOAL_SHA256_HEX];
  bool zipped = shoal_set_is_zipped(set->names[number], plain);
  if (strcmp(plain, shoal_text_at(file, "name")) != 0) return false;
  uint8_t *bytes;
  size_t length;
  if (shoal_file_read(set->paths[number], SHOAL_DATA_FILE_BYTES_MAX, zipped, &bytes, &length, NULL) !=
      SHOAL_OK)
    return false;
  shoal_sha256_hex(bytes, length, sha256);
  free(bytes);
  return strcmp(sha256, shoal_text_at(file, "sha256")) == 0;
}

/* Whether a manifest's files are those of the set. */
static bool has_same_files(const local_set *set, const cJSON *manifest) {
  const cJSON *files = cJSON_GetObjectItemCaseSensitive(manifest, "files"), *file;
  bool same = cJSON_GetArraySize(files) == (int)set->count;
  cJSON_ArrayForEach(file, files) {
    bool found = false;
    for (uint32_t i = 0; i < set->count && same && !found; i++) found = is_same_file(set, i, file);
    same = same && found;
  }
  return same;
}

/* The same files can be read as words and as characters: those are two sets. */
static shoal_status compare(const shoal_upload_config *c, const local_set *set, shoal_error *err) {
  char kind[16];
  char other[SHOAL_FILE_NAME_MAX + 40] =
      ""; /* how the other is asked for, unless what is here has that name */
  if (strcmp(c->data, set->name) != 0)
    snprintf(other, sizeof other, ", or use that one: %s%s", c->is_table ? "" : "--data ", set->name);
  cJSON *manifest;
  shoal_status status = ask_of_set(c, "GET", set->name, "/manifest", NULL, &manifest, err);
  shoal_plain_at(manifest, "kind", kind, sizeof kind);
  bool same_kind = strcmp(kind, set->kind) == 0;
  if (status == SHOAL_OK && !same_kind)
    status = shoal_fail(err, SHOAL_CONFLICT,
                        "the server has a data set '%s' of the kind %s, and this one is of the kind %s; give "
                        "it a name with --data-name%s",
                        set->name, kind, set->kind, other);
  if (status == SHOAL_OK && !has_same_files(set, manifest))
    status = shoal_fail(err, SHOAL_CONFLICT,
                        "the server has another data set that is called '%s'; give this one a name with "
                        "--data-name%s",
                        set->name, other);
  cJSON_Delete(manifest);
  return status;
}

/* ---- sending ---- */

static void show(void *self, uint64_t done, uint64_t all) {
  (void)all;
  local_set *set = self;
  double now = shoal_clock_seconds();
  if (!shoal_progress_due(&set->progress, now)) return;
  double share = set->bytes > 0 ? (double)(set->sent + done) / (double)set->bytes : 1;
  double passed = now - set->started;
  shoal_progress_view view = {.share = share,
                              .per_s = (double)(set->sent + done) / 1e3 / passed,
                              .unit = "kB",
                              .loss = NAN,
                              .eta_s = share > 0 ? passed * (1 - share) / share : NAN};
  shoal_progress_show(&set->progress, &view, now);
}

static shoal_status send_file(const shoal_upload_config *c, local_set *set, uint32_t number,
                              shoal_error *err) {
  const char *file = set->paths[number];
  shoal_text path = {0};
  shoal_text_addf(&path, "/api/v1/datasets/");
  shoal_fetch_escape(&path, set->name);
  shoal_text_addf(&path, "/files/");
  shoal_fetch_escape(&path, set->names[number]);
  shoal_reply reply = {0};
  const shoal_ask ask = {.method = "PUT", .path = path.bytes, .file = file, .self = set, .sent = show};
  shoal_status status = path.failed ? shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory")
                                    : shoal_fetch_ask(c->api->fetch, &ask, &reply, err);
  struct stat about;
  if (stat(file, &about) == 0) set->sent += (uint64_t)about.st_size;
  set->taken += status == SHOAL_OK || status == SHOAL_STOPPED; /* the server may have it, unanswered yet */
  shoal_reply_release(&reply);
  shoal_text_release(&path);
  return status;
}

/* Files without the others are of no use to anybody, and the server would keep them for a day. The
 * connection that is there may have been told to stop; without a file there is nothing of ours. */
void shoal_upload_take_back(const shoal_upload_config *c, const char *name) {
  const shoal_fetch_config config = {.link = &c->api->link, .connect_s = BACK_S, .silence_s = BACK_S};
  shoal_fetch *fetch = NULL;
  shoal_text path = {0};
  shoal_reply reply = {0};
  shoal_text_addf(&path, "/api/v1/datasets/");
  shoal_fetch_escape(&path, name);
  if (!path.failed && shoal_fetch_create(&fetch, &config, NULL) == SHOAL_OK)
    (void)shoal_fetch_ask(fetch, &(shoal_ask){.method = "DELETE", .path = path.bytes}, &reply, NULL);
  shoal_reply_release(&reply);
  shoal_fetch_destroy(fetch);
  shoal_text_release(&path);
}

/* The server speaks of the names that files were sent under; who reads it knows those of this machine. */
static void name_own_files(const local_set *set, shoal_error *err) {
  for (uint32_t i = 0; i < set->count; i++) {
    const char *at = strstr(err->text, set->names[i]);
    if (!at || strcmp(set->names[i], base_of(set->paths[i])) == 0) continue;
    char text[SHOAL_ERROR_TEXT_MAX];
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - err->text), err->text, set->paths[i],
             at + strlen(set->names[i]));
    shoal_fail(err, err->status, "%.900s", text);
    return;
  }
}

/* All files are there: they become a set. */
static shoal_status declare(const shoal_upload_config *c, const local_set *set, shoal_error *err) {
  shoal_text body;
  shoal_json json;
  cJSON *answer = NULL;
  shoal_json_begin(&json, &body);
  shoal_json_open(&json, NULL, '{');
  shoal_json_text(&json, "kind", set->kind);
  if (c->target && !c->is_table) shoal_json_text(&json, "target", c->target);
  if (c->dialect) shoal_json_text(&json, "dialect", c->dialect);
  shoal_json_close(&json, '}');
  shoal_status status = body.failed ? shoal_fail(err, SHOAL_NO_MEMORY, "not enough memory")
                                    : ask_of_set(c, "POST", set->name, "", body.bytes, &answer, err);
  if (status != SHOAL_OK) name_own_files(set, err);
  cJSON_Delete(answer);
  shoal_text_release(&body);
  return status;
}

static shoal_status send_set(const shoal_upload_config *c, local_set *set, shoal_error *err) {
  if (c->text)
    fprintf(c->text, "sending %s to the server: %u file%s, %s\n", set->name, set->count,
            set->count == 1 ? "" : "s", shoal_human_bytes((double)set->bytes).text);
  set->started = shoal_clock_seconds();
  shoal_progress_init(&set->progress, c->text, set->started);
  shoal_status status = SHOAL_OK;
  for (uint32_t i = 0; i < set->count && status == SHOAL_OK; i++) status = send_file(c, set, i, err);
  shoal_progress_clear(&set->progress);
  if (status == SHOAL_OK) status = declare(c, set, err);
  if (status != SHOAL_OK && set->taken > 0) shoal_upload_take_back(c, set->name);
  return status;
}

/* A word that can only be a place on this machine. */
static bool is_place(const char *data) {
  return strncmp(data, "text:", 5) == 0 || strncmp(data, "chars:", 6) == 0 || strchr(data, '/') != NULL ||
         (shoal_named_set_of(data) == NULL && shoal_file_exists(data));
}

shoal_status shoal_upload(const shoal_upload_config *c, char name[SHOAL_FILE_NAME_MAX], bool *sent,
                          shoal_error *err) {
  bool has = false;
  *sent = false;
  snprintf(name, SHOAL_FILE_NAME_MAX, "%s", c->data);
  bool toy = !c->is_table && strncmp(c->data, "toy:", 4) == 0;
  shoal_status status = toy || is_place(c->data) ? SHOAL_OK : server_has(c, c->data, &has, err);
  if (status == SHOAL_OK && (has || toy) && c->name)
    return shoal_fail(
        err, SHOAL_INVALID,
        "--data-name: '%.100s' is a data set of the server and has its name already; leave it out", c->data);
  if (status != SHOAL_OK || has || toy) return status;
  local_set set = {0};
  status = find_set(&set, c, err);
  const char *near = shoal_named_nearest(c->data);
  if (status != SHOAL_OK && !is_place(c->data) && !shoal_named_set_of(c->data))
    status =
        shoal_fail(err, SHOAL_NOT_FOUND, "neither the server nor this machine has data called '%.100s'%s%s%s",
                   c->data, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
  if (status == SHOAL_OK) status = server_has(c, set.name, &has, err);
  if (status == SHOAL_OK) status = has ? compare(c, &set, err) : send_set(c, &set, err);
  if (status == SHOAL_OK) snprintf(name, SHOAL_FILE_NAME_MAX, "%s", set.name);
  *sent = status == SHOAL_OK && !has;
  release(&set);
  return status;
}
