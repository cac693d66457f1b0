/* manifest.c: see manifest.h.
 *
 * The table is a hash table with open addressing; the name of a chunk is as good a hash as any. A chunk
 * that several sets have stands there once for each of them, next to each other, so that one whose file is
 * damaged can be read from another set's. */
#include "server/manifest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/file.h"
#include "data/cifar.h"
#include "data/hash_tree.h"
#include "data/idx.h"

enum { KEPT_BYTES_MAX = 64 << 20, SLOTS_FIRST = 1024 };

static shoal_status fail_memory(shoal_error *err) {
  return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
}

/* ---- files ---- */

static int by_name(const void *a, const void *b) {
  return strcmp(((const shoal_set_file *)a)->name, ((const shoal_set_file *)b)->name);
}

shoal_status shoal_set_files_add(shoal_set_files *files, const char *name, shoal_error *err) {
  shoal_text path = {0};
  struct stat about;
  shoal_text_addf(&path, "%s/%s", files->folder, name);
  if (path.failed) {
    shoal_text_release(&path);
    return fail_memory(err);
  }
  bool plain = stat(path.bytes, &about) == 0 && S_ISREG(about.st_mode);
  shoal_text_release(&path);
  if (!plain || !shoal_manifest_is_name(name)) return SHOAL_OK;
  if (files->count == SHOAL_MANIFEST_FILES_MAX)
    return shoal_fail(err, SHOAL_LIMIT, "more than %d files", SHOAL_MANIFEST_FILES_MAX);
  shoal_set_file *file = &files->files[files->count++];
  *file = (shoal_set_file){
      .bytes = (uint64_t)about.st_size,
      .changed_s = about.st_mtim.tv_sec,
      .changed_ns = about.st_mtim.tv_nsec,
  };
  memcpy(file->name, name, strlen(name) + 1);
  files->bytes += file->bytes;
  return SHOAL_OK;
}

shoal_status shoal_set_files_list(shoal_set_files *out, const char *folder, shoal_error *err) {
  *out = (shoal_set_files){.folder = strdup(folder)};
  if (out->folder == NULL) return fail_memory(err);
  DIR *here = opendir(folder);
  if (here == NULL) {
    int number = errno;
    shoal_set_files_release(out);
    return shoal_fail(err, number == ENOENT ? SHOAL_NOT_FOUND : SHOAL_IO, "%s: %s", folder, strerror(number));
  }
  shoal_status status = SHOAL_OK;
  for (struct dirent *entry; status == SHOAL_OK && (entry = readdir(here)) != NULL;)
    if (entry->d_name[0] != '.') status = shoal_set_files_add(out, entry->d_name, err);
  closedir(here);
  if (status != SHOAL_OK) {
    shoal_set_files_release(out);
    return status;
  }
  qsort(out->files, out->count, sizeof out->files[0], by_name);
  return SHOAL_OK;
}

void shoal_set_files_release(shoal_set_files *files) {
  free(files->folder);
  files->folder = NULL;
  files->count = 0;
}

void shoal_set_files_stamp(const shoal_set_files *files, char out[SHOAL_SHA256_HEX]) {
  uint8_t digest[SHOAL_SHA256_BYTES] = {0};
  shoal_sha256 *hash = shoal_sha256_create();
  for (uint32_t i = 0; hash != NULL && i < files->count; i++) {
    const shoal_set_file *file = &files->files[i];
    char numbers[96];
    int length = snprintf(numbers, sizeof numbers, "%" PRIu64 " %" PRId64 ".%09" PRId64 "\n", file->bytes,
                          file->changed_s, file->changed_ns);
    shoal_sha256_add(hash, file->name, strlen(file->name) + 1);
    shoal_sha256_add(hash, numbers, (size_t)length);
  }
  if (hash != NULL) shoal_sha256_finish(hash, digest);
  shoal_sha256_destroy(hash);
  shoal_hex(digest, sizeof digest, out);
}

/* ---- what is kept ---- */

