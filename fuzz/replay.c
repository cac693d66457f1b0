/* replay.c: runs one fuzz target on every file of a folder, without a fuzzer.
 *
 * Linked with a fuzz_*.c in the place of libFuzzer, so that inputs found once are tried
 * on every `make test`. An input that breaks something ends the program, after its name. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

enum { CASE_BYTES_MAX = 64 << 20 };

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  DIR *folder = opendir(argv[1]);
  if (!folder && errno == ENOENT) {
    printf("no cases\n");
    return 0;
  }
  if (!folder) {
    fprintf(stderr, "%s: %s\n", argv[1], strerror(errno));
    return 1;
  }
  int cases = 0;
  for (struct dirent *entry; (entry = readdir(folder));) {
    if (entry->d_name[0] == '.') continue;
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", argv[1], entry->d_name);
    uint8_t *bytes;
    size_t length;
    shoal_error err;
    if (shoal_file_read(path, CASE_BYTES_MAX, false, &bytes, &length, &err) != SHOAL_OK) {
      fprintf(stderr, "%s\n", err.text);
      return 1;
    }
    printf("%s\n", path);
    fflush(stdout);
    LLVMFuzzerTestOneInput(bytes, length);
    free(bytes);
    cases++;
  }
  closedir(folder);
  printf("%d cases\n", cases);
  return 0;
}
