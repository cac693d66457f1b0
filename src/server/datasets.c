/* datasets.c: see datasets.h; what is in files is read in datasets_check.c, manifests and chunks are in
 * manifest.c. */
#include "server/datasets.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/secret.h"
#include "data/cifar.h"
#include "data/idx.h"
#include "data/limits.h"
#include "data/toy.h"
#include "server/datasets_internal.h"
#include "server/folders.h"
#include "server/spec.h"

enum { OWNER_BYTES_MAX = 256 };

static const char INCOMING[] = ".incoming-", TRASH[] = ".trash-";
static const char OWNER[] = ".owner", SEALED[] = ".sealed", DELETED[] = ".deleted", REFUSED[] = ".refused";
static const uint64_t BYTES_MAX = (uint64_t)4 << 30;
static const double DRAFT_S = 86400; /* how long a draft stays that nobody touches */

struct shoal_datasets {
  shoal_store *store;
  char *sets, *drafts, *named; /* folders */
  char *named_dir;             /* or NULL */
  uint64_t bytes_max;
  shoal_chunk_table *chunks;
  bool chunks_loaded; /* all manifests that are kept are in the table */
};

/* ---- small things ---- */

static shoal_status fail_memory(shoal_error *err) {
  return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
}

static bool starts_with(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

static bool is_in(const char *folder, const char *name) {
  char *path = shoal_path("%s/%s", folder, name);
  bool there = path != NULL && shoal_file_exists(path);
  free(path);
  return there;
}

/* Makes what was renamed in a folder outlive a power cut. */
static shoal_status sync_folder(const char *folder, shoal_error *err) {
  int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  bool failed = fd < 0 || (fsync(fd) != 0 && errno != EINVAL);
  shoal_status status = failed ? shoal_fail_errno(folder, err) : SHOAL_OK;
  if (fd >= 0) close(fd);
  return status;
}

static shoal_status write_small(const char *folder, const char *name, const char *text, shoal_error *err) {
  char *path = shoal_path("%s/%s", folder, name);
  shoal_status status = path == NULL ? fail_memory(err) : shoal_file_write(path, text, strlen(text), err);
  free(path);
  return status;
}

/* A new name in the drafts' folder that no draft can have, malloced. */
static char *hidden_path(const shoal_datasets *sets, const char *prefix) {
  uint64_t random[2] = {0};
  if (shoal_draw(random, sizeof random, NULL) != SHOAL_OK) return NULL;
  return shoal_path("%s/%s%016" PRIx64 "%016" PRIx64, sets->drafts, prefix, random[0], random[1]);
}

/* Out of sight at once, then removed. */
static shoal_status remove_folder(shoal_datasets *sets, const char *folder, shoal_error *err) {
  char *trash = hidden_path(sets, TRASH);
  if (trash == NULL) return fail_memory(err);
  shoal_status status =
      rename(folder, trash) == 0 || errno == ENOENT ? SHOAL_OK : shoal_fail_errno(folder, err);
  if (status == SHOAL_OK) (void)shoal_remove_folder(trash, NULL);
  free(trash);
  return status;
}

/* ---- what is there ---- */

static shoal_status fail_unknown(const char *name, shoal_error *err) {
  char plain[SHOAL_SPEC_NAME_MAX + 1];
  shoal_text_plain(plain, sizeof plain, name, strlen(name));
  return shoal_fail(err, SHOAL_NOT_FOUND, "there is no data set '%s'", plain);
}

typedef struct toy {
  const char *name, *shape;
} toy;
static const toy toys[] = {{"toy:reverse", "tokens"}, {"toy:wave", "3"}};
enum { TOYS = sizeof toys / sizeof *toys };

static const toy *toy_of(const char *name) {
  for (size_t i = 0; i < TOYS; i++)
    if (strcmp(toys[i].name, name) == 0) return &toys[i];
  return NULL;
}

/* A set of any origin, found by its name. */
typedef struct found {
  const char *name;             /* lent */
  const toy *toy;               /* or */
  const shoal_named_set *named; /* or */
  shoal_thing_row row;          /* of an uploaded one */
  char *folder;                 /* NULL for a toy */
  char *kind;
} found;

static void found_release(found *f) {
  shoal_thing_rows_free(&f->row, 1);
  free(f->folder);
  free(f->kind);
  *f = (found){0};
}

/* A text of a description, malloced; NULL where there is none. */
static char *field_of(const char *description, const char *field) {
  cJSON *json = cJSON_Parse(description);
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, field);
  char *text = cJSON_IsString(item) ? strdup(item->valuestring) : NULL;
  cJSON_Delete(json);
  return text;
}

static shoal_status find_named(shoal_datasets *sets, found *f, shoal_error *err) {
  shoal_status status = shoal_named_locate(f->named, sets->named_dir, &f->folder, err);
  if (status != SHOAL_OK) return status;
  f->kind = strdup(shoal_idx_is_folder(f->folder)     ? "idx"
                   : shoal_cifar_is_folder(f->folder) ? "cifar"
                                                      : "text");
  return f->kind != NULL ? SHOAL_OK : fail_memory(err);
}

static shoal_status find_uploaded(shoal_datasets *sets, found *f, shoal_error *err) {
  if (!shoal_spec_name_is_good(f->name)) return fail_unknown(f->name, err);
  shoal_status status = shoal_store_thing(sets->store, SHOAL_THING_DATASET, f->name, &f->row, err);
  if (status == SHOAL_NOT_FOUND) return fail_unknown(f->name, err);
  if (status != SHOAL_OK) return status;
  f->folder = shoal_path("%s/%s", sets->sets, f->name);
  if (f->folder == NULL) return fail_memory(err);
  f->kind = field_of(f->row.content, "kind");
  if (f->kind == NULL)
    return shoal_fail(err, SHOAL_CORRUPT, "the store's description of the data set '%s' cannot be read",
                      f->name);
  return SHOAL_OK;
}