bool shoal_kept_read(const char *path, const char *stamp, shoal_text *out) {
  const size_t head = SHOAL_SHA256_HEX; /* the stamp and the line's end */
  uint8_t *bytes;
  size_t length;
  if (shoal_file_read(path, KEPT_BYTES_MAX, false, &bytes, &length, NULL) != SHOAL_OK) return false;
  bool good = length > head && memcmp(bytes, stamp, head - 1) == 0 && bytes[head - 1] == '\n';
  if (good) shoal_text_add(out, bytes + head, length - head);
  free(bytes);
  return good && !out->failed;
}

shoal_status shoal_kept_write(const char *path, const char *stamp, const shoal_text *text, shoal_error *err) {
  shoal_writer *writer;
  shoal_status status = shoal_writer_create(&writer, path, err);
  if (status != SHOAL_OK) return status;
  shoal_writer_add(writer, stamp, strlen(stamp));
  shoal_writer_add(writer, "\n", 1);
  shoal_writer_add(writer, text->bytes, text->length);
  return shoal_writer_commit(writer, err);
}

/* ---- unpacking ---- */

bool shoal_set_is_zipped(const char *name, char plain[SHOAL_FILE_NAME_MAX]) {
  size_t length = strlen(name);
  bool zipped = length > 3 && strcmp(name + length - 3, ".gz") == 0;
  snprintf(plain, SHOAL_FILE_NAME_MAX, "%.*s", (int)(zipped ? length - 3 : length), name);
  return zipped;
}

shoal_status shoal_set_unpack(const char *from, const char *to, uint64_t *room, shoal_error *err) {
  gzFile file = gzopen(from, "rb"); /* takes plain files as well */
  uint8_t *part = malloc(SHOAL_CHUNK_BYTES);
  shoal_writer *writer = NULL;
  shoal_status status = SHOAL_OK;
  if (file == NULL || part == NULL)
    status = part == NULL ? fail_memory(err) : shoal_fail(err, SHOAL_IO, "%s: %s", from, strerror(errno));
  else
    status = shoal_writer_create(&writer, to, err);
  for (int got = 1; got > 0 && status == SHOAL_OK;) {
    got = gzread(file, part, SHOAL_CHUNK_BYTES);
    if (got < 0)
      status = shoal_fail(err, SHOAL_CORRUPT, "%s: cannot be unpacked; is the file incomplete?", from);
    else if ((uint64_t)got > *room)
      status = shoal_fail(err, SHOAL_LIMIT, "%s: too large when it is unpacked", from);
    else
      shoal_writer_add(writer, part, (size_t)got);
    if (status == SHOAL_OK) *room -= (uint64_t)got;
  }
  /* A file that ends too early is told at its end. */
  int end = file != NULL ? gzclose_r(file) : Z_OK;
  if (status == SHOAL_OK && end != Z_OK)
    status = shoal_fail(err, SHOAL_CORRUPT, "%s: cannot be unpacked; is the file incomplete?", from);
  if (status == SHOAL_OK)
    status = shoal_writer_commit(writer, err);
  else
    shoal_writer_abandon(writer);
  free(part);
  return status;
}

/* ---- making a manifest ---- */

/* A manifest that is being written. */
typedef struct making {
  const shoal_set_files *files;
  const char *kind;
  uint8_t *chunk;
  uint8_t (*hashes)[SHOAL_SHA256_BYTES]; /* of chunks, so far */
  uint64_t hashes_count, hashes_capacity;
  shoal_json json;
} making;

/* Reads up to `room` bytes, fewer at the end of the file only. */
static ssize_t read_full(int fd, uint8_t *to, size_t room, off_t offset) {
  size_t got = 0;
  while (got < room) {
    ssize_t n = pread(fd, to + got, room - got, offset + (off_t)got);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return -1;
    if (n == 0) break;
    got += (size_t)n;
  }
  return (ssize_t)got;
}

