/* fuzz_upload.c: a draft of any files, read as any kind. It is refused, with the fault of a file or the
 * upload, or it is described, and then its manifest is there and fits the description.
 *
 * The first byte is the kind and how many files there are; each begins with two bytes of length. */
#include <cjson/cJSON.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/file.h"
#include "data/manifest.h"
#include "server/datasets.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

enum { KINDS = 5, FILES = 6 };
static const char *const kinds[KINDS] = {"csv", "idx", "cifar", "text", "chars"};
static const char *const names[KINDS][FILES] = {
    {"train.csv", "test.csv", "third.csv", "4.csv", "5.csv", "6.csv"},
    {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte.gz",
     "t10k-labels-idx1-ubyte", "readme", "more"},
    {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin",
     "test_batch.bin"},
    {"train.txt", "valid.txt", "test.txt", "other.txt", "5.txt", "6.txt"},
    {"train.txt", "test.txt", "valid.txt", "other.txt", "5.txt", "6.txt"},
};

static char draft[64];

static void empty_draft(void) {
  DIR *here = opendir(draft);
  SHOAL_ASSERT(here != NULL);
  for (struct dirent *entry; (entry = readdir(here)) != NULL;) unlinkat(dirfd(here), entry->d_name, 0);
  closedir(here);
}

static void leave(void) {
  empty_draft();
  rmdir(draft);
  *strrchr(draft, '/') = 0;
  rmdir(draft);
}

/* An empty folder DRAFT/set, in memory where that is possible. */
static void make_draft(void) {
  if (draft[0] != 0) {
    empty_draft();
    return;
  }
  const char *memory = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
  snprintf(draft, sizeof draft, "%s/shoal-fuzz-XXXXXX", memory);
  SHOAL_ASSERT(mkdtemp(draft) != NULL);
  size_t length = strlen(draft);
  snprintf(draft + length, sizeof draft - length, "/set");
  SHOAL_ASSERT(mkdir(draft, 0777) == 0);
  setenv("XDG_CACHE_HOME", "/dev/null/none", 1); /* no copies of what was unzipped */
  atexit(leave);
}

static void put(const char *name, const uint8_t *bytes, size_t length) {
  char path[128];
  snprintf(path, sizeof path, "%s/%s", draft, name);
  FILE *file = fopen(path, "wb");
  SHOAL_ASSERT(file != NULL);
  SHOAL_ASSERT(fwrite(bytes, 1, length, file) == length);
  SHOAL_ASSERT(fclose(file) == 0);
}

/* Of all files that are no longer zipped and not hidden. */
static double bytes_there(void) {
  double bytes = 0;
  DIR *here = opendir(draft);
  SHOAL_ASSERT(here != NULL);
  for (struct dirent *entry; (entry = readdir(here)) != NULL;) {
    struct stat there;
    if (entry->d_name[0] != '.' && fstatat(dirfd(here), entry->d_name, &there, 0) == 0)
      bytes += (double)there.st_size;
  }
  closedir(here);
  return bytes;
}

/* The manifest that the check has left: behind its first line, the stamp. */
static void check_manifest(const char *kind, double bytes) {
  char path[128];
  uint8_t *text;
  size_t length;
  snprintf(path, sizeof path, "%s/.manifest", draft);
  SHOAL_ASSERT(shoal_file_read(path, 1 << 24, false, &text, &length, NULL) == SHOAL_OK);
  SHOAL_ASSERT(length > SHOAL_SHA256_HEX);
  shoal_manifest *manifest = malloc(sizeof *manifest);
  SHOAL_ASSERT(manifest != NULL);
  SHOAL_ASSERT(shoal_manifest_parse(manifest, (const char *)text + SHOAL_SHA256_HEX,
                                    length - SHOAL_SHA256_HEX, NULL) == SHOAL_OK);
  SHOAL_ASSERT(strcmp(manifest->name, "set") == 0 && strcmp(manifest->kind, kind) == 0);
  SHOAL_ASSERT((double)manifest->bytes == bytes);
  shoal_manifest_release(manifest);
  free(manifest);
  free(text);
}

static void check_description(const char *text, const char *kind, double bytes) {
  cJSON *json = cJSON_Parse(text);
  SHOAL_ASSERT(cJSON_IsObject(json) && shoal_utf8_valid(text, strlen(text)));
  const cJSON *samples = cJSON_GetObjectItemCaseSensitive(json, "samples");
  SHOAL_ASSERT(cJSON_GetObjectItemCaseSensitive(samples, "train")->valuedouble > 0);
  SHOAL_ASSERT(strcmp(cJSON_GetObjectItemCaseSensitive(json, "kind")->valuestring, kind) == 0);
  SHOAL_ASSERT(cJSON_GetObjectItemCaseSensitive(json, "bytes")->valuedouble == bytes);
  cJSON_Delete(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
  if (length == 0) return 0;
  int kind = bytes[0] % KINDS, files = 1 + bytes[0] / KINDS % FILES;
  const char *target = bytes[0] >= 128 ? "1" : NULL;
  size_t at = 1;
  make_draft();
  for (int i = 0; i < files; i++) {
    size_t take = length - at;
    if (i < files - 1) {
      if (take < 2) break;
      take = bytes[at] | (size_t)bytes[at + 1] << 8;
      at += 2;
      if (take > length - at) take = length - at;
    }
    put(names[kind][i], bytes + at, take);
    at += take;
  }
  shoal_text description = {0};
  shoal_error err = {0};
  shoal_status status = shoal_datasets_check(draft, &(shoal_set_said){.kind = kinds[kind], .target = target},
                                             &description, &err);
  if (status != SHOAL_OK) {
    SHOAL_ASSERT(status == SHOAL_INVALID && err.status == status && err.text[0] != 0);
    SHOAL_ASSERT(strncmp(err.text, draft, strlen(draft)) != 0 && description.length == 0);
  } else {
    check_description(description.bytes, kinds[kind], bytes_there());
    check_manifest(kinds[kind], bytes_there());
  }
  shoal_text_release(&description);
  return 0;
}