/* Release *out only after success. */
static shoal_status find(shoal_datasets *sets, const char *name, found *out, shoal_error *err) {
  *out = (found){.name = name, .toy = toy_of(name), .named = shoal_named_set_of(name)};
  shoal_status status;
  if (out->toy != NULL)
    status = (out->kind = strdup("toy")) != NULL ? SHOAL_OK : fail_memory(err);
  else
    status = out->named != NULL ? find_named(sets, out, err) : find_uploaded(sets, out, err);
  if (status != SHOAL_OK) found_release(out);
  return status;
}

/* Of a named set, those of the catalogue, zipped or not. */
static shoal_status list_named_files(const found *f, shoal_set_files *out, shoal_error *err) {
  *out = (shoal_set_files){.folder = strdup(f->folder)};
  shoal_status status = out->folder != NULL ? SHOAL_OK : fail_memory(err);
  for (uint32_t i = 0; i < f->named->files_count && status == SHOAL_OK; i++) {
    const char *name = f->named->files[i].name;
    size_t length = strlen(name);
    uint32_t before = out->count;
    status = shoal_set_files_add(out, name, err);
    if (status != SHOAL_OK || out->count > before || length < 4 || strcmp(name + length - 3, ".gz") != 0)
      continue;
    char plain[SHOAL_FILE_NAME_MAX];
    snprintf(plain, sizeof plain, "%.*s", (int)(length - 3), name);
    status = shoal_set_files_add(out, plain, err);
  }
  if (status != SHOAL_OK) shoal_set_files_release(out);
  return status;
}

/* Release *out only after success. */
static shoal_status list_files(const found *f, shoal_set_files *out, shoal_error *err) {
  *out = (shoal_set_files){0};
  if (f->toy != NULL) return SHOAL_OK;
  if (f->named != NULL) return list_named_files(f, out, err);
  shoal_status status = shoal_set_files_list(out, f->folder, err);
  if (status == SHOAL_NOT_FOUND || (status == SHOAL_OK && out->count == 0)) {
    shoal_set_files_release(out);
    return shoal_fail(err, SHOAL_CORRUPT, "the files of the data set '%s' are gone: %s", f->name, f->folder);
  }
  if (status == SHOAL_OK) shoal_set_files_order(out, f->kind);
  return status;
}

/* ---- open and close ---- */

/* What a server that was killed had begun: see datasets.h. */
static void settle_draft(shoal_datasets *sets, const char *name) {
  char *draft = shoal_path("%s/%s", sets->drafts, name), *set = shoal_path("%s/%s", sets->sets, name);
  shoal_thing_row row = {0};
  if (draft != NULL && set != NULL && is_in(draft, SEALED) && !shoal_file_exists(set) &&
      shoal_store_thing(sets->store, SHOAL_THING_DATASET, name, &row, NULL) == SHOAL_OK) {
    shoal_thing_rows_free(&row, 1);
    if (rename(draft, set) == 0) sync_folder(sets->sets, NULL);
  }
  free(draft);
  free(set);
}

static void settle_set(shoal_datasets *sets, const char *name) {
  char *set = shoal_path("%s/%s", sets->sets, name);
  shoal_thing_row row = {0};
  shoal_status known = SHOAL_OK;
  if (set != NULL && is_in(set, DELETED))
    known = shoal_store_thing(sets->store, SHOAL_THING_DATASET, name, &row, NULL);
  if (known == SHOAL_NOT_FOUND)
    remove_folder(sets, set, NULL);
  else
    shoal_thing_rows_free(&row, 1);
  free(set);
}

static void settle_all(shoal_datasets *sets) {
  DIR *drafts = opendir(sets->drafts);
  for (struct dirent *entry; drafts != NULL && (entry = readdir(drafts)) != NULL;) {
    if (entry->d_name[0] != '.') settle_draft(sets, entry->d_name);
    if (!starts_with(entry->d_name, INCOMING) && !starts_with(entry->d_name, TRASH)) continue;
    char *path = shoal_path("%s/%s", sets->drafts, entry->d_name);
    if (path != NULL) (void)shoal_remove_folder(path, NULL);
    free(path);
  }
  if (drafts != NULL) closedir(drafts);
  DIR *all = opendir(sets->sets);
  for (struct dirent *entry; all != NULL && (entry = readdir(all)) != NULL;)
    if (entry->d_name[0] != '.') settle_set(sets, entry->d_name);
  if (all != NULL) closedir(all);
}

static bool is_old(const char *path, double now) {
  struct stat about;
  return stat(path, &about) == 0 && now - (double)about.st_mtime > DRAFT_S;
}

void shoal_datasets_tidy(shoal_datasets *sets, double now) {
  DIR *drafts = opendir(sets->drafts);
  for (struct dirent *entry; drafts != NULL && (entry = readdir(drafts)) != NULL;) {
    if (entry->d_name[0] == '.') continue;
    char *draft = shoal_path("%s/%s", sets->drafts, entry->d_name);
    shoal_thing_row row = {0};
    /* With a row it is a set that could not be moved. */
    if (draft != NULL && is_old(draft, now) &&
        shoal_store_thing(sets->store, SHOAL_THING_DATASET, entry->d_name, &row, NULL) == SHOAL_NOT_FOUND)
      remove_folder(sets, draft, NULL);
    shoal_thing_rows_free(&row, 1);
    free(draft);
  }
  if (drafts != NULL) closedir(drafts);
}