static bool add_hash(making *m, const uint8_t *bytes, size_t length) {
  if (m->hashes_count == m->hashes_capacity) {
    uint64_t capacity = m->hashes_capacity > 0 ? 2 * m->hashes_capacity : 64;
    void *larger = realloc(m->hashes, capacity * sizeof *m->hashes);
    if (larger == NULL) return false;
    m->hashes = larger;
    m->hashes_capacity = capacity;
  }
  shoal_sha256_of(bytes, length, m->hashes[m->hashes_count++]);
  return true;
}

static shoal_status hash_chunks(making *m, int fd, const char *path, const shoal_cut *cut,
                                shoal_sha256 *whole, shoal_error *err) {
  uint64_t count = shoal_cut_count(cut);
  shoal_json_open(&m->json, "chunks", '[');
  for (uint64_t i = 0; i < count; i++) {
    uint32_t want;
    uint64_t offset = shoal_cut_chunk(cut, i, &want);
    ssize_t got = read_full(fd, m->chunk, want, (off_t)offset);
    if (got < 0) return shoal_fail(err, SHOAL_IO, "%s: %s", path, strerror(errno));
    if ((size_t)got != want)
      return shoal_fail(err, SHOAL_CONFLICT, "%s: the file got shorter while it was read; try again", path);
    if (!add_hash(m, m->chunk, want)) return fail_memory(err);
    char name[SHOAL_SHA256_HEX];
    shoal_hex(m->hashes[m->hashes_count - 1], SHOAL_SHA256_BYTES, name);
    shoal_sha256_add(whole, m->chunk, want);
    shoal_json_text(&m->json, NULL, name);
  }
  shoal_json_close(&m->json, ']');
  return SHOAL_OK;
}

/* Files of images are cut between images. */
static shoal_cut cut_of(const making *m, int fd, const shoal_set_file *file) {
  shoal_cut cut = {.bytes = file->bytes};
  if (strcmp(m->kind, "cifar") == 0) shoal_cifar_cut(&cut);
  if (strcmp(m->kind, "idx") == 0) {
    ssize_t got = read_full(fd, m->chunk, SHOAL_CHUNK_BYTES, 0);
    shoal_idx_cut(&cut, m->chunk, got > 0 ? (size_t)got : 0);
  }
  return cut;
}

static shoal_status write_file(making *m, const shoal_set_file *file, shoal_error *err) {
  shoal_text path = {0};
  shoal_text_addf(&path, "%s/%s", m->files->folder, file->name);
  shoal_sha256 *whole = shoal_sha256_create();
  shoal_json *json = &m->json;
  int fd = -1;
  shoal_status status = SHOAL_OK;
  if (path.failed || whole == NULL)
    status = fail_memory(err);
  else if ((fd = open(path.bytes, O_RDONLY | O_CLOEXEC)) < 0)
    status =
        shoal_fail(err, errno == ENOENT ? SHOAL_CONFLICT : SHOAL_IO, "%s: %s", path.bytes, strerror(errno));
  if (status == SHOAL_OK) {
    shoal_cut cut = cut_of(m, fd, file);
    shoal_json_open(json, NULL, '{');
    shoal_json_text(json, "name", file->name);
    shoal_json_int(json, "bytes", (int64_t)file->bytes);
    if (cut.record > 0) shoal_json_int(json, "head", (int64_t)cut.head);
    if (cut.record > 0) shoal_json_int(json, "record", (int64_t)cut.record);
    status = hash_chunks(m, fd, path.bytes, &cut, whole, err);
  }
  if (status == SHOAL_OK) {
    char sha256[SHOAL_SHA256_HEX];
    shoal_sha256_finish_hex(whole, sha256);
    shoal_json_text(json, "sha256", sha256);
    shoal_json_close(json, '}');
  }
  if (fd >= 0) close(fd);
  shoal_sha256_destroy(whole);
  shoal_text_release(&path);
  return status;
}

