/* upload.h: data of this machine, brought to a server under a name.
 *
 * What --data means here (data/dataset.h) becomes a set there: a named set keeps its name, a file or folder
 * gives its own. Of a folder of PNG or JPEG files the images are sent as IDX files, fitted to the model. A set
 * that the server has already, with the same files, is not sent again. One that could not be sent whole, is
 * found wrong, or was sent for a job that is refused, is taken back.
 *
 * Ownership: everything is borrowed for the call. Threads: one. */
#ifndef SHOAL_CLI_UPLOAD_H
#define SHOAL_CLI_UPLOAD_H

#include <stdio.h>

#include "cli/remote.h"
#include "data/manifest.h"

typedef struct shoal_upload_config {
  shoal_remote *api;
  const char *data, *target;   /* as given to --data and --target; target may be NULL */
  const char *name, *data_dir; /* name there; or NULL */
  const char *model; /* the file of the model's text, which folders of images are fitted to; or NULL */
  bool is_table;     /* a CSV file to search on, of any columns; then also: */
  const char *test, *dialect; /* another one, and how they are written; or NULL */
  FILE *text;                 /* for people; NULL: nothing */
} shoal_upload_config;

/* Sees to it that the server has the data; `name` gets what it is called there, *sent whether it had it not. */
shoal_status shoal_upload(const shoal_upload_config *config, char name[SHOAL_FILE_NAME_MAX], bool *sent,
                          shoal_error *err);
/* Has the server forget what was sent, if no job uses it. */
void shoal_upload_take_back(const shoal_upload_config *config, const char *name);

#endif