shoal_status shoal_datasets_open(shoal_datasets **out, const shoal_datasets_config *config,
                                 shoal_error *err) {
  *out = NULL;
  shoal_datasets *sets = calloc(1, sizeof *sets);
  if (sets == NULL) return fail_memory(err);
  sets->store = config->store;
  sets->bytes_max = config->bytes_max > 0 ? config->bytes_max : BYTES_MAX;
  sets->sets = shoal_path("%s/sets", config->folder);
  sets->drafts = shoal_path("%s/drafts", config->folder);
  sets->named = shoal_path("%s/named", config->folder);
  sets->named_dir = config->named_dir != NULL ? strdup(config->named_dir) : NULL;
  sets->chunks = shoal_chunk_table_create();
  bool failed = sets->sets == NULL || sets->drafts == NULL || sets->named == NULL || sets->chunks == NULL ||
                (config->named_dir != NULL && sets->named_dir == NULL);
  shoal_status status = failed ? fail_memory(err) : shoal_make_folder(sets->sets, err);
  if (status == SHOAL_OK) status = shoal_make_folder(sets->drafts, err);
  if (status == SHOAL_OK) status = shoal_make_folder(sets->named, err);
  if (status != SHOAL_OK) {
    shoal_datasets_close(sets);
    return status;
  }
  settle_all(sets);
  shoal_datasets_tidy(sets, shoal_clock_wall_seconds());
  *out = sets;
  return SHOAL_OK;
}

void shoal_datasets_close(shoal_datasets *sets) {
  if (sets == NULL) return;
  shoal_chunk_table_destroy(sets->chunks);
  free(sets->sets);
  free(sets->drafts);
  free(sets->named);
  free(sets->named_dir);
  free(sets);
}

/* ---- descriptions ---- */

/* DATASET: what all have, then the fields of the description, without its braces. */
static void write_dataset(const found *f, const shoal_text *description, const char *owner, double created,
                          shoal_json *json) {
  shoal_json_open(json, NULL, '{');
  shoal_json_text(json, "name", f->name);
  shoal_json_text(json, "owner", owner);
  shoal_json_bool(json, "built_in", f->row.name == NULL);
  shoal_json_real(json, "created", created);
  if (description->length > 2) shoal_json_raw(json, NULL, description->bytes + 1, description->length - 2);
  shoal_json_close(json, '}');
}

static void describe_toy(const found *f, shoal_json *json) {
  shoal_text text = {0};
  shoal_text_addf(&text,
                  "{\"kind\":\"toy\",\"bytes\":0,\"samples\":{\"train\":%d,\"valid\":0,\"test\":%d},"
                  "\"shape\":\"%s\",\"classes\":null,\"columns\":null,\"files\":[]}",
                  SHOAL_TOY_TRAINING, SHOAL_TOY_TEST, f->toy->shape);
  write_dataset(f, &text, "", 0, json);
  shoal_text_release(&text);
}

/* Read once, then kept. */
static shoal_status describe_named(shoal_datasets *sets, const found *f, shoal_json *json, shoal_error *err) {
  shoal_set_files files;
  shoal_text text = {0};
  char stamp[SHOAL_SHA256_HEX], *kept = shoal_path("%s/%s.description", sets->named, f->name);
  if (kept == NULL) return fail_memory(err);
  shoal_status status = list_files(f, &files, err);
  if (status != SHOAL_OK) {
    free(kept);
    return status;
  }
  shoal_set_files_stamp(&files, stamp);
  if (!shoal_kept_read(kept, stamp, &text)) {
    shoal_text_clear(&text);
    status = shoal_set_describe(&files, &(shoal_set_said){.kind = f->kind}, f->named, &text, err);
    if (status == SHOAL_OK) shoal_kept_write(kept, stamp, &text, NULL);
  }
  if (status == SHOAL_OK) write_dataset(f, &text, "", (double)files.files[0].changed_s, json);
  shoal_text_release(&text);
  shoal_set_files_release(&files);
  free(kept);
  return status;
}

static void describe_row(const shoal_thing_row *row, shoal_json *json) {
  found f = {.name = row->name, .row = *row};
  shoal_text description = {.bytes = row->content, .length = strlen(row->content)};
  write_dataset(&f, &description, row->owner, row->created, json);
}

shoal_status shoal_datasets_describe(shoal_datasets *sets, const char *name, shoal_json *json,
                                     shoal_error *err) {
  found f;
  shoal_status status = find(sets, name, &f, err);
  if (status != SHOAL_OK) return status;
  if (f.toy != NULL)
    describe_toy(&f, json);
  else if (f.named != NULL)
    status = describe_named(sets, &f, json, err);
  else
    describe_row(&f.row, json);
  found_release(&f);
  return status;
}

/* All rows of uploaded sets, malloced. */
static shoal_status read_rows(shoal_datasets *sets, shoal_thing_row **out, size_t *count, shoal_error *err) {
  *count = 0;
  *out = calloc(SHOAL_DATASETS_MAX, sizeof **out);
  if (*out == NULL) return fail_memory(err);
  shoal_status status =
      shoal_store_things(sets->store, SHOAL_THING_DATASET, *out, SHOAL_DATASETS_MAX, count, err);
  if (status != SHOAL_OK) {
    free(*out);
    *out = NULL;
  }
  return status;
}

static void free_rows(shoal_thing_row *rows, size_t count) {
  shoal_thing_rows_free(rows, count);
  free(rows);
}