/* Looks at the same files again: whether they are as they were. */
static shoal_status check_unchanged(const shoal_set_files *files, shoal_error *err) {
  shoal_set_files again = {.folder = files->folder};
  char before[SHOAL_SHA256_HEX], after[SHOAL_SHA256_HEX];
  for (uint32_t i = 0; i < files->count; i++) {
    shoal_status status = shoal_set_files_add(&again, files->files[i].name, err);
    if (status != SHOAL_OK) return status;
  }
  shoal_set_files_stamp(files, before);
  shoal_set_files_stamp(&again, after);
  if (strcmp(before, after) == 0) return SHOAL_OK;
  return shoal_fail(err, SHOAL_CONFLICT, "%s: a file was changed while it was read; try again",
                    files->folder);
}

static void write_root(making *m) {
  uint8_t root[SHOAL_SHA256_BYTES];
  char hex[SHOAL_SHA256_HEX];
  shoal_hash_tree_root((const uint8_t(*)[SHOAL_SHA256_BYTES])m->hashes, m->hashes_count, root);
  shoal_hex(root, sizeof root, hex);
  shoal_json_text(&m->json, "root", hex);
}

shoal_status shoal_manifest_make(const shoal_set_files *files, const char *name, const char *kind,
                                 shoal_text *out, shoal_error *err) {
  making m = {.files = files, .kind = kind, .chunk = malloc(SHOAL_CHUNK_BYTES)};
  if (m.chunk == NULL) return fail_memory(err);
  shoal_json_init(&m.json, out);
  shoal_json_open(&m.json, NULL, '{');
  shoal_json_text(&m.json, "name", name);
  shoal_json_text(&m.json, "kind", kind);
  shoal_json_int(&m.json, "chunk_bytes", SHOAL_CHUNK_BYTES);
  shoal_json_open(&m.json, "files", '[');
  shoal_status status = SHOAL_OK;
  for (uint32_t i = 0; i < files->count && status == SHOAL_OK; i++)
    status = write_file(&m, &files->files[i], err);
  shoal_json_close(&m.json, ']');
  write_root(&m);
  shoal_json_close(&m.json, '}');
  free(m.hashes);
  free(m.chunk);
  if (status == SHOAL_OK) status = check_unchanged(files, err);
  if (status == SHOAL_OK && out->failed) status = fail_memory(err);
  return status;
}

/* ---- the table of chunks ---- */

/* A set in the table. */
typedef struct origin {
  char set[SHOAL_FILE_NAME_MAX], stamp[SHOAL_SHA256_HEX];
  char *folder;
  uint32_t files_count;
  char (*files)[SHOAL_FILE_NAME_MAX];
} origin;

typedef struct slot {
  uint8_t hash[SHOAL_SHA256_BYTES];
  uint32_t origin; /* its place and 1; 0: empty */
  uint32_t file, bytes;
  uint64_t offset;
} slot;

struct shoal_chunk_table {
  origin *origins;
  uint32_t origins_count, origins_capacity;
  slot *slots;
  uint64_t slots_count, used; /* slots_count is a power of two, or 0 */
};

shoal_chunk_table *shoal_chunk_table_create(void) { return calloc(1, sizeof(shoal_chunk_table)); }

void shoal_chunk_table_clear(shoal_chunk_table *table) {
  for (uint32_t i = 0; i < table->origins_count; i++) {
    free(table->origins[i].folder);
    free(table->origins[i].files);
  }
  free(table->origins);
  free(table->slots);
  *table = (shoal_chunk_table){0};
}

void shoal_chunk_table_destroy(shoal_chunk_table *table) {
  if (table == NULL) return;
  shoal_chunk_table_clear(table);
  free(table);
}

static const origin *find_origin(const shoal_chunk_table *table, const char *set) {
  for (uint32_t i = 0; i < table->origins_count; i++)
    if (strcmp(table->origins[i].set, set) == 0) return &table->origins[i];
  return NULL;
}

bool shoal_chunk_table_has(const shoal_chunk_table *table, const char *set, const char *stamp) {
  const origin *found = find_origin(table, set);
  return found != NULL && strcmp(found->stamp, stamp) == 0;
}

