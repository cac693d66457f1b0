/* folders.c: see folders.h. */
#include "server/folders.h"

#include <stddef.h>
#include <string.h>

static void cut(char *text, const char *folder, size_t length) {
  for (char *at = text; length > 0 && (at = memmem(at, strlen(at), folder, length)) != NULL;) {
    size_t skip = at[length] == '/' ? length + 1 : strncmp(at + length, ": ", 2) == 0 ? length + 2 : 0;
    if (skip > 0)
      memmove(at, at + skip, strlen(at + skip) + 1);
    else
      at += length;
  }
}

void shoal_cut_folder(char *text, const char *folder) { cut(text, folder, strlen(folder)); }

void shoal_cut_path(char *text, const char *path, int levels) {
  size_t length = strlen(path);
  for (; levels > 0; levels--) {
    const char *slash = memrchr(path, '/', length);
    length = slash != NULL ? (size_t)(slash - path) : 0;
  }
  cut(text, path, length);
}