shoal_status shoal_datasets_list(shoal_datasets *sets, shoal_json *json, shoal_error *err) {
  shoal_thing_row *rows;
  size_t count;
  shoal_status status = read_rows(sets, &rows, &count, err);
  if (status != SHOAL_OK) return status;
  shoal_json_open(json, NULL, '{');
  shoal_json_open(json, "datasets", '[');
  for (size_t i = 0; i < shoal_named_count(); i++)
    shoal_datasets_describe(sets, shoal_named_at(i)->name, json, NULL);
  for (size_t i = 0; i < TOYS; i++) shoal_datasets_describe(sets, toys[i].name, json, NULL);
  for (size_t i = 0; i < count; i++) describe_row(&rows[i], json);
  shoal_json_close(json, ']');
  shoal_json_close(json, '}');
  free_rows(rows, count);
  return json->out->failed ? fail_memory(err) : SHOAL_OK;
}

const char *shoal_datasets_named_dir(const shoal_datasets *sets) { return sets->named_dir; }

void shoal_datasets_cut_folder(const shoal_datasets *sets, char *text) { shoal_cut_folder(text, sets->sets); }

shoal_status shoal_datasets_path(shoal_datasets *sets, const char *name, shoal_text *out, shoal_error *err) {
  found f;
  shoal_set_files files;
  shoal_status status = find(sets, name, &f, err);
  if (status != SHOAL_OK) return status;
  status = list_files(&f, &files, err);
  if (status != SHOAL_OK) {
    found_release(&f);
    return status;
  }
  bool text = strcmp(f.kind, "text") == 0 || strcmp(f.kind, "chars") == 0;
  bool table = strcmp(f.kind, "csv") == 0 || strcmp(f.kind, "table") == 0;
  if (f.toy != NULL || f.named != NULL) {
    shoal_text_addf(out, "%s", name);
  } else {
    if (text) shoal_text_addf(out, "%s:", f.kind);
    shoal_text_addf(out, "%s", f.folder);
    if (table || (text && files.count == 1)) shoal_text_addf(out, "/%s", files.files[0].name);
    if (table && files.count > 1) shoal_text_addf(out, ",%s/%s", f.folder, files.files[1].name);
  }
  shoal_set_files_release(&files);
  found_release(&f);
  return out->failed ? fail_memory(err) : SHOAL_OK;
}

/* Of an uploaded set: what its description says of a table. */
static shoal_status copy_table(const shoal_thing_row *row, shoal_set_table *out, shoal_error *err) {
  cJSON *json = cJSON_Parse(row->content);
  const cJSON *dialect = cJSON_GetObjectItemCaseSensitive(json, "dialect");
  const cJSON *profile = cJSON_GetObjectItemCaseSensitive(json, "profile");
  char *text = cJSON_IsObject(profile) ? cJSON_PrintUnformatted(profile) : NULL;
  bool failed = cJSON_IsObject(profile) && text == NULL;
  if (cJSON_IsString(dialect)) shoal_text_addf(&out->dialect, "%s", dialect->valuestring);
  if (text != NULL) shoal_text_addf(&out->profile, "%s", text);
  cJSON_free(text);
  cJSON_Delete(json);
  failed = failed || out->dialect.failed || out->profile.failed;
  return failed ? fail_memory(err) : SHOAL_OK;
}

shoal_status shoal_datasets_table(shoal_datasets *sets, const char *name, shoal_set_table *out,
                                  shoal_error *err) {
  *out = (shoal_set_table){0};
  found f;
  shoal_set_files files;
  shoal_status status = find(sets, name, &f, err);
  if (status != SHOAL_OK) return status;
  bool table = strcmp(f.kind, "csv") == 0 || strcmp(f.kind, "table") == 0;
  if (!table)
    status =
        shoal_fail(err, SHOAL_INVALID, "'%s' is no table: upload one, as a data set of the kind table", name);
  if (status == SHOAL_OK) status = list_files(&f, &files, err);
  if (status == SHOAL_OK) {
    shoal_text_addf(&out->path, "%s/%s", f.folder, files.files[0].name);
    shoal_set_files_release(&files);
    status = out->path.failed ? fail_memory(err) : copy_table(&f.row, out, err);
  }
  found_release(&f);
  return status;
}

void shoal_set_table_release(shoal_set_table *table) {
  shoal_text_release(&table->path);
  shoal_text_release(&table->dialect);
  shoal_text_release(&table->profile);
}

shoal_status shoal_datasets_target(shoal_datasets *sets, const char *name, shoal_text *out,
                                   shoal_error *err) {
  found f;
  shoal_status status = find(sets, name, &f, err);
  if (status != SHOAL_OK) return status;
  char *target = f.row.content != NULL ? field_of(f.row.content, "target") : NULL;
  shoal_text_addf(out, "%s", target != NULL ? target : "");
  free(target);
  found_release(&f);
  return out->failed ? fail_memory(err) : SHOAL_OK;
}

/* ---- manifests and chunks ---- */

/* Where the manifest of a set is kept. */
static char *manifest_path(const shoal_datasets *sets, const found *f) {
  return f->named != NULL ? shoal_path("%s/%s.manifest", sets->named, f->name)
                          : shoal_path("%s/" SHOAL_SET_MANIFEST, f->folder);
}