bool shoal_chunk_table_has_any(const shoal_chunk_table *table, const char *set) {
  return find_origin(table, set) != NULL;
}

static uint64_t home_of(const shoal_chunk_table *table, const uint8_t *hash) {
  uint64_t start;
  memcpy(&start, hash, sizeof start);
  return start & (table->slots_count - 1);
}

/* One set's copy of a chunk is enough: a file of nothing but zeros has thousands. */
static void insert(shoal_chunk_table *table, const slot *new) {
  uint64_t i = home_of(table, new->hash);
  for (; table->slots[i].origin != 0; i = (i + 1) & (table->slots_count - 1)) {
    const slot *there = &table->slots[i];
    if (there->origin == new->origin && memcmp(there->hash, new->hash, sizeof new->hash) == 0) return;
  }
  table->slots[i] = *new;
  table->used++;
}

/* Room for so many more, with half of the slots empty. */
static bool reserve(shoal_chunk_table *table, uint64_t more) {
  uint64_t count = table->slots_count > 0 ? table->slots_count : SLOTS_FIRST;
  while (count / 2 < table->used + more) count *= 2;
  if (count == table->slots_count) return true;
  shoal_chunk_table larger = {.slots = calloc(count, sizeof(slot)), .slots_count = count};
  if (larger.slots == NULL) return false;
  for (uint64_t i = 0; i < table->slots_count; i++)
    if (table->slots[i].origin != 0) insert(&larger, &table->slots[i]);
  free(table->slots);
  table->slots = larger.slots;
  table->slots_count = larger.slots_count;
  table->used = larger.used;
  return true;
}

static origin *new_origin(shoal_chunk_table *table) {
  if (table->origins_count == table->origins_capacity) {
    uint32_t capacity = table->origins_capacity > 0 ? 2 * table->origins_capacity : 16;
    origin *larger = realloc(table->origins, capacity * sizeof *larger);
    if (larger == NULL) return NULL;
    table->origins = larger;
    table->origins_capacity = capacity;
  }
  origin *new = &table->origins[table->origins_count];
  *new = (origin){0};
  return new;
}

static bool read_hex(const char *hex, uint8_t out[SHOAL_SHA256_BYTES]) {
  for (uint32_t i = 0; i < SHOAL_SHA256_BYTES; i++) {
    unsigned byte;
    if (sscanf(hex + 2 * i, "%2x", &byte) != 1) return false;
    out[i] = (uint8_t)byte;
  }
  return true;
}

static void insert_file(shoal_chunk_table *table, const shoal_manifest_file *file, uint32_t number,
                        uint32_t origin_place) {
  for (uint64_t c = 0; c < file->chunks_count; c++) {
    uint32_t bytes;
    uint64_t offset = shoal_cut_chunk(&file->cut, c, &bytes);
    slot new = {
        .origin = origin_place,
        .file = number,
        .offset = offset,
        .bytes = bytes,
    };
    if (read_hex(file->chunks[c], new.hash)) insert(table, &new);
  }
}

shoal_status shoal_chunk_table_add(shoal_chunk_table *table, const char *folder, const char *stamp,
                                   const shoal_manifest *manifest, shoal_error *err) {
  uint64_t chunks = 0;
  for (uint32_t i = 0; i < manifest->files_count; i++) chunks += manifest->files[i].chunks_count;
  origin *new = new_origin(table);
  if (new == NULL || !reserve(table, chunks)) return fail_memory(err);
  new->folder = strdup(folder);
  new->files = calloc(manifest->files_count + 1, sizeof *new->files);
  if (new->folder == NULL || new->files == NULL) {
    free(new->folder);
    free(new->files);
    return fail_memory(err);
  }
  memcpy(new->set, manifest->name, sizeof new->set);
  snprintf(new->stamp, sizeof new->stamp, "%s", stamp);
  new->files_count = manifest->files_count;
  table->origins_count++;
  for (uint32_t i = 0; i < manifest->files_count; i++) {
    memcpy(new->files[i], manifest->files[i].name, sizeof new->files[i]);
    insert_file(table, &manifest->files[i], i, table->origins_count);
  }
  return SHOAL_OK;
}

