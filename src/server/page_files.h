/* page_files.h: the files of the web page and the example models, built into the program.
 *
 * The build makes the page from web/ and writes the C file with these tables (web/embed.mjs). Page files are
 * compressed with gzip; who cannot take that must be given them unzipped. index.html is the page for
 * every path that is a page's. Models are plain texts.
 *
 * Ownership: constant. Threads: any. */
#ifndef SHOAL_SERVER_PAGE_FILES_H
#define SHOAL_SERVER_PAGE_FILES_H

#include <stddef.h>

typedef struct shoal_page_file {
  const char *path; /* "/index.html" */
  const char *type; /* for Content-Type */
  const char *etag; /* with its quotation marks: of the content, so it changes only when that does */
  const unsigned char *bytes; /* gzip */
  size_t length;
} shoal_page_file;

extern const shoal_page_file shoal_page_files[];
extern const size_t shoal_page_files_count;

typedef struct shoal_example_model {
  const char *name; /* "lenet5" */
  const char *text;
} shoal_example_model;

/* By name. */
extern const shoal_example_model shoal_example_models[];
extern const size_t shoal_example_models_count;

#endif