/* Puts the chunks of a set into the table, unless they are there. */
static shoal_status learn_chunks(shoal_datasets *sets, const found *f, const char *folder, const char *stamp,
                                 const shoal_text *text, shoal_error *err) {
  if (shoal_chunk_table_has(sets->chunks, f->name, stamp)) return SHOAL_OK;
  if (shoal_chunk_table_has_any(sets->chunks, f->name)) {
    shoal_chunk_table_clear(sets->chunks);
    sets->chunks_loaded = false;
  }
  shoal_manifest *manifest = malloc(sizeof *manifest);
  if (manifest == NULL) return fail_memory(err);
  shoal_status status = shoal_manifest_parse(manifest, text->bytes, text->length, err);
  if (status == SHOAL_OK && strcmp(manifest->name, f->name) != 0)
    status = shoal_fail(err, SHOAL_CORRUPT, "the manifest of '%s' is another set's", f->name);
  if (status == SHOAL_OK) {
    status = shoal_chunk_table_add(sets->chunks, folder, stamp, manifest, err);
    shoal_manifest_release(manifest);
  }
  free(manifest);
  return status;
}

/* Whether a named set has zipped files, which are served unpacked. */
static bool is_zipped(const found *f, const shoal_set_files *files) {
  char plain[SHOAL_FILE_NAME_MAX];
  bool zipped = false;
  for (uint32_t i = 0; i < files->count && f->named != NULL; i++)
    zipped |= shoal_set_is_zipped(files->files[i].name, plain);
  return zipped;
}

static bool is_unpacked(const char *folder, const shoal_set_files *files) {
  bool all = true;
  for (uint32_t i = 0; i < files->count && all; i++) {
    char plain[SHOAL_FILE_NAME_MAX];
    shoal_set_is_zipped(files->files[i].name, plain);
    all = is_in(folder, plain);
  }
  return all;
}

/* Puts all files into the folder, unpacked. *files are those afterwards. */
static shoal_status unpack_all(const char *folder, shoal_set_files *files, shoal_error *err) {
  uint64_t room = SHOAL_DATA_FILE_BYTES_MAX;
  shoal_status status = shoal_make_folder(folder, err);
  for (uint32_t i = 0; i < files->count && status == SHOAL_OK; i++) {
    char plain[SHOAL_FILE_NAME_MAX];
    shoal_set_is_zipped(files->files[i].name, plain);
    char *from = shoal_path("%s/%s", files->folder, files->files[i].name),
         *to = shoal_path("%s/%s", folder, plain);
    status = from != NULL && to != NULL ? shoal_set_unpack(from, to, &room, err) : fail_memory(err);
    free(from);
    free(to);
  }
  if (status != SHOAL_OK) return status;
  shoal_set_files_release(files);
  return shoal_set_files_list(files, folder, err);
}

/* Makes a manifest and keeps it. *files are those that it is of afterwards. */
static shoal_status make_manifest(const found *f, const char *folder, const char *kept, const char *stamp,
                                  shoal_set_files *files, shoal_text *out, shoal_error *err) {
  shoal_status status = SHOAL_OK;
  if (is_zipped(f, files)) status = unpack_all(folder, files, err);
  if (status == SHOAL_OK) status = shoal_manifest_make(files, f->name, f->kind, out, err);
  /* One that cannot be kept is made again the next time. */
  if (status == SHOAL_OK && kept != NULL) shoal_kept_write(kept, stamp, out, NULL);
  return status;
}

/* The manifest of a set and its stamp; only_kept: SHOAL_NOT_FOUND where it would have to be made. */
static shoal_status get_manifest(shoal_datasets *sets, const found *f, bool only_kept, shoal_text *out,
                                 shoal_error *err) {
  shoal_set_files files;
  shoal_status status = list_files(f, &files, err);
  if (status != SHOAL_OK) return status;
  char stamp[SHOAL_SHA256_HEX], *kept = f->toy == NULL ? manifest_path(sets, f) : NULL, *folder = NULL;
  shoal_set_files_stamp(&files, stamp);
  bool zipped = is_zipped(f, &files);
  if (f->toy == NULL) folder = zipped ? shoal_path("%s/%s", sets->named, f->name) : strdup(f->folder);
  if (f->toy == NULL && (folder == NULL || kept == NULL)) status = fail_memory(err);
  bool here = status == SHOAL_OK && kept != NULL && (!zipped || is_unpacked(folder, &files)) &&
              shoal_kept_read(kept, stamp, out) && learn_chunks(sets, f, folder, stamp, out, err) == SHOAL_OK;
  if (status == SHOAL_OK && !here && only_kept) {
    status = SHOAL_NOT_FOUND;
  } else if (status == SHOAL_OK && !here) {
    shoal_text_clear(out);
    status = make_manifest(f, folder, kept, stamp, &files, out, err);
    if (status == SHOAL_OK && f->toy == NULL) status = learn_chunks(sets, f, folder, stamp, out, err);
  }
  free(folder);
  free(kept);
  shoal_set_files_release(&files);
  return status;
}

shoal_status shoal_datasets_manifest(shoal_datasets *sets, const char *name, shoal_json *json,
                                     shoal_error *err) {
  found f;
  shoal_status status = find(sets, name, &f, err);
  if (status != SHOAL_OK) return status;
  shoal_text text = {0};
  status = get_manifest(sets, &f, false, &text, err);
  if (status == SHOAL_OK) shoal_json_raw(json, NULL, text.bytes, text.length);
  shoal_text_release(&text);
  found_release(&f);
  return status;
}

/* Puts into the table what is kept of a set from before. */
static void load_kept(shoal_datasets *sets, const char *name) {
  found f;
  if (find(sets, name, &f, NULL) != SHOAL_OK) return;
  shoal_text text = {0};
  get_manifest(sets, &f, true, &text, NULL);
  shoal_text_release(&text);
  found_release(&f);
}