/* ---- one chunk ---- */

void shoal_chunk_source_release(shoal_chunk_source *source) {
  for (uint32_t i = 0; i < source->count; i++) {
    free(source->copies[i].path);
    free(source->copies[i].set);
  }
  *source = (shoal_chunk_source){0};
}

/* False: no memory. */
static bool add_copy(const shoal_chunk_table *table, const slot *from, shoal_chunk_source *out) {
  const origin *set = &table->origins[from->origin - 1];
  shoal_chunk_copy *copy = &out->copies[out->count++];
  *copy = (shoal_chunk_copy){.set = strdup(set->set), .offset = from->offset, .bytes = from->bytes};
  if (asprintf(&copy->path, "%s/%s", set->folder, set->files[from->file]) < 0) copy->path = NULL;
  return copy->set != NULL && copy->path != NULL;
}

shoal_status shoal_chunk_table_find(const shoal_chunk_table *table, const uint8_t hash[SHOAL_SHA256_BYTES],
                                    shoal_chunk_source *out, shoal_error *err) {
  *out = (shoal_chunk_source){0};
  memcpy(out->hash, hash, sizeof out->hash);
  bool failed = false;
  uint64_t i = table->slots_count > 0 ? home_of(table, hash) : 0;
  for (; table->slots_count > 0 && table->slots[i].origin != 0; i = (i + 1) & (table->slots_count - 1)) {
    const slot *there = &table->slots[i];
    if (out->count == SHOAL_CHUNK_COPIES_MAX || failed) break;
    if (memcmp(there->hash, hash, sizeof there->hash) == 0) failed = !add_copy(table, there, out);
  }
  if (out->count > 0 && !failed) return SHOAL_OK;
  shoal_chunk_source_release(out);
  char name[SHOAL_SHA256_HEX];
  shoal_hex(hash, SHOAL_SHA256_BYTES, name);
  return failed ? fail_memory(err) : shoal_fail(err, SHOAL_NOT_FOUND, "there is no chunk %s", name);
}

/* Reads a copy into `to` and compares it with its hash. */
static shoal_status read_copy(const shoal_chunk_copy *from, const uint8_t hash[SHOAL_SHA256_BYTES],
                              uint8_t *to, shoal_error *err) {
  uint8_t found[SHOAL_SHA256_BYTES];
  int fd = open(from->path, O_RDONLY | O_CLOEXEC);
  ssize_t got = fd < 0 ? -1 : read_full(fd, to, from->bytes, (off_t)from->offset);
  int number = errno;
  if (fd >= 0) close(fd);
  if (got < 0) return shoal_fail(err, SHOAL_IO, "%s: %s", from->path, strerror(number));
  shoal_sha256_of(to, (size_t)got, found);
  if ((size_t)got == from->bytes && memcmp(found, hash, sizeof found) == 0) return SHOAL_OK;
  return shoal_fail(err, SHOAL_CORRUPT,
                    "%s: the bytes from %" PRIu64 " on are not what they were: the file was changed or "
                    "damaged; put it back, or delete the data set '%s'",
                    from->path, from->offset, from->set);
}

shoal_status shoal_chunk_read(const shoal_chunk_source *source, shoal_blob **out, shoal_error *err) {
  shoal_status status = SHOAL_NOT_FOUND;
  *out = NULL;
  for (uint32_t i = 0; i < source->count; i++) {
    shoal_blob *blob = shoal_blob_create(source->copies[i].bytes);
    if (blob == NULL) return fail_memory(err);
    status = read_copy(&source->copies[i], source->hash, shoal_blob_bytes(blob), err);
    if (status == SHOAL_OK) {
      *out = blob;
      return SHOAL_OK;
    }
    shoal_blob_release(blob);
  }
  return status;
}