static shoal_status load_all_kept(shoal_datasets *sets, shoal_error *err) {
  shoal_thing_row *rows;
  size_t count;
  shoal_status status = read_rows(sets, &rows, &count, err);
  if (status != SHOAL_OK) return status;
  for (size_t i = 0; i < shoal_named_count(); i++) load_kept(sets, shoal_named_at(i)->name);
  for (size_t i = 0; i < count; i++) load_kept(sets, rows[i].name);
  free_rows(rows, count);
  sets->chunks_loaded = true;
  return SHOAL_OK;
}

/* 64 lower-case hexadecimal digits. */
static bool read_hash(const char *text, uint8_t out[SHOAL_SHA256_BYTES]) {
  static const char digits[] = "0123456789abcdef";
  if (strlen(text) != 2 * SHOAL_SHA256_BYTES) return false;
  for (size_t i = 0; i < SHOAL_SHA256_BYTES; i++) {
    const char *high = strchr(digits, text[2 * i]), *low = strchr(digits, text[2 * i + 1]);
    if (high == NULL || low == NULL) return false;
    out[i] = (uint8_t)((high - digits) << 4 | (low - digits));
  }
  return true;
}

shoal_status shoal_datasets_chunk(shoal_datasets *sets, const char *sha256, shoal_chunk_source *out,
                                  shoal_error *err) {
  uint8_t hash[SHOAL_SHA256_BYTES];
  if (!read_hash(sha256, hash))
    return shoal_fail(err, SHOAL_INVALID, "the name of a chunk is its SHA-256, 64 hexadecimal digits");
  shoal_status status = shoal_chunk_table_find(sets->chunks, hash, out, err);
  if (status != SHOAL_NOT_FOUND || sets->chunks_loaded) return status;
  status = load_all_kept(sets, err);
  return status == SHOAL_OK ? shoal_chunk_table_find(sets->chunks, hash, out, err) : status;
}

/* ---- drafts ---- */

bool shoal_datasets_file_is_good(const char *file) {
  static const char good[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
  size_t length = strlen(file);
  return length > 0 && length <= SHOAL_DATASET_FILE_NAME_MAX && file[0] != '.' &&
         strspn(file, good) == length;
}

/* A set can be made under that name: it is a good one, and nobody has it. */
static shoal_status check_name(shoal_datasets *sets, const char *name, shoal_error *err) {
  if (!shoal_spec_name_is_good(name))
    return shoal_fail(
        err, SHOAL_INVALID,
        "the name of a data set has 1 to %d characters, none of them / \\ : * ? \" < > | %% #, and "
        "does not begin with a dot",
        SHOAL_SPEC_NAME_MAX);
  if (shoal_named_set_of(name) != NULL)
    return shoal_fail(err, SHOAL_CONFLICT, "'%s' is a built-in data set; choose another name", name);
  shoal_thing_row row = {0};
  shoal_status status = shoal_store_thing(sets->store, SHOAL_THING_DATASET, name, &row, err);
  if (status == SHOAL_OK) {
    shoal_thing_rows_free(&row, 1);
    return shoal_fail(err, SHOAL_CONFLICT,
                      "there is a data set '%s' already; delete it, or choose another name", name);
  }
  if (status != SHOAL_NOT_FOUND) return status;
  if (is_in(sets->sets, name))
    return shoal_fail(
        err, SHOAL_CONFLICT,
        "the server has files of a data set '%s' that its store does not know of; choose another "
        "name, or have them removed",
        name);
  return SHOAL_OK;
}

static shoal_status check_file(const char *file, shoal_error *err) {
  if (shoal_datasets_file_is_good(file)) return SHOAL_OK;
  return shoal_fail(
      err, SHOAL_INVALID,
      "the name of a file has 1 to %d letters (A to Z), digits, dots, hyphens or underscores, and "
      "does not begin with a dot",
      SHOAL_DATASET_FILE_NAME_MAX);
}

/* The owner of a draft, malloced; NULL where it has none yet. */
static char *owner_of(const char *draft) {
  char *path = shoal_path("%s/%s", draft, OWNER);
  uint8_t *owner = NULL;
  size_t length;
  if (path != NULL) shoal_file_read(path, OWNER_BYTES_MAX, false, &owner, &length, NULL);
  free(path);
  return (char *)owner;
}

/* owner NULL: whoever's. */
static shoal_status check_owner(const char *draft, const char *name, const char *owner, shoal_error *err) {
  char *is = owner_of(draft);
  bool other = owner != NULL && is != NULL && strcmp(is, owner) != 0;
  free(is);
  if (!other) return SHOAL_OK;
  return shoal_fail(err, SHOAL_CONFLICT, "somebody else is uploading a data set '%s'; choose another name",
                    name);
}

static uint64_t drafts_count(const shoal_datasets *sets) {
  uint64_t count = 0;
  DIR *here = opendir(sets->drafts);
  for (struct dirent *entry; here != NULL && (entry = readdir(here)) != NULL;)
    count += entry->d_name[0] != '.';
  if (here != NULL) closedir(here);
  return count;
}

static shoal_status check_room_for_set(shoal_datasets *sets, shoal_error *err) {
  shoal_thing_row *rows;
  size_t count;
  shoal_status status = read_rows(sets, &rows, &count, err);
  if (status != SHOAL_OK) return status;
  free_rows(rows, count);
  if (count + drafts_count(sets) < SHOAL_DATASETS_MAX) return SHOAL_OK;
  return shoal_fail(err, SHOAL_LIMIT, "there are %d data sets already; delete some that are not used",
                    SHOAL_DATASETS_MAX);
}

/* What is in a draft besides one file. */
static void others_in(const char *draft, const char *file, uint64_t *bytes, uint32_t *count) {
  *bytes = 0;
  *count = 0;
  shoal_set_files *files = malloc(sizeof *files);
  if (files != NULL && shoal_set_files_list(files, draft, NULL) == SHOAL_OK) {
    for (uint32_t i = 0; i < files->count; i++) {
      bool same = strcmp(files->files[i].name, file) == 0;
      *count += !same;
      *bytes += same ? 0 : files->files[i].bytes;
    }
    shoal_set_files_release(files);
  }
  free(files);
}

uint64_t shoal_datasets_room(shoal_datasets *sets, const char *name, const char *file) {
  if (!shoal_spec_name_is_good(name) || !shoal_datasets_file_is_good(file)) return 0;
  char *draft = shoal_path("%s/%s", sets->drafts, name);
  uint64_t bytes = 0;
  uint32_t count;
  if (draft != NULL && !is_in(draft, REFUSED)) others_in(draft, file, &bytes, &count);
  free(draft);
  uint64_t room = bytes < sets->bytes_max ? sets->bytes_max - bytes : 0;
  return room < SHOAL_DATA_FILE_BYTES_MAX ? room : SHOAL_DATA_FILE_BYTES_MAX;
}

shoal_status shoal_datasets_incoming(shoal_datasets *sets, const char *name, const char *file, char **path,
                                     shoal_error *err) {
  *path = NULL;
  shoal_status status = check_file(file, err);
  if (status == SHOAL_OK) status = check_name(sets, name, err);
  if (status != SHOAL_OK) return status;
  *path = hidden_path(sets, INCOMING);
  return *path != NULL ? SHOAL_OK : fail_memory(err);
}

/* Makes the draft's folder where it is missing. */
static shoal_status make_draft(shoal_datasets *sets, const char *draft, const char *owner, shoal_error *err) {
  if (!shoal_file_exists(draft)) {
    shoal_status status = check_room_for_set(sets, err);
    if (status != SHOAL_OK) return status;
    if (mkdir(draft, 0777) != 0 && errno != EEXIST) return shoal_fail_errno(draft, err);
  }
  return is_in(draft, OWNER) ? SHOAL_OK : write_small(draft, OWNER, owner, err);
}

static shoal_status check_size(shoal_datasets *sets, const char *name, const char *draft, const char *file,
                               const char *from, shoal_error *err) {
  struct stat about;
  uint64_t bytes, room = shoal_datasets_room(sets, name, file);
  uint32_t count;
  if (stat(from, &about) != 0 || !S_ISREG(about.st_mode)) return shoal_fail_errno(from, err);
  if ((uint64_t)about.st_size > room)
    return shoal_fail(err, SHOAL_LIMIT, "%s: too large: there is room for %" PRIu64 " bytes more in '%s'",
                      file, room, name);
  others_in(draft, file, &bytes, &count);
  if (count >= SHOAL_DATASET_FILES_MAX)
    return shoal_fail(err, SHOAL_LIMIT, "a data set has at most %d files", SHOAL_DATASET_FILES_MAX);
  return SHOAL_OK;
}

shoal_status shoal_datasets_uploaded(shoal_datasets *sets, const char *name, const char *file,
                                     const char *from, const char *owner, shoal_error *err) {
  shoal_status status = check_file(file, err);
  if (status == SHOAL_OK) status = check_name(sets, name, err);
  if (status != SHOAL_OK) return status;
  char *draft = shoal_path("%s/%s", sets->drafts, name),
       *to = shoal_path("%s/%s/%s", sets->drafts, name, file);
  if (draft == NULL || to == NULL) status = fail_memory(err);
  if (status == SHOAL_OK) status = check_owner(draft, name, owner, err);
  /* What was found wrong has no part in the next upload. */
  if (status == SHOAL_OK && is_in(draft, REFUSED)) status = remove_folder(sets, draft, err);
  if (status == SHOAL_OK) status = check_size(sets, name, draft, file, from, err);
  if (status == SHOAL_OK) status = make_draft(sets, draft, owner, err);
  if (status == SHOAL_OK && rename(from, to) != 0) status = shoal_fail_errno(to, err);
  free(draft);
  free(to);
  return status;
}

shoal_status shoal_datasets_draft(shoal_datasets *sets, const char *name, const char *owner, shoal_text *out,
                                  shoal_error *err) {
  if (!shoal_spec_name_is_good(name) || !is_in(sets->drafts, name))
    return shoal_fail(err, SHOAL_NOT_FOUND, "nothing was uploaded for a data set '%.64s'", name);
  char *draft = shoal_path("%s/%s", sets->drafts, name);
  if (draft == NULL) return fail_memory(err);
  shoal_status status = check_owner(draft, name, owner, err);
  if (status == SHOAL_OK) {
    shoal_text_addf(out, "%s", draft);
    (void)utimensat(AT_FDCWD, draft, NULL, 0);
  }
  free(draft);
  return status == SHOAL_OK && out->failed ? fail_memory(err) : status;
}

/* ---- sealing and deleting ---- */

/* The files are the ones that were checked: their manifest is kept under their stamp. */
static shoal_status check_checked(const char *draft, const char *name, const char *kind, shoal_error *err) {
  shoal_set_files files;
  shoal_status status = shoal_set_files_list(&files, draft, err);
  if (status != SHOAL_OK) return status;
  char stamp[SHOAL_SHA256_HEX], *kept = shoal_path("%s/" SHOAL_SET_MANIFEST, draft);
  shoal_text manifest = {0};
  shoal_set_files_order(&files, kind);
  shoal_set_files_stamp(&files, stamp);
  if (kept == NULL)
    status = fail_memory(err);
  else if (!shoal_kept_read(kept, stamp, &manifest))
    status = shoal_fail(
        err, SHOAL_CONFLICT,
        "a file of '%s' was uploaded while the others were read; wait for all of them, then try again", name);
  shoal_text_release(&manifest);
  shoal_set_files_release(&files);
  free(kept);
  return status;
}

/* Adds the row and moves the folder, in this order: see datasets.h. */
static shoal_status move_draft(shoal_datasets *sets, const char *draft, const shoal_thing_row *row,
                               shoal_error *err) {
  char *set = shoal_path("%s/%s", sets->sets, row->name);
  char *refused = shoal_path("%s/%s", draft, REFUSED); /* as something else, before */
  if (refused != NULL) unlink(refused);
  free(refused);
  shoal_status status = set == NULL ? fail_memory(err) : write_small(draft, SEALED, "", err);
  if (status == SHOAL_OK) status = sync_folder(sets->drafts, err);
  if (status == SHOAL_OK) status = shoal_store_add_thing(sets->store, SHOAL_THING_DATASET, row, err);
  if (status == SHOAL_OK && rename(draft, set) != 0) {
    status = shoal_fail_errno(set, err);
    shoal_store_delete_thing(sets->store, SHOAL_THING_DATASET, row->name, NULL);
  }
  if (status == SHOAL_OK) status = sync_folder(sets->sets, err);
  free(set);
  return status;
}

shoal_status shoal_datasets_seal(shoal_datasets *sets, const char *name, const char *owner,
                                 const char *description, shoal_error *err) {
  shoal_text draft = {0};
  shoal_status status = check_name(sets, name, err);
  if (status == SHOAL_OK) status = shoal_datasets_draft(sets, name, owner, &draft, err);
  char *kind = status == SHOAL_OK ? field_of(description, "kind") : NULL;
  if (status == SHOAL_OK && kind == NULL)
    status = shoal_fail(err, SHOAL_INVALID, "the description of '%s' cannot be read", name);
  if (status == SHOAL_OK) status = check_checked(draft.bytes, name, kind, err);
  if (status == SHOAL_OK) {
    char *is = owner_of(draft.bytes), *content = strdup(description), *set_name = strdup(name);
    char *whose = is != NULL ? is : strdup(owner != NULL ? owner : "");
    shoal_thing_row row = {
        .name = set_name, .owner = whose, .content = content, .created = shoal_clock_wall_seconds()};
    bool failed = content == NULL || set_name == NULL || whose == NULL;
    status = failed ? fail_memory(err) : move_draft(sets, draft.bytes, &row, err);
    free(whose);
    free(content);
    free(set_name);
  }
  free(kind);
  shoal_text_release(&draft);
  return status;
}

shoal_status shoal_datasets_refuse(shoal_datasets *sets, const char *name, const char *owner,
                                   shoal_error *err) {
  shoal_text draft = {0};
  shoal_status status = shoal_datasets_draft(sets, name, owner, &draft, err);
  if (status == SHOAL_OK) status = write_small(draft.bytes, REFUSED, "", err);
  shoal_text_release(&draft);
  return status;
}

shoal_status shoal_datasets_discard(shoal_datasets *sets, const char *name, const char *owner,
                                    shoal_error *err) {
  shoal_text draft = {0};
  shoal_status status = shoal_datasets_draft(sets, name, owner, &draft, err);
  if (status == SHOAL_OK) status = remove_folder(sets, draft.bytes, err);
  shoal_text_release(&draft);
  return status;
}

static shoal_status delete_draft(shoal_datasets *sets, const char *name, const char *owner,
                                 shoal_error *err) {
  shoal_status status = shoal_datasets_discard(sets, name, owner, err);
  if (status == SHOAL_NOT_FOUND) return fail_unknown(name, err);
  if (status == SHOAL_CONFLICT)
    return shoal_fail(err, SHOAL_INVALID, "the draft '%s' is somebody else's", name);
  return status;
}

/* Marks the folder, removes the row, then the folder: see datasets.h. */
static shoal_status delete_set(shoal_datasets *sets, const found *f, shoal_error *err) {
  shoal_status status = SHOAL_OK;
  if (shoal_file_exists(f->folder)) status = write_small(f->folder, DELETED, "", err);
  if (status == SHOAL_OK) status = shoal_store_delete_thing(sets->store, SHOAL_THING_DATASET, f->name, err);
  if (status != SHOAL_OK) return status;
  shoal_chunk_table_clear(sets->chunks);
  sets->chunks_loaded = false;
  return remove_folder(sets, f->folder, err);
}

shoal_status shoal_datasets_delete(shoal_datasets *sets, const char *name, const char *owner,
                                   shoal_error *err) {
  if (toy_of(name) != NULL || shoal_named_set_of(name) != NULL)
    return shoal_fail(err, SHOAL_INVALID, "'%s' is a built-in data set, which cannot be deleted", name);
  found f = {.name = name};
  shoal_status status = find_uploaded(sets, &f, err);
  if (status == SHOAL_NOT_FOUND) {
    status = delete_draft(sets, name, owner, err);
  } else if (f.row.name != NULL && owner != NULL && strcmp(owner, f.row.owner) != 0) {
    status = shoal_fail(err, SHOAL_INVALID, "the data set '%s' is somebody else's", name);
  } else if (status == SHOAL_OK || status == SHOAL_CORRUPT) {
    status = delete_set(sets, &f, err);
  }
  found_release(&f);
  return status;
}
